// Runs streams through npm `@ag-ui/client`'s agent, all stages of it, without a network.
//
// Standard input: an array of streams, each an array of events, each a string of JSON. Standard output:
// an array with, for each stream, `events` (those that reached the subscribers), `outcomes` (how its
// runs ended, and their pending tool calls), `messages`, `state` and `error` (null where there was none).

import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { AbstractAgent } from "@ag-ui/client";
import { from } from "rxjs";

class Replay extends AbstractAgent {
  constructor(stream) {
    super({ threadId: "t" });
    this.stream = stream;
  }

  run() {
    return from(events(this.stream));
  }
}

// One event a turn: an error overtakes events that have not been applied yet.
async function* events(stream) {
  for (const event of stream) {
    yield JSON.parse(event);
    await turn();
  }
}

async function replay(stream) {
  const agent = new Replay(stream);
  const seen = { events: [], outcomes: [], error: null };
  const subscriber = {
    onEvent: ({ event }) => void seen.events.push(structuredClone(event)),
    onRunErrorEvent: () => void seen.outcomes.push(["failed"]),
    onRunFinishedEvent: ({ outcome, pendingToolCallIds }) => void seen.outcomes.push([outcome, ...(pendingToolCallIds ?? [])]),
  };
  try {
    await agent.runAgent({ runId: "r" }, subscriber);
  } catch (thrown) {
    seen.error = String(thrown);
  }
  return { ...seen, messages: agent.messages.map(finite), state: finite(agent.state) };
}

// No parser of JSON but JavaScript's takes half a surrogate pair.
const wellFormed = (_, value) => (typeof value === "string" ? value.toWellFormed() : value);

// A patch can make the reference hold a value that contains itself.
function finite(value) {
  try {
    JSON.stringify(value);
    return value;
  } catch {
    return "circular";
  }
}

const log = console.log;
// What the reference logs is no answer.
console.log = console.warn = console.debug = console.error = () => {};
const streams = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
// Some at a time, so that a turn of the loop serves many of them.
for (let start = 0; start < streams.length; start += 64) {
  answers.push(...(await Promise.all(streams.slice(start, start + 64).map(replay))));
}
log(JSON.stringify(answers, wellFormed));

// Times the TypeScript reference client's full consumer on the workloads.
//
//     node run.mjs DIR
//
// DIR holds what `ag-ui-stream-peers events DIR` wrote. Prints one JSON record
// a measurement, as `ag-ui-stream-peers measure` does.
//
// The consumer is an agent whose `run` emits the events and whose `runAgent`
// takes them through everything the client does: compatibility boundary,
// enforcement, chunk expansion, verification, application. After every event
// `agent.messages` is a snapshot of its own, so there is no cheaper mode to
// measure without one. The events are parsed as they are emitted, in small
// batches with a turn of the event loop in between, as a socket would deliver
// them; that keeps the queues of the client short, in its favour.

import { readFileSync } from "node:fs";
import { join } from "node:path";

// Development builds of the client also freeze what they hand to subscribers.
process.env.NODE_ENV ??= "production";

const { AbstractAgent } = await import("@ag-ui/client");
const { Observable } = await import("rxjs");

const BATCH = 32;

// As in main.rs: rounds at most, no further round once this much is spent, and
// where a round is cut off; in milliseconds.
const LIMITS = {
  table: { rounds: 5, spend: 2000, cut: 4000 },
  text: { rounds: 5, spend: 600, cut: 4000 },
  thread: { rounds: 5, spend: 600, cut: 1000 },
};

class Replay extends AbstractAgent {
  constructor(lines, history, cut) {
    super({
      threadId: "thread-1",
      initialMessages: history.map(([id, content]) => ({ id, role: "assistant", content })),
    });
    this.lines = lines;
    this.cut = cut;
    this.emitted = 0;
  }

  run() {
    return new Observable((subscriber) => {
      this.emit(subscriber).then(
        () => subscriber.complete(),
        (error) => subscriber.error(error),
      );
    });
  }

  async emit(subscriber) {
    const deadline = performance.now() + this.cut;
    for (const line of this.lines) {
      subscriber.next(JSON.parse(line));
      this.emitted += 1;
      if (this.emitted % BATCH === 0) {
        await new Promise(setImmediate);
        if (performance.now() > deadline) break;
      }
    }
    await new Promise(setImmediate);
  }
}

// What the emitted events must have made of the conversation.
function expected(history, lines) {
  const texts = new Map(history);
  for (const line of lines) {
    const event = JSON.parse(line);
    if (event.type === "TEXT_MESSAGE_START") {
      texts.set(event.messageId, texts.get(event.messageId) ?? "");
    } else if (event.type === "TEXT_MESSAGE_CONTENT" || event.type === "TEXT_MESSAGE_CHUNK") {
      texts.set(event.messageId, (texts.get(event.messageId) ?? "") + event.delta);
    }
  }
  return [...texts];
}

function check(name, got, wanted) {
  if (JSON.stringify(got) !== JSON.stringify(wanted)) {
    throw new Error(`the reference assembled other messages than were sent, on ${name}`);
  }
}

async function measure({ axis, workload, size, history, texts }, lines) {
  const limits = LIMITS[axis];
  const samples = [];
  let measured = lines.length;
  let spent = 0;
  for (let round = 0; round < limits.rounds && spent < limits.spend; round += 1) {
    const agent = new Replay(lines, history, limits.cut);
    const begun = performance.now();
    await agent.runAgent();
    const elapsed = performance.now() - begun;
    spent += elapsed;
    samples.push((elapsed * 1e6) / agent.emitted);
    measured = Math.min(measured, agent.emitted);

    const got = agent.messages
      .filter((message) => message.role === "assistant" && message.content !== undefined)
      .map((message) => [message.id, message.content]);
    check(workload, got, expected(history, lines.slice(0, agent.emitted)));
    if (agent.emitted === lines.length) check(workload, got, texts);
  }
  samples.sort((a, b) => a - b);
  return {
    axis,
    workload,
    size,
    contender: "reference runAgent",
    reading: "latest",
    min: samples[0],
    median: samples[samples.length >> 1],
    measured,
    events: lines.length,
  };
}

const directory = process.argv[2];
const index = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
let ended = false;
for (const entry of index) {
  // A line of the plot ends where a whole message takes too long.
  if (entry.axis === "text" && ended) continue;
  const lines = readFileSync(join(directory, entry.file), "utf8").trimEnd().split("\n");
  const record = await measure(entry, lines);
  const cut = record.measured < record.events;
  if (entry.axis === "text" && cut) {
    ended = true;
    continue;
  }
  console.log(JSON.stringify(record));
  console.error(`${entry.workload}: ${Math.round(record.min)} ns${cut ? `, cut off after ${record.measured} events` : ""}`);
}

// What npm `@ag-ui/client`'s HttpAgent posts to a peer of some version.
//
// Standard input: a JSON array of `{"version", "input"}`, the version null for a peer of today. Standard
// output: a JSON array of `{"body", "warnings"}`, or `{"error"}` where nothing was posted.

import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

async function post({ version, input }) {
  let body;
  class Agent extends HttpAgent {
    get maxProtocolVersion() {
      return version ?? super.maxProtocolVersion;
    }
    prepareRunAgentInput(parameters) {
      // It has no parameter for this one.
      const prepared = super.prepareRunAgentInput(parameters);
      return "parentRunId" in input ? { ...prepared, parentRunId: input.parentRunId } : prepared;
    }
  }
  const { threadId, messages, state, ...parameters } = input;
  const agent = new Agent({
    url: "http://127.0.0.1/",
    threadId,
    initialMessages: messages,
    initialState: state,
    fetch: async (_, request) => {
      body = JSON.parse(request.body);
      const events = [
        { type: "RUN_STARTED", threadId, runId: input.runId },
        { type: "RUN_FINISHED", threadId, runId: input.runId },
      ];
      const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
      return new Response(text, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const warnings = [];
  console.warn = (text) => warnings.push(text);
  try {
    await agent.runAgent(parameters);
  } catch (error) {
    return { error: String(error) };
  }
  return { body, warnings };
}

console.debug = console.error = console.info = () => {};
const answers = [];
for (const question of JSON.parse(readFileSync(0, "utf8"))) {
  answers.push(await post(question));
}
process.stdout.write(JSON.stringify(answers));

// Runs npm `@ag-ui/client`'s HttpAgent against a server.
//
// Standard input: `{"url", "messages"}`. Standard output: the messages and the state that the
// agent holds in the end, as JSON, and its error if there was one.

import { readFileSync } from "node:fs";
import { HttpAgent } from "@ag-ui/client";

const { url, messages } = JSON.parse(readFileSync(0, "utf8"));
const agent = new HttpAgent({ url, threadId: "t", initialMessages: messages });
const log = console.log;
// What the reference logs is no answer.
console.log = console.warn = console.debug = console.error;
let error = null;
try {
  await agent.runAgent({ runId: "r" });
} catch (thrown) {
  error = String(thrown);
}
log(JSON.stringify({ messages: agent.messages, state: agent.state, error }));

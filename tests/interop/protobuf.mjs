// Encodes and decodes with npm @ag-ui/encoder and @ag-ui/proto.
//
// In, on standard input: a JSON array of {"encode": event} and {"decode": frame}, frames in hexadecimal
// digits, with their length prefix. Out: a JSON array of {"frame"}, {"event"}, {"unknown": true} for an event
// of a later version, or {"error"}.

import { readFileSync } from "node:fs";
import { EventEncoder } from "@ag-ui/encoder";
import { AGUI_MEDIA_TYPE, AGUIUnknownEventTypeError, decode } from "@ag-ui/proto";

const encoder = new EventEncoder({ accept: AGUI_MEDIA_TYPE });

// What the encoder says of events that its own schema refuses would only be in the way.
console.warn = () => {};

function answer(question) {
  try {
    if ("encode" in question) {
      return { frame: Buffer.from(encoder.encodeBinary(question.encode)).toString("hex") };
    }
    const frame = Buffer.from(question.decode, "hex");
    return { event: decode(frame.subarray(4)) };
  } catch (error) {
    return error instanceof AGUIUnknownEventTypeError ? { unknown: true } : { error: String(error) };
  }
}

const questions = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify({ mediaType: AGUI_MEDIA_TYPE, answers: questions.map(answer) }));

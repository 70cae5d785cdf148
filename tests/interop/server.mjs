// Serves streams as npm `@ag-ui/encoder` writes them, over HTTP, cut at awkward places.
//
// Standard input: a JSON array of events. Standard output: the port, in one line. It runs until
// it is killed.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { EventEncoder } from "@ag-ui/encoder";

const events = JSON.parse(readFileSync(0, "utf8"));

const server = createServer(async (request, response) => {
  for await (const _ of request);
  // The path says which binding and how many bytes come at once.
  const [, binding, size] = request.url.split("/");
  const accept = binding === "protobuf" ? "application/vnd.ag-ui.event+proto" : "text/event-stream";
  if (!request.headers.accept.includes(accept)) {
    response.writeHead(406).end();
    return;
  }
  const encoder = new EventEncoder({ accept });
  response.socket.setNoDelay(true);
  response.writeHead(200, { "content-type": encoder.getContentType() });
  for (const event of events) {
    const bytes = binding === "protobuf" ? encoder.encodeBinary(event) : Buffer.from(encoder.encodeSSE(event));
    for (let at = 0; at < bytes.length; at += Number(size)) {
      response.write(bytes.subarray(at, at + Number(size)));
      await new Promise(setImmediate);
    }
  }
  response.end();
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));

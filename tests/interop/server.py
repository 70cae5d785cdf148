"""Serves a stream as PyPI `ag-ui-protocol` writes it, over HTTP, cut at awkward places.

Standard input: a JSON array of events. Standard output: the port, in one line. It runs until it is
killed. POST /<lines>/<size> answers with the events, that many bytes at once, if the body is an input
that the package accepts; their lines are those of the package (`lf`), or as others might write them:
`crlf`, `cr`, and `busy` with all three, comments and other fields. GET / gives the last input as the
package writes it.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ag_ui.core import Event, RunAgentInput, events
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter, ValidationError


def event(value):
    # Version 0.1.9 has models for `THINKING_*` that are not among its events.
    for model in vars(events).values():
        if isinstance(model, type) and issubclass(model, events.BaseEvent):
            if f"EventType.{value['type']}:" in repr(model.model_fields["type"].annotation):
                return model.model_validate(value)
    return TypeAdapter(Event).validate_python(value)


EVENTS = [event(value) for value in json.load(sys.stdin)]


BEFORE = ["", ": keep-alive\n\n", "retry: 5\r", "id: 7\r\n", "event: message\n", ":\r\n\r\n", "datum: no\n"]
ENDS = {"crlf": ["\r\n"], "cr": ["\r"], "busy": ["\n", "\r\n", "\r"]}


def lines(kind, texts):
    """What the package wrote, or the same events on two lines each with other line ends."""
    for at, text in enumerate(texts):
        if kind != "lf":
            ends = ENDS[kind]
            text = text.replace(',"', ',\ndata: "', 1).replace("\n", ends[at % len(ends)])
        yield BEFORE[at % len(BEFORE)] + text if kind == "busy" else text


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    last_input = b"null"

    def do_GET(self):
        self.answer(200, "application/json", [Handler.last_input])

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            Handler.last_input = RunAgentInput.model_validate_json(body).model_dump_json(by_alias=True).encode()
        except ValidationError as error:
            self.answer(422, "text/plain", [str(error).encode()])
            return
        encoder = EventEncoder(accept=self.headers["accept"])
        _, kind, size = self.path.split("/")
        size = int(size)
        stream = "".join(lines(kind, map(encoder.encode, EVENTS))).encode()
        self.answer(200, encoder.get_content_type(), (stream[at : at + size] for at in range(0, len(stream), size)))

    def answer(self, status, content_type, pieces):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()

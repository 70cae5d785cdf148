"""Reads a stream of events with PyPI `ag-ui-protocol`.

Standard input: `{"url", "input"}`. Standard output: the events as the package writes them, as JSON.
The package has no client: the lines are read as the SSE page says, the models are its own.
"""

import json
import sys
from urllib.request import Request, urlopen

from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

question = json.load(sys.stdin)
body = RunAgentInput.model_validate(question["input"]).model_dump_json(by_alias=True).encode()
headers = {"content-type": "application/json", "accept": "text/event-stream"}
events, data = [], []
with urlopen(Request(question["url"], body, headers)) as response:
    for line in response:
        line = line.decode().removesuffix("\n")
        if line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            events.append(TypeAdapter(Event).validate_json("\n".join(data)))
            data = []
assert not data, "the stream ends within an event"
json.dump([json.loads(event.model_dump_json(by_alias=True)) for event in events], sys.stdout)

"""Reads and writes events and inputs with PyPI `ag-ui-protocol`.

Standard input: a JSON array of `{"encode": event}`, `{"decode": text}`, the text one event as server-sent
events, and `{"input": input}`. Standard output: a JSON array of `{"text"}`, `{"event"}`, `{"input"}` or
`{"error"}`. Fields that the package does not know are errors: its models keep them.
"""

import json
import sys

from ag_ui.core import Event, RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import BaseModel, TypeAdapter

EVENT = TypeAdapter(Event)


def known(model, path=""):
    """The model, if nothing in it is unknown."""
    if isinstance(model, BaseModel):
        # Operations of a patch are open (rule E6).
        if model.model_extra and "op" not in type(model).model_fields:
            raise ValueError(f"{path}: unknown {list(model.model_extra)}")
        for name in type(model).model_fields:
            known(getattr(model, name), f"{path}/{name}")
    elif isinstance(model, list):
        for at, element in enumerate(model):
            known(element, f"{path}/{at}")
    return model


def dump(model):
    return json.loads(model.model_dump_json(by_alias=True))


def answer(question):
    match question:
        case {"encode": event}:
            return {"text": EventEncoder().encode(known(EVENT.validate_python(event)))}
        case {"decode": text}:
            lines = text.removesuffix("\n\n").split("\n")
            data = "\n".join(line.removeprefix("data: ") for line in lines)
            return {"event": dump(known(EVENT.validate_json(data)))}
        case {"input": value}:
            return {"input": dump(known(RunAgentInput.model_validate(value)))}


def checked(question):
    try:
        return answer(question)
    except ValueError as error:
        return {"error": str(error)}


json.dump([checked(question) for question in json.load(sys.stdin)], sys.stdout)

"""Lists the public API of the crate, one item a line, from the JSON that rustdoc writes.

Prints to standard output: `kind path`, sorted. Re-exports are followed; what the crate re-exports of
others is left out, and so are trait implementations and hidden items.

    python3 .ci/public-api.py target/doc/ag_ui_stream.json
"""

import json
import sys

with open(sys.argv[1]) as file:
    doc = json.load(file)
index = doc["index"]
lines = set()


def item(key):
    return index.get(str(key))


def hidden(entry):
    return any("hidden" in json.dumps(attribute) and "doc" in json.dumps(attribute) for attribute in entry["attrs"])


def walk(key, path, seen):
    entry = item(key)
    if entry is None or hidden(entry) or (key, path) in seen:
        return
    seen = seen | {(key, path)}
    (kind, inner), = entry["inner"].items()
    if kind == "use":
        target = item(inner["id"]) if inner["id"] is not None else None
        if target is None:
            return
        name = path if inner["is_glob"] else f"{path}::{inner['name']}"
        walk_named(inner["id"], name, seen)
        return
    walk_named(key, f"{path}::{entry['name']}", seen)


def walk_named(key, path, seen):
    entry = item(key)
    (kind, inner), = entry["inner"].items()
    if kind == "use":
        walk_named(inner["id"], path, seen) if item(inner["id"]) else None
        return
    lines.add(f"{kind} {path}")
    children = []
    if kind == "module":
        children = inner["items"]
    elif kind == "trait":
        children = inner["items"]
    elif kind == "enum":
        children = inner["variants"]
    elif kind == "struct" and isinstance(inner["kind"], dict) and "plain" in inner["kind"]:
        children = inner["kind"]["plain"]["fields"]
    for child in children:
        walk(child, path, seen)
    for implementation in inner.get("impls", []) if isinstance(inner, dict) else []:
        implementation = item(implementation)
        if implementation and implementation["inner"]["impl"]["trait"] is None:
            for member in implementation["inner"]["impl"]["items"]:
                walk(member, path, seen)


root = item(doc["root"])
for child in root["inner"]["module"]["items"]:
    walk(child, "ag_ui_stream", frozenset())
print("\n".join(sorted(lines)))

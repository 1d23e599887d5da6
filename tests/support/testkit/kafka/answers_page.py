"""The table ``docs/internals/kafka-answers.md`` and the fields of a response's schema, by their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sourcetree import ROOT

PAGE = (ROOT / "docs/internals/kafka-answers.md").read_text()
SECTION = re.compile(r"^### (\w+) (\d+)(?:-(\d+))?\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
SECTIONS = {name: (int(low), int(high or low), text) for name, low, high, text in SECTION.findall(PAGE)}
"""By response: the oldest and the newest version that is taken, and the text."""


def fields(of: Mapping[str, Any], low: int, high: int, prefix: str = "") -> Iterator[str]:
    """The fields that any of these versions has, by their paths."""
    structs = {one["name"]: one for one in of.get("commonStructs", ())}
    for field in of["fields"]:
        first, plus, last = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", field["versions"]).groups()  # type: ignore[union-attr]
        if int(first) > high or (not plus and int(last or first) < low):
            continue
        inner = field if field.get("fields") else structs.get(field["type"].removeprefix("[]"))
        if inner is None:
            yield prefix + field["name"]
        else:
            yield from fields({**of, "fields": inner["fields"]}, low, high, f"{prefix}{field['name']}.")


def listed(text: str, kind: str = "") -> list[str]:
    return [
        name for line in text.splitlines() if line.startswith(f"- {kind}") for name in re.findall("`([^`]+)`", line)
    ]

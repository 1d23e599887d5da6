"""What to do about a reason, and where it is explained. ``docs/draw_remedies.py`` makes the table from the runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

DOCS = "https://bellwether.dev/docs/"


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = resources.files("bellwether.cli.diagnosis").joinpath("remedies.json").read_text(encoding="utf-8")
    table: Mapping[str, Mapping[str, str]] = json.loads(text)
    return table


def remedy(reason: str, known: Mapping[str, str]) -> str:
    """What to do; empty for a reason that this version does not know.

    ``known`` are values of the placeholders in its commands: NAME, NAMESPACE, BROKER.
    """
    text = _table().get(reason, {}).get("remedy", "")
    return re.sub(r"\b(?:NAME|NAMESPACE|BROKER)\b", lambda found: known.get(found[0], found[0]), text)


def runbook(reason: str) -> str:
    """URL of the section of the runbook that explains the reason; that of the runbook if it is unknown."""
    return DOCS + _table().get(reason, {}).get("page", "runbook.md")

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


def remedy(reason: str) -> str:
    """What to do; empty for a reason that this version does not know."""
    return _table().get(reason, {}).get("remedy", "")


def typed(text: str, namespace: str, policy: str, broker: str = "") -> str:
    """A remedy whose commands can be typed: with the policy's name and namespace, and the broker's id if known."""
    text = re.sub(r"(?<= )NAME( -n NAMESPACE)?\b", lambda _: f"{policy} -n {namespace}", text)
    text = re.sub(r"(?<=-n )NAMESPACE\b", namespace, text)
    return re.sub(r"(?<= )BROKER\b", broker, text) if broker.isdecimal() else text


def runbook(reason: str) -> str:
    """URL of the section of the runbook that explains the reason; that of the runbook if it is unknown."""
    return DOCS + _table().get(reason, {}).get("page", "runbook.md")

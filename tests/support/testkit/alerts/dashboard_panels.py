"""The panels of the generated dashboards, with their queries as Grafana sends them.

Called by the tests of the dashboards and by their preview.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboards import generate


@dataclass(frozen=True)
class Panel:
    """A panel of a dashboard; ``model`` is its JSON."""

    board: str
    model: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.board}: {self.model['title']}"

    @property
    def targets(self) -> list[Mapping[str, Any]]:
        """Its queries."""
        return list(self.model["targets"])

    @property
    def empty(self) -> str:
        """What it shows where no query has a series; nothing where that must not be."""
        return str(self.model.get("fieldConfig", {}).get("defaults", {}).get("noValue", ""))


def boards() -> dict[str, dict[str, Any]]:
    """Each dashboard by its file's name."""
    return {name: json.loads(text) for name, text in generate.files().items()}


def panels() -> list[Panel]:
    """The panels of all dashboards, without the headings of rows."""
    return [Panel(name, model) for name, made in boards().items() for model in made["panels"] if "targets" in model]


def sent(expr: str, *, rate: str = "10s", shown: str = "5m") -> str:
    """A query with everything chosen: over the range ``shown``, with ``rate`` as the range of rates."""
    variables = {"__rate_interval": rate, "__range": shown, "cluster": ".*", "namespace": ".*", "policy": ".*"}
    return re.sub(r"\$([a-z_]+)", lambda found: variables[found[1]], expr)

"""The report as a table for ``docs/internals/cures.md``. Pure: rows in, Markdown out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each fault, load and cure, with a column for each kind of clients: seconds lost."""
    classes = list(dict.fromkeys(row["clients"] for row in rows))
    lines = [("fault", "load, fetchers", "cure", *classes), ("---",) * (3 + len(classes))]
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in rows:
        setting = f"{row['load']}, {row['fetchers']}"
        found.setdefault((row["fault"], setting, row["cure"]), {})[row["clients"]] = _lost(row)
    for key, cells in found.items():
        lines.append((*key, *(cells.get(one, "") for one in classes)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _lost(row: dict[str, Any]) -> str:
    spread = f" ± {row['spread_seconds']}" if row["runs"] > 1 else ""
    return f"{row['lost_seconds']}{spread} of {row['of_seconds']}"

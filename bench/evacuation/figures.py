"""Figures of the benchmark: seconds of each contender, and their ratio to the floor in the same rounds. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from statistics import median
from typing import Any

FLOOR = "floor"

Row = dict[str, Any]


def rows(work: str, partitions: int, seconds: Mapping[str, Sequence[float]]) -> list[Row]:
    """A row for each contender; ``ratio`` is that of the medians, and None where no floor was measured."""
    floor = median(seconds[FLOOR]) if seconds.get(FLOOR) else None
    return [
        {
            "work": work,
            "partitions": partitions,
            "who": who,
            "rounds": len(taken),
            "median": round(median(taken), 3),
            "min": round(min(taken), 3),
            "max": round(max(taken), 3),
            "ratio": round(median(taken) / floor, 2) if floor else None,
        }
        for who, taken in seconds.items()
        if taken
    ]


def merged(before: Sequence[Row], now: Sequence[Row]) -> list[Row]:
    """Rows of an earlier run, those of the same work and size replaced by what was measured now; small sizes first."""
    measured = {(row["work"], row["partitions"]) for row in now}
    kept = [row for row in before if (row["work"], row["partitions"]) not in measured]
    return sorted([*kept, *now], key=itemgetter("partitions"))


def markdown(found: Sequence[Row]) -> str:
    """The rows as a table."""
    head = ("work", "partitions", "who", "rounds", "median", "min", "max", "ratio", "load")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in found:
        cells = (f"{row[name]:,}" if name == "partitions" else str(row.get(name, "")) for name in head)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)

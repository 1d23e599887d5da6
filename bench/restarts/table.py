"""The figures of both ways side by side, for people. In: the report. Out: a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table

WAYS = ("without_operator", "with_operator")


def rows(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What is compared, without and with the operator."""
    one, other = (report[way] for way in WAYS)

    def both(name: str, *path: str) -> tuple[str, str, str]:
        return name, _at(one, path), _at(other, path)

    found = [
        both("leaders back after the last broker, s", "seconds_to_balance_after_the_last"),
        both("leaders out of place at the end", "leaders_out_of_place_at_the_end"),
        both("leader changes", "leader_changes"),
    ]
    for kind in ("acks=1", "acks=all"):
        found += [
            both(f"{kind} p99 before, ms", "latency", kind, "before", "p99_ms"),
            both(f"{kind} p99 during, ms", "latency", kind, "during", "p99_ms"),
            both(f"{kind} p50 during, ms", "latency", kind, "during", "p50_ms"),
            both(f"{kind} failed", "latency", kind, "during", "failed"),
        ]
    for seen in ("by_leadership", "acks=1", "acks=all"):
        found += [
            both(f"unavailable s a partition, {seen}: mean", "unavailable", seen, "mean_seconds"),
            both(f"unavailable s a partition, {seen}: worst", "unavailable", seen, "max_seconds"),
        ]
    return found


def table(report: dict[str, Any]) -> Table:
    """The same, drawn."""
    drawn = Table("", "without the operator", "with the operator", title="A rolling restart under load")
    for row in rows(report):
        drawn.add_row(*row)
    return drawn


def _at(figures: dict[str, Any], path: tuple[str, ...]) -> str:
    value: Any = figures
    for step in path:
        value = value[step]
    return "not within the patience" if value is None else str(value)

"""A report as Markdown: a row a phase, the play named once."""

from __future__ import annotations

from typing import Any

from quarantines.tables import markdown


def phase(name: str, p50: float | None) -> dict[str, Any]:
    times = {"unavailable_seconds_mean": 0.25, "unavailable_seconds_max": 4.0}
    return {"phase": name, "seconds": 15.04, "p50_ms": p50, "p99_ms": 1423.8, **times}


def test_a_play_is_named_once_and_each_phase_has_its_row():
    plays = {"fsync-only": {"phases": [phase("before", 8.3), phase("demoted", None)]}}
    assert markdown({"plays": plays}).splitlines()[2:] == [
        "| syncs alone slow | before | 15 | 8.3 ms | 1,424 ms | 0.2 s | 4.0 s |",
        "|  | demoted | 15 |  | 1,424 ms | 0.2 s | 4.0 s |",
    ]

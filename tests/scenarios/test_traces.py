"""Every recorded trace of ``traces`` is judged as its golden timeline says: real incidents, from real parts.

``pytest tests/scenarios --update-golden`` writes the timelines again: read the difference before it is committed.
``pytest tests/integration/operator/test_recording.py --update-golden`` records its trace again, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main

TRACES = sorted((Path(__file__).parent / "traces").glob("*.jsonl*"))


def noted(trace: Path) -> str:
    """What ``bellwether replay`` prints of a trace."""
    found = CliRunner().invoke(main, ["replay", str(trace)])
    assert found.exit_code == 0, found.output
    return found.output


def golden(trace: Path) -> Path:
    return trace.with_name(f"{trace.name.split('.')[0]}.timeline")


@pytest.mark.parametrize("trace", TRACES, ids=lambda p: p.name)
def test_a_trace_is_judged_as_it_was(trace: Path, request: pytest.FixtureRequest):
    timeline = noted(trace)
    if request.config.getoption("--update-golden"):
        golden(trace).write_text(timeline)
    assert timeline == golden(trace).read_text(), "read the difference; --update-golden accepts it"


def test_there_are_traces_and_each_golden_timeline_has_its_own():
    assert TRACES
    assert {golden(t) for t in TRACES} == set((Path(__file__).parent / "traces").glob("*.timeline"))


@pytest.mark.parametrize("trace", TRACES, ids=lambda p: p.name)
def test_a_trace_is_small_enough_to_be_kept_and_shows_a_demotion(trace: Path):
    assert trace.stat().st_size < 200_000
    assert "is demoted" in noted(trace)

"""Recorded scenarios are judged the same when they are replayed; a damaged trace is replayed or refused."""

from __future__ import annotations

import copy
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bellwether.cli.main import main
from bellwether.core.reporting.report import Report
from bellwether.ports.errors import BellwetherError
from bellwether.recording.trace_files import TraceReader
from bellwether.recording.traces.trace_lines import Header, Instant, UnreadableTrace
from bellwether.simulation.replay_comparison import differences
from bellwether.simulation.replay_run import Replay
from sourcetree import ROOT
from testkit.simulation import recordings, scenarios

# A trace does not have what a hold depends on, so a broker that freezes is demoted in the replay of number 50.
FILES = sorted(p for p in (ROOT / "tests" / "scenarios").glob("[0-9][0-9]-*.yaml") if p.name[:2] != "50")


def statuses(reports: list[Report | None]) -> list[dict[int, tuple[str, str, bool]]]:
    """What was said of each broker, second by second, each change once."""
    said: list[dict[int, tuple[str, str, bool]]] = []
    for report in reports:
        if report is None:
            continue
        now = {b.broker: (str(b.verdict.state), str(b.verdict.reason), b.demoted is not None) for b in report.brokers}
        if not said or said[-1] != now:
            said.append(now)
    return said


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_recorded_scenario_is_judged_the_same_again(path: Path):
    _, scenario = scenarios.read(path)
    watched, reports = recordings.record(scenario)
    timeline = Replay(watched.header).play(watched.kept.instants)
    then = statuses(reports)
    now = [{b: (w.state, w.reason, w.demoted) for b, w in said.items()} for _, said in timeline.replayed]
    assert [n for n in now if not any(s == "Unknown" for s, _, _ in n.values())] == [
        t for t in then if not any(s == "Unknown" for s, _, _ in t.values())
    ]
    assert [str(d) for d in differences(timeline.said, timeline.replayed)] == []
    assert len(then) > 1, "something happened"


@pytest.mark.parametrize("path", [p for p in FILES if p.name[:2] in ("01", "03", "04", "06")], ids=lambda p: p.stem)
def test_leaders_move_in_the_replay_as_they_did(path: Path):
    _, scenario = scenarios.read(path)
    watched, reports = recordings.record(scenario)
    replay = Replay(watched.header)
    timeline = replay.play(watched.kept.instants)
    moved = sum(r.result.elected for r in reports if r is not None)
    assert sum(int(str(r.text).split()[0]) for r in timeline.rows if r.what == "moved") == moved > 0


def test_a_settled_stretch_costs_no_reconciles():
    _, scenario = scenarios.read(FILES[0])
    quiet: dict[str, Any] = {**scenario, "seconds": int(scenario["seconds"]) + 300}
    short, long = recordings.record(scenario)[0], recordings.record(quiet)[0]
    replay, longer = Replay(short.header), Replay(long.header)
    replay.play(short.kept.instants)
    longer.play(long.kept.instants)
    assert longer.reconciles - replay.reconciles < 30


TRACE = ROOT / "tests" / "scenarios" / "traces" / "cut-and-slow-disk.jsonl"
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "1,2", "9" * 5000, "2026-11-21T09:00:00Z", "Demoted", "\x1b[2J"]),
    st.just([]),
    st.just({}),
    st.dictionaries(st.sampled_from(["1", "x", "verdict", "brokers"]), st.integers() | st.just({}), max_size=2),
)


@cache
def real() -> tuple[Header, list[Instant]]:
    reader = TraceReader(TRACE)
    return reader.header, list(reader.instants())[:14]


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every member of a document."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += places(below, (*path, key))
    return found


@given(st.data())
def test_a_trace_that_was_tampered_with_is_played_or_refused(data: st.DataObject):
    header, instants = real()
    changed = [Instant(i.at, i.wall, copy.deepcopy(i.news)) for i in instants]
    for _ in range(data.draw(st.integers(1, 3))):
        instant = data.draw(st.sampled_from(changed))
        all_places = places(instant.news)
        if not all_places:
            continue
        *way, last = data.draw(st.sampled_from(all_places))
        parent: Any = instant.news
        for step in way:
            parent = parent[step]
        parent[last] = data.draw(JUNK)
    with suppress(BellwetherError, UnreadableTrace):
        Replay(header).play(changed)


def test_a_strangers_trace_sends_no_codes_to_the_terminal(tmp_path: Path):
    text = TRACE.read_text().replace("median 82 ms", "\\u001b[2Jmedian\\n82 ms")
    assert "\\u001b" in text
    (tmp_path / "x.jsonl").write_text(text)
    found = CliRunner().invoke(main, ["replay", str(tmp_path / "x.jsonl")])
    assert ("\x1b" in found.output, "?[2Jmedian?82 ms" in found.output) == (False, True)

"""A recorded scenario: what a recorder writes while an operator runs is judged the same when it is replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bellwether.core.reporting.report import Report
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

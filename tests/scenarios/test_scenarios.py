"""Every scenario of this folder unfolds as its golden part says.

``pytest tests/scenarios --update-golden`` writes the golden parts again: read the difference before it is committed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testkit.simulation import scenarios

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("[0-9][0-9]-*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_scenario_unfolds_as_it_did(path: Path, request: pytest.FixtureRequest):
    head, scenario = scenarios.read(path)
    timeline = scenarios.play(scenario)
    if request.config.getoption("--update-golden"):
        scenarios.write(path, head, timeline)
    assert timeline == scenarios.read(path)[1].get("golden"), "read the difference; --update-golden accepts it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_scenario_tells_what_it_shows(path: Path):
    assert len(scenarios.read(path)[1]["tells"]) > 40


def test_scenarios_are_numbered_without_a_gap():
    assert [int(p.name[:2]) for p in FILES] == list(range(1, len(FILES) + 1))


def test_the_head_of_a_scenario_is_left_as_people_wrote_it(tmp_path: Path):
    copy = tmp_path / "scenario.yaml"
    for text in ("# why\ntells: so\n", "# why\ntells: so\ngolden:\n- at: 1\n"):
        copy.write_text(text)
        head, _ = scenarios.read(copy)
        scenarios.write(copy, head, [{"at": 0}])
        assert copy.read_text() == "# why\ntells: so\ngolden:\n- at: 0\n"


def test_an_unknown_event_is_refused():
    cluster = {"brokers": 3, "topics": {"orders": 3}}
    with pytest.raises(KeyError, match="dance"):
        scenarios.play({"cluster": cluster, "seconds": 1, "events": {0: [{"dance": [1]}]}})

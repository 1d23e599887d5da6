"""The table of faults itself: complete, unique by name, and documented as it is run."""

from __future__ import annotations

import re

from faults.expectations import Demotion
from faults.scenarios import SCENARIOS
from sourcetree import ROOT

ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def test_names_are_unique_and_at_least_sixteen() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS) >= 16


def test_scenarios_of_one_stage_follow_each_other_so_that_it_is_set_once() -> None:
    stages = [one.layout.name for one in SCENARIOS]
    assert stages == sorted(stages, key=stages.index)


def test_every_expectation_is_about_brokers_that_the_stage_has() -> None:
    for one in SCENARIOS:
        assert set(one.expected.brokers) <= set(range(1, one.layout.brokers + 1)), one.name
        assert one.expected.brokers, one.name


def test_what_must_be_demoted_is_expected_to_be_sick() -> None:
    for one in SCENARIOS:
        if one.expected.demotion is Demotion.MUST:
            assert all(verdict.startswith("Sick/") for verdict in one.expected.verdicts), one.name


def test_the_documentation_tells_every_scenario_with_its_expectation() -> None:
    noted = {
        name: (what, expected)
        for name, what, expected, _ in ROW.findall((ROOT / "docs/internals/faults.md").read_text())
    }
    assert noted == {one.name: (one.what, str(one.expected)) for one in SCENARIOS}

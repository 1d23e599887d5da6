"""The benchmark of plans, on a cluster that is small enough to look at; no time is asserted."""

from __future__ import annotations

import pytest

from plancosts.__main__ import well
from plancosts.steps import Step, many_brokers, steps


@pytest.fixture(scope="module")
def found() -> dict[str, Step]:
    with many_brokers(30, 1000) as site:
        return {step.name: step for step in steps(site)}


def test_every_step_settles_without_holding_anything(found: dict[str, Step]):
    assert list(found) == [
        "first", "one demoted", "promoted", "racks preferred", "one demoted, racks", "promoted, racks",
    ]  # fmt: skip
    assert {s.held for s in found.values()} == {0}


def test_a_demotion_moves_what_the_promotion_moves_back(found: dict[str, Step]):
    for racks in ("", ", racks"):
        demoted, promoted = found[f"one demoted{racks}"], found[f"promoted{racks}"]
        assert 0 < demoted.moves == promoted.moves <= 120
    assert found["first"].mutations == 0
    assert found["racks preferred"].moves > 600


def test_a_plan_that_takes_too_long_fails_the_benchmark():
    calm = Step("first", 0, 0.5, 1.0, 1.0, 1, 0, 0, 99.0)
    assert well([calm, calm], goal=2.0)
    assert not well([calm, Step("one demoted", 5, 2.5, 1.0, 1.0, 1, 5, 0, 99.0)], goal=2.0)

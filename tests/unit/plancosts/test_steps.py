"""The benchmark of plans, on a cluster that is small enough to look at; no time is asserted."""

from __future__ import annotations

import pytest

from plancosts.__main__ import well
from plancosts.steps import Step, large, steps


@pytest.fixture(scope="module")
def found() -> list[Step]:
    return list(steps(30, 1000))


def test_every_step_settles_and_rest_asks_for_nothing(found: list[Step]):
    names = [s.name for s in found]
    assert names == [
        "racks preferred", "at rest", "one demoted", "at rest, one demoted", "promoted", "at rest again",
    ]  # fmt: skip
    assert [s.mutations for s in found if s.name.startswith("at rest")] == [0, 0, 0]
    assert [s.moves for s in found if s.name.startswith("at rest")] == [0, 0, 0]


def test_nearly_all_move_at_first_and_then_those_of_one_broker(found: list[Step]):
    first, _, demoted, _, promoted, _ = found
    assert first.moves > 600
    assert 0 < demoted.moves == promoted.moves <= 120


def test_each_partition_has_a_replica_in_each_rack():
    site = large(30, 300)
    racks = {b.id: b.rack for b in site.cluster.brokers.values()}
    assert all({racks[r] for r in p.replicas} == {"a", "b", "c"} for p in site.cluster.partitions())


def test_a_plan_that_asks_for_anything_at_rest_fails_the_benchmark():
    calm = Step("at rest", 0, 0.5, 1.0, 1, 0, 0)
    assert well([calm, calm], goal=2.0)
    assert not well([calm, Step("at rest", 0, 0.5, 1.0, 1, 3, 0)], goal=2.0)
    assert not well([calm, Step("one demoted", 5, 2.5, 1.0, 1, 5, 0)], goal=2.0)

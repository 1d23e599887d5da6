"""Turns with a periodic election over a whole world in memory, Kafka's own balancing on or off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.execution.reorder_checks import UnseenElection
from bellwether.core.planning.preferred_election import AUTO_REBALANCE_CONFIG, AutoRebalance
from bellwether.core.reporting.report import Report
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

EVERY_30 = replace(POLICY, election=replace(POLICY.election, interval_seconds=30))


@pytest.fixture
def restarted() -> MemorySite:
    """Four brokers, of which 1 was away for a moment: its leaders are elsewhere, and it is back in every ISR."""
    return site(4, {"orders": 40}).well()


def bounce(made: MemorySite, broker: int = 1) -> None:
    made.cluster.kill(broker)
    made.cluster.revive(broker)
    made.cluster.catch_up(broker)


def imbalance(made: MemorySite) -> int:
    return sum(p.leader != p.replicas[0] for p in made.cluster.partitions())


def last(operator: Operator) -> Report:
    return operator.reports[-1]


def test_leaders_are_back_once_the_interval_is_over_and_the_figures_say_so(restarted: MemorySite):
    operator = Operator(restarted, EVERY_30).reconciles(5)
    bounce(restarted)
    assert imbalance(restarted) == 10
    operator.reconciles(20)
    assert imbalance(restarted) == 10
    operator.reconciles(10)
    assert imbalance(restarted) == 0
    found = last(operator).election
    assert found is not None
    assert found.last is not None
    assert (found.last.before, found.last.elected, found.last.after) == (10, 10, 0)
    assert found.imbalance == 0


def test_leaders_that_metadata_shows_late_are_counted_once(restarted: MemorySite, monkeypatch: pytest.MonkeyPatch):
    operator = Operator(restarted, EVERY_30).reconciles(5)
    bounce(restarted)
    trailing = restarted.cluster.snapshot()
    with monkeypatch.context() as patched:
        patched.setattr(operator.world.clusters, "read", lambda: trailing)
        patched.setattr(operator.world.clusters, "partitions", lambda _topics: trailing.partitions)
        operator.reconciles(35)
        assert (imbalance(restarted), sum(one.result.elected for one in operator.reports)) == (0, 0)
    operator.reconciles(5)
    assert sum(one.result.elected for one in operator.reports) == 10


def test_elections_that_are_seen_late_are_no_part_of_the_last_run(restarted: MemorySite):
    operator = Operator(restarted, EVERY_30).reconciles(5)
    bounce(restarted)
    while (found := last(operator).election) is None or found.last is None:
        led = next(p for p in restarted.cluster.partitions() if p.leader == 2)
        assert operator.memory is not None
        unseen = {led.key: UnseenElection(1, 2, restarted.clock.now())}
        operator.memory = replace(operator.memory, unseen_elections=unseen)
        operator.reconciles(1)
    assert (last(operator).result.elected, found.last.elected) == (11, 10)


def test_without_an_interval_nothing_is_elected_or_read(restarted: MemorySite):
    operator = Operator(restarted).reconciles(2)
    bounce(restarted)
    operator.reconciles(60)
    assert imbalance(restarted) == 10
    assert last(operator).election is None
    assert operator.world.configs is not None
    assert operator.world.configs.asked == 0  # type: ignore[attr-defined]


def test_an_election_writes_no_record_and_reorders_nothing(restarted: MemorySite):
    operator = Operator(restarted, EVERY_30).reconciles(2)
    bounce(restarted)
    orders, writes = {p.name: p.replicas for p in restarted.cluster.partitions()}, restarted.store.writes
    operator.reconciles(40)
    assert {p.name: p.replicas for p in restarted.cluster.partitions()} == orders
    assert restarted.store.writes == writes


def test_balanced_cluster_is_asked_for_nothing_however_often_interval_passes(restarted: MemorySite):
    operator = Operator(restarted, EVERY_30).reconciles(2)
    before = restarted.cluster.mutations
    operator.reconciles(100)
    assert restarted.cluster.mutations == before
    assert all(r.settled for r in operator.reports)


def test_it_says_what_it_found_of_kafkas_own_balancing(restarted: MemorySite):
    for broker in restarted.cluster.brokers:
        restarted.cluster.own_settings[broker][AUTO_REBALANCE_CONFIG] = "false"
    operator = Operator(restarted, EVERY_30).reconciles(40)
    found = last(operator).election
    assert found is not None
    assert found.auto is AutoRebalance.DISABLED
    assert operator.world.configs.asked == 1  # type: ignore[union-attr]


def test_what_cannot_be_asked_is_unknown_and_election_goes_on(restarted: MemorySite):
    operator = Operator(restarted, EVERY_30)
    operator.world = replace(operator.world, configs=None)
    operator.reconciles(2)
    bounce(restarted)
    operator.reconciles(40)
    found = last(operator).election
    assert found is not None
    assert found.auto is AutoRebalance.UNKNOWN
    assert imbalance(restarted) == 0

"""What metrics say, turn after turn, of orders that are away: for the racks, in a drain, on a way back in waves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Policy, PromotionWaves
from bellwether.core.signals import OverrideState, Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

IN_A = replace(POLICY, placement=Placement(Preference(("a",))))
DAILY = replace(
    POLICY, promotion=replace(POLICY.promotion, waves=PromotionWaves(pause_seconds=86400, skip_up_to_leaders=0))
)


class Watched(Operator):
    """An operator whose reconciles are exported as metrics."""

    def __init__(self, made: MemorySite, policy: Policy = POLICY) -> None:
        super().__init__(made, policy)
        self.metrics = OperatorMetrics()

    def metric(self, name: str, **labels: str) -> float | None:
        """A series after the last turn."""
        self.metrics.record_reconcile("default", "main", 0.1, self.reports[-1], 0)
        all_labels = {"namespace": "default", "policy": "main", **labels}
        return self.metrics.registry.get_sample_value(f"bellwether_{name}", all_labels)

    @property
    def away(self) -> tuple[float | None, float | None]:
        """How many orders are displaced, and how many of them for the racks' sake."""
        return self.metric("partitions_displaced"), self.metric("partitions_displaced_for_racks")


@pytest.fixture
def racked() -> MemorySite:
    """Four brokers in two racks: two of eight partitions are at home in rack b, with a replica in rack a."""
    made = MemorySite(MemoryCluster({1: "a", 2: "b", 3: "a", 4: "b"}))
    made.cluster.create_topic("orders", 8, 2)
    return made.well()


def test_partitions_away_for_their_racks_are_reported_as_such(racked: MemorySite):
    operator = Watched(racked, IN_A)
    operator.reconciles(120)
    assert operator.away == (2, 2)


def test_demotion_and_its_end_leave_nothing_away_but_for_racks(racked: MemorySite):
    operator = Watched(racked, IN_A)
    operator.reconciles(5)
    racked.signals.say(1, Reading.FAILING)
    operator.reconciles(5)
    assert operator.away == (3, 1)
    racked.signals.say(1, Reading.PASSING)
    operator.reconciles(120)
    assert operator.away == (2, 2)


def test_without_preferred_racks_partitions_away_are_to_return(racked: MemorySite):
    operator = Watched(racked, IN_A)
    operator.reconciles(5)
    operator.policy = replace(POLICY, suspend=True)
    operator.reconciles(1)
    assert operator.away == (2, 0)
    operator.policy = POLICY
    operator.reconciles(60)
    assert operator.away == (0, 0)


def test_a_drained_broker_that_is_stopped_for_hours_is_demoted_all_the_while():
    made = site(3, {"orders": 6}).well()
    operator = Watched(made)
    operator.reconciles(2)
    made.signals.drain(2)
    operator.reconciles(3)
    made.cluster.kill(2)
    for _ in range(30):
        operator.reconciles(1, seconds=300)
        displaced, _ = operator.away
        assert displaced
        assert operator.metric("broker_demoted", broker="2") == 1


def test_a_broker_that_comes_back_over_days_waits_for_time_alone_as_metrics_say():
    made = site(4, {"orders": 200}).well()
    operator = Watched(made, DAILY)
    operator.reconciles(2)
    made.signals.override(1, OverrideState.DEMOTED)
    operator.reconciles(3)
    made.signals.lift(1)
    operator.reconciles(5)
    for _ in range(20):
        operator.reconciles(1, seconds=300)
        displaced, _ = operator.away
        assert displaced
        assert operator.metric("broker_demoted", broker="1") == 0
        assert operator.metric("broker_restoration_ratio", broker="1") == 0.1
        assert operator.metric("broker_restoration_blocked", broker="1", reason="RestoringInWaves") == 1


def test_a_broker_that_does_not_come_on_tells_what_it_waits_for():
    made = site(4, {"orders": 200}).well()
    operator = Watched(made, replace(DAILY, promotion=replace(DAILY.promotion, waves=PromotionWaves(pause_seconds=60))))
    operator.reconciles(2)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(3)
    made.signals.say(1, Reading.PASSING)
    operator.reconciles(30)
    assert operator.metric("broker_restoration_blocked", broker="1", reason="RestoringInWaves") == 1
    made.signals.say(1, Reading.UNKNOWN)
    operator.reconciles(60)
    assert operator.metric("broker_restoration_blocked", broker="1", reason="RestoringInWaves") is None
    reasons = {
        d.wait.reason for b in operator.reports[-1].brokers if (d := b.restoration) is not None and d.wait is not None
    }
    assert reasons
    assert [operator.metric("broker_restoration_blocked", broker="1", reason=str(reason)) for reason in reasons] == [1]

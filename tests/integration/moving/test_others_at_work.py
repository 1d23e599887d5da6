"""Others who move replicas of real brokers: recognised by what they leave in Kafka, waited for, gone on without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bellwether.core.condition import Condition
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.signals import OverrideState
from testkit.kafka.contract_clusters import KafkaSubject, partition
from testkit.kafka.kafka_site import KafkaSite
from testkit.simulation.operators import Operator

pytestmark = pytest.mark.kafka

MARK = "leader.replication.throttled.replicas"


def waiting(said: Report) -> Condition | None:
    return next((c for c in said.conditions if c.type == "WaitingForExternalOperation"), None)


def turn_until(operator: Operator, holds: Callable[[Report], bool]) -> Report:
    """Turns until one says so: brokers hear of a reassignment in their own time."""
    for _ in range(300):
        said = operator.reconcile()
        if said is not None and holds(said):
            return said
        operator.site.clock.advance(0.1)
    raise AssertionError(operator.reports[-1].conditions)


@pytest.fixture
def cruise_control(others: KafkaSubject) -> Iterator[Callable[[], None]]:
    """Makes a topic that Cruise Control would have; it goes with the test."""
    made: list[str] = []
    yield lambda: made.append(others.create((2, 3, 1), topic="__CruiseControlMetrics"))
    for topic in made:
        KafkaSubject.delete(others, topic)  # whose broker may be dead


@pytest.mark.parametrize(
    "mark",
    [
        "none",
        pytest.param("throttle", marks=pytest.mark.slow),
        pytest.param("cruise control", marks=pytest.mark.slow),
    ],
)
def test_a_move_that_goes_on_holds_its_partition_and_a_rebalance_holds_promotion(
    site: KafkaSite, others: KafkaSubject, operator: Operator, cruise_control: Callable[[], None], mark: str
) -> None:
    held, free = others.create((1, 2, 3)), others.create((1, 2, 3))
    if mark == "cruise control":
        cruise_control()
    if mark == "throttle":
        others.configure(held, MARK, "0:2,0:3,0:4")
        others.eventually(lambda: others.configs.topic_configs([held], [MARK]) == {held: {MARK: "0:2,0:3,0:4"}})
    site.signals.override(1, OverrideState.DEMOTED)
    operator.settle(seconds=0.1)
    others.eventually(lambda: partition(others, free).replicas[-1] == 1)
    # Its target is dead, so that it goes on for as long as this test wants.
    others.kill(4)
    name = TopicPartition(held, 0)
    KafkaSubject.reassign(others, held, (*partition(others, held).replicas, 4))
    turn_until(operator, lambda said: waiting(said) is not None)

    site.signals.lift(1)
    expected = Reason.REASSIGNING if mark == "none" else Reason.EXTERNAL_OPERATION
    said = turn_until(operator, lambda said: (w := waiting(said)) is not None and w.reason is expected)
    operator.settle(seconds=0.1)
    waits = waiting(said)
    assert waits is not None
    if mark == "none":
        others.eventually(lambda: partition(others, free).replicas == (1, 2, 3))
        assert f"{held}-0" in waits.message
    else:
        assert partition(others, free).replicas != (1, 2, 3)
        assert "broker 1" in waits.message

    assert others.mover.cancel([name])[name].ok
    others.eventually(lambda: not partition(others, held).reassigning)
    turn_until(operator, lambda said: waiting(said) is None)
    operator.settle(seconds=0.1)
    others.eventually(lambda: partition(others, free).replicas == (1, 2, 3))
    others.eventually(lambda: partition(others, held).replicas == (1, 2, 3))

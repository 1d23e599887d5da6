"""Others who move replicas of real brokers: recognised by what they leave in Kafka, waited for, gone on without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bellwether.core.clusters import TopicPartition
from bellwether.core.reasons import Reason
from bellwether.core.signals import OverrideState
from testkit.kafkasites import KafkaSite
from testkit.operators import Operator
from testkit.subjects import KafkaSubject, partition

pytestmark = pytest.mark.kafka

MARK = "leader.replication.throttled.replicas"


@pytest.fixture
def cruise_control(others: KafkaSubject) -> Iterator[Callable[[], None]]:
    """Makes a topic that Cruise Control would have; it goes with the test."""
    made: list[str] = []
    yield lambda: made.append(others.create((2, 3, 1), topic="__CruiseControlMetrics"))
    for topic in made:
        others.delete(topic)


@pytest.mark.parametrize("mark", ["none", "throttle", "cruise control"])
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
    assert partition(others, free).replicas[-1] == 1
    # Its target is dead, so that it goes on for as long as this test wants.
    others.kill(4)
    name = TopicPartition(held, 0)
    KafkaSubject.reassign(others, held, (*partition(others, held).replicas, 4))
    site.everywhere(lambda c: any(p.reassigning for p in c.partitions if p.topic == held))

    site.signals.lift(1)
    for _ in range(3):
        said = operator.turn()
        assert said is not None
    waits = said.condition("WaitingForOthers")
    expected = Reason.REASSIGNING if mark == "none" else Reason.OTHERS_REBALANCING
    assert (waits.status, waits.reason) == (True, expected)
    assert (partition(others, free).replicas == (1, 2, 3)) is (mark == "none")
    if mark == "none":
        assert f"{held}-0" in waits.message
    else:
        assert "broker 1" in waits.message

    assert others.mover.cancel([name])[name].ok
    site.everywhere(lambda c: not any(p.reassigning for p in c.partitions))
    operator.settle(seconds=0.1)
    assert "WaitingForOthers" not in {c.type for c in operator.reports[-1].conditions}
    assert partition(others, free).replicas == (1, 2, 3)
    assert partition(others, held).replicas == (1, 2, 3)

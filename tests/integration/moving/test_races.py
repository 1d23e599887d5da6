"""What others do between our check and our request: Kafka's reorder has no compare-and-set, so the race can be lost.

Each test says what is left as the others wanted it, what is not, and what is reported. Broker 1 is demoted throughout.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bellwether.core.model.cluster import Partition, TopicPartition
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.signals import OverrideState
from bellwether.ports.kafka import Reorder
from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject, partition
from testkit.kafka.kafka_site import KafkaSite, Race
from testkit.simulation.operators import Operator

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic(others: KafkaSubject) -> str:
    """One partition on brokers 1, 2 and 3, led by 1."""
    return others.create((1, 2, 3))


@pytest.fixture
def raced(site: KafkaSite, operator: Operator, race: Race, topic: str) -> Callable[[Callable[[], object]], Report]:
    """Demote broker 1 in a turn whose reorder of the topic comes right behind a change by another client."""

    def run(act: Callable[[], object]) -> Report:
        site.signals.override(1, OverrideState.DEMOTED)
        race.before(topic, act)
        said = operator.reconcile()
        assert said is not None
        return said

    return run


def promote(site: KafkaSite, operator: Operator) -> None:
    site.signals.lift(1)
    operator.settle(seconds=0.1)
    assert site.store.record is not None
    assert site.store.record.empty


def shows(others: KafkaSubject, topic: str, holds: Callable[[Partition], bool]) -> None:
    """Wait until the one partition shows it: the change may have been made through another broker than ours."""
    others.eventually(lambda: holds(partition(others, topic)))


def touched(said: Report, topic: str) -> str:
    """What is said of the one partition that was touched; the run stopped with it."""
    assert said.result.stopped is not None
    assert said.result.stopped.reason is Reason.REPLICA_SET_CONFLICT
    assert said.condition("Settled").reason is Reason.REPLICA_SET_CONFLICT
    (hold,) = said.result.touched
    assert (hold.topic, hold.key.partition, hold.reason) == (topic, 0, Reason.REPLICA_SET_CONFLICT)
    return hold.message


@pytest.mark.slow
def test_a_topic_that_is_recreated_elsewhere_keeps_its_new_replicas(
    whole: KafkaCluster,
    site: KafkaSite,
    others: KafkaSubject,
    operator: Operator,
    topic: str,
    raced: Callable[..., Report],
) -> None:
    def recreate() -> None:
        others.delete(topic)
        others.create((4, 2, 3), topic=topic)
        whole.broker(1).pause()  # it cannot take over what our request gives it, so that there is time to cancel

    said = raced(recreate)
    assert "cancelled" in touched(said, topic)
    # The replicas are those of the new topic; their order was ours for a moment, and is not restored.
    shows(others, topic, lambda p: (sorted(p.replicas), p.reassigning) == ([2, 3, 4], False))
    # Kafka's own balancing, every five minutes, may have elected who is first now.
    now = partition(others, topic)
    assert now.leader in (4, now.replicas[0])
    whole.mend()
    operator.settle(seconds=0.1)
    notes = {(n.topic, n.reason) for r in operator.reports for n in r.notes}
    assert (topic, Reason.CHANGED_SINCE_PLAN) in notes, "the baseline of the old topic is dropped and named"
    promote(site, operator)
    assert sorted(partition(others, topic).replicas) == [2, 3, 4]


def test_a_topic_that_is_recreated_in_place_is_named_and_its_replicas_stay(
    site: KafkaSite, others: KafkaSubject, operator: Operator, topic: str, raced: Callable[..., Report]
) -> None:
    def recreate() -> None:
        others.delete(topic)
        others.create((1, 3, 2), topic=topic)

    said = raced(recreate)
    assert "the topic was recreated at the same time" in touched(said, topic)
    assert sorted(partition(others, topic).replicas) == [1, 2, 3]
    operator.settle(seconds=0.1)
    shows(others, topic, lambda p: p.leader not in (1, None))
    promote(site, operator)
    assert sorted(partition(others, topic).replicas) == [1, 2, 3]


def test_raised_replication_factor_stays_since_4_1_and_is_named_before(
    site: KafkaSite, others: KafkaSubject, operator: Operator, topic: str, raced: Callable[..., Report]
) -> None:
    said = raced(lambda: others.reassign(topic, (1, 2, 3, 4)))
    if others.version < (4, 1):
        assert "start it again" in touched(said, topic)
        operator.settle(seconds=0.1)
        promote(site, operator)
        shows(others, topic, lambda p: (p.replicas, p.leader) == ((1, 2, 3), 1))
        return
    assert said.result.touched == ()
    (hold,) = [h for h in said.result.holds if h.topic == topic]
    assert hold.reason is Reason.REQUEST_REFUSED
    assert "INVALID_REPLICATION_FACTOR" in hold.message
    assert partition(others, topic).replicas == (1, 2, 3, 4)
    operator.settle(seconds=0.1)
    shows(others, topic, lambda p: p.replicas[-1] == 1 and p.leader not in (1, None))
    assert sorted(partition(others, topic).replicas) == [1, 2, 3, 4]
    promote(site, operator)
    shows(others, topic, lambda p: (p.replicas, p.leader) == ((1, 2, 3, 4), 1))


def test_a_foreign_reassignment_in_flight_is_lost_and_named_and_the_replicas_are_as_before(
    whole: KafkaCluster,
    site: KafkaSite,
    others: KafkaSubject,
    operator: Operator,
    topic: str,
    raced: Callable[..., Report],
) -> None:
    def reassign() -> None:
        whole.broker(4).pause()
        assert others.mover.reorder([Reorder(TopicPartition(topic, 0), (1, 2, 4))])[TopicPartition(topic, 0)].ok
        others.eventually(lambda: partition(others, topic).adding == (4,))

    said = raced(reassign)
    assert "start it again" in touched(said, topic)
    # Kafka keeps no trace of what the overridden reassignment was to remove: it cannot be put back, only named.
    shows(others, topic, lambda p: (sorted(p.replicas), sorted(p.isr), p.reassigning) == ([1, 2, 3], [1, 2, 3], False))
    whole.mend()
    operator.settle(seconds=0.1)
    shows(others, topic, lambda p: p.leader not in (1, None))
    promote(site, operator)
    shows(others, topic, lambda p: (p.replicas, p.leader) == ((1, 2, 3), 1))


def test_a_foreign_reassignment_that_has_just_ended_is_kept(
    whole: KafkaCluster,
    site: KafkaSite,
    others: KafkaSubject,
    operator: Operator,
    topic: str,
    raced: Callable[..., Report],
) -> None:
    def reassign() -> None:
        others.reassign(topic, (1, 2, 4))
        whole.broker(3).pause()  # our request gives the replica back to 3, and there is time to cancel that

    said = raced(reassign)
    assert "cancelled" in touched(said, topic)
    shows(others, topic, lambda p: (sorted(p.replicas), p.reassigning) == ([1, 2, 4], False))
    whole.mend()
    operator.settle(seconds=0.1)
    notes = {(n.topic, n.reason) for r in operator.reports for n in r.notes}
    assert (topic, Reason.CHANGED_SINCE_PLAN) in notes
    shows(others, topic, lambda p: p.leader not in (1, None))
    promote(site, operator)
    shows(others, topic, lambda p: (p.replicas, p.leader) == ((1, 2, 4), 1))


def test_a_foreign_reassignment_that_our_reorder_has_undone_before_we_look_is_named(
    site: KafkaSite,
    others: KafkaSubject,
    operator: Operator,
    race: Race,
    topic: str,
    raced: Callable[..., Report],
) -> None:
    # Nothing is in flight any more when we read back; only the leader's epoch tells that replicas came and went.
    race.behind(topic, lambda: others.eventually(lambda: not partition(others, topic).reassigning))
    said = raced(lambda: others.reassign(topic, (1, 2, 4)))
    assert "start it again" in touched(said, topic)
    assert sorted(partition(others, topic).replicas) == [1, 2, 3], "their order is lost: Kafka keeps no trace of it"
    operator.settle(seconds=0.1)
    promote(site, operator)
    shows(others, topic, lambda p: p.replicas == (1, 2, 3))


def test_leader_that_comes_and_goes_is_not_called_lost_reassignment(
    site: KafkaSite, others: KafkaSubject, operator: Operator, topic: str, raced: Callable[..., Report]
) -> None:
    name = TopicPartition(topic, 0)

    def there_and_back() -> None:
        for order in ((2, 1, 3), (1, 2, 3)):
            assert others.mover.reorder([Reorder(name, order)])[name].ok
            assert others.mover.elect([name])[name].ok
            others.eventually(lambda order=order: partition(others, topic).leader == order[0])

    said = raced(there_and_back)
    assert "or its leader left and returned" in touched(said, topic), "both are possible, so both are said"
    operator.settle(seconds=0.1)
    shows(others, topic, lambda p: p.leader not in (1, None))
    promote(site, operator)
    shows(others, topic, lambda p: p.replicas == (1, 2, 3))


def test_a_foreign_reorder_is_overwritten_and_no_replica_moves(
    site: KafkaSite, others: KafkaSubject, operator: Operator, topic: str, raced: Callable[..., Report]
) -> None:
    name = TopicPartition(topic, 0)
    epoch = partition(others, topic).leader_epoch

    def reorder() -> None:
        assert others.mover.reorder([Reorder(name, (3, 1, 2))])[name].ok
        others.eventually(lambda: partition(others, topic).replicas == (3, 1, 2))
        assert partition(others, topic).leader_epoch == epoch, "an order leaves no trace that we could find"

    said = raced(reorder)
    assert said.result.touched == ()
    assert said.result.stopped is None
    shows(others, topic, lambda p: (sorted(p.replicas), p.replicas[-1]) == ([1, 2, 3], 1))
    # Their order, set in the very moment of ours, is lost: the baseline is the order that was checked.
    promote(site, operator)
    shows(others, topic, lambda p: (p.replicas, p.leader) == ((1, 2, 3), 1))

"""An unclean election: refused where it need not be, its bounds shown first, held only once the loss was accepted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.cli.diagnosis.cluster_examination import Examination
from bellwether.cli.offline.unclean_election import NoLeaderElected, Refused, elect_uncleanly
from bellwether.core.doctor.risks import LogEndSample, Risk
from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import Outcome
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import ManualClock
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemoryUnclean
from testkit.simulation.risk_fixture import MemoryWard
from testkit.values.builders import START, name
from testkit.values.strategies import Act, deeds, memory_clusters

ORDERS = name("orders")


class Person:
    """Who is asked, what was printed, and what is answered; ``before`` happens while the person thinks."""

    def __init__(self, answer: str = "orders-0", before: Callable[[], object] = lambda: None) -> None:
        self.noted: list[str] = []
        self.asked: list[str] = []
        self._answer, self._before = answer, before

    def ask(self, question: str) -> str:
        self.asked.append(question)
        self._before()
        return self._answer


def lost(min_isr: int = 2) -> MemoryCluster:
    """Broker 1 was the last in the ISR of orders-0, and is gone; 2 and 3 live."""
    kafka = MemoryCluster(3, version=(4, 0))
    kafka.create_topic("orders", assignment=[(1, 2, 3)], min_isr=min_isr)
    kafka.shrink_isr(ORDERS, 2)
    kafka.shrink_isr(ORDERS, 3)
    kafka.kill(1)
    return kafka


def attempt(
    kafka: MemoryCluster,
    person: Person | None = None,
    *,
    accepted: bool = True,
    risk_summary: MemoryWard | None = None,
    partition: TopicPartition = ORDERS,
    elections: MemoryUnclean | None = None,
) -> tuple[Examination, MemoryUnclean]:
    someone, held = person or Person(), elections or MemoryUnclean(kafka)
    examiner = (risk_summary or MemoryWard(kafka)).examiner()
    return elect_uncleanly(
        partition, examiner.examine, held, ManualClock(), someone.noted.append, someone.ask, accepted=accepted
    ), held


def test_the_first_of_the_order_that_lives_leads_afterwards():
    kafka = lost()
    after, elections = attempt(kafka)
    assert elections.asked == [ORDERS]
    stands = after.of(ORDERS)
    assert (stands.partition.leader, stands.partition.isr, stands.risk) == (2, (2,), Risk.UNDER_MIN_ISR)


def test_the_bounds_of_loss_are_printed_before_the_question():
    kafka = lost()
    p = kafka.partition("orders")
    risk_summary = MemoryWard(kafka, {ORDERS: {2: 70, 3: 80}}, {p.key: LogEndSample(100, START, 1, p.leader_epoch - 1)})
    person = Person(answer="no")
    with pytest.raises(Refused, match="the answer was not orders-0"):
        attempt(kafka, person, risk_summary=risk_summary)
    text = "\n".join(person.noted)
    assert_wording(text, person.asked)


def test_without_acceptance_the_bounds_are_printed_and_nothing_is_done():
    kafka, person = lost(), Person()
    elections = MemoryUnclean(kafka)
    with pytest.raises(Refused, match="to accept this loss, add --accept-loss"):
        attempt(kafka, person, accepted=False, elections=elections)
    assert any("the loss is unknown" in line for line in person.noted)
    assert person.asked == []
    assert elections.asked == []


@pytest.mark.parametrize("answer", ["", "yes", "orders-1", "orders"])
def test_only_the_partitions_own_name_confirms(answer: str):
    kafka = lost()
    elections = MemoryUnclean(kafka)
    with pytest.raises(Refused):
        attempt(kafka, Person(answer), elections=elections)
    assert elections.asked == []


def test_a_partition_that_has_a_leader_is_left_alone():
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", assignment=[(1, 2, 3)])
    with pytest.raises(Refused, match="its leader is broker 1"):
        attempt(kafka)


def test_a_partition_that_another_may_lead_without_loss_is_left_to_kafka():
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", assignment=[(1, 2, 3)])
    kafka.freeze(1)
    with pytest.raises(Refused, match=r"\[2, 3\] can lead without loss"):
        attempt(kafka)


def test_a_leader_that_the_controller_has_not_given_up_yet_is_waited_for():
    kafka = lost()
    kafka.revive(1)
    for other in (2, 3):
        if other in kafka.partition("orders").isr:
            kafka.shrink_isr(ORDERS, other)
    kafka.freeze(1)
    with pytest.raises(Refused, match="still has broker 1 as the leader of orders-0"):
        attempt(kafka)


def test_without_a_live_replica_no_leader_can_be_elected():
    kafka = lost()
    kafka.kill(2)
    kafka.kill(3)
    kafka.brokers[4] = type(kafka.brokers[3])(4)
    with pytest.raises(Refused, match="no replica of orders-0 is alive"):
        attempt(kafka)


def test_a_replica_back_before_confirmation_leads_without_loss():
    kafka = lost()
    elections = MemoryUnclean(kafka)
    with pytest.raises(Refused, match="its leader is broker 1"):
        attempt(kafka, Person(before=lambda: kafka.revive(1)), elections=elections)
    assert elections.asked == []


def test_another_candidate_than_the_one_that_was_shown_is_not_elected():
    kafka = lost()
    elections = MemoryUnclean(kafka)
    with pytest.raises(Refused, match="changed in the meantime"):
        attempt(kafka, Person(before=lambda: kafka.kill(2)), elections=elections)
    assert elections.asked == []


def test_what_kafka_refuses_is_said():
    class Refusing(MemoryUnclean):
        def elect(self, name: TopicPartition) -> Outcome:
            return Outcome("ELECTION_NOT_NEEDED", f"{name} has a leader.")

    kafka = lost()
    with pytest.raises(Refused, match="ELECTION_NOT_NEEDED"):
        attempt(kafka, elections=Refusing(kafka))


@given(memory_clusters(), st.lists(deeds(), max_size=10), st.integers(0, 20))
def test_no_unclean_election_while_an_isr_or_elr_member_lives(
    kafka: MemoryCluster, acts: list[tuple[str, Act]], pick: int
):
    for _, act in acts:
        act(kafka)
    chosen = kafka.partitions()
    if not chosen or not any(b.alive and not b.frozen for b in kafka.brokers.values()):
        return
    p = chosen[pick % len(chosen)]
    may_lead = kafka.snapshot().live.intersection((*p.isr, *p.elr))
    for broker in kafka.brokers:
        kafka.thaw(broker)
    elections = MemoryUnclean(kafka)
    try:
        attempt(kafka, Person(answer=str(p.name)), partition=p.name, elections=elections)
    except Refused:
        assert elections.asked == []
    else:
        assert elections.asked == [p.name]
        assert not may_lead


class Sent(MemoryUnclean):
    """Holds the election, and what comes back says otherwise, or nothing; ``then`` happens before it is looked at."""

    def __init__(
        self, kafka: MemoryCluster, answer: Outcome | Transient, then: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__(kafka)
        self._answer, self._then = answer, then

    def elect(self, name: TopicPartition) -> Outcome:
        super().elect(name)
        self._then()
        if isinstance(self._answer, Transient):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Outcome("REQUEST_TIMED_OUT", "it took too long"), id="Kafka lost patience"),
        pytest.param(Transient("b:1 broke off; the request was sent and may have been carried out"), id="no answer"),
    ],
)
def test_an_election_without_an_answer_is_still_seen(answer: Outcome | Transient):
    kafka = lost()
    after, _ = attempt(kafka, elections=Sent(kafka, answer))
    assert after.of(ORDERS).partition.leader == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(Outcome(), r"\(Kafka accepted the request\), but after 15 s it has no leader", id="taken"),
        pytest.param(
            Outcome("REQUEST_TIMED_OUT", ""), r"\(Kafka returned REQUEST_TIMED_OUT\), but after 15 s", id="late"
        ),
        pytest.param(
            Transient("may have been carried out"), r"may have been carried out\), but after 15 s", id="no answer"
        ),
    ],
)
def test_without_a_leader_after_the_request_it_is_an_error(answer: Outcome | Transient, said: str):
    kafka = lost()

    def fall() -> None:
        """The elected one is lost in the same moment; broker 3 lives on and is not in the ISR."""
        kafka.kill(2)

    with pytest.raises(NoLeaderElected, match=said) as noted:
        attempt(kafka, elections=Sent(kafka, answer, fall))
    assert "nothing was done" not in str(noted.value)


def test_an_unreadable_cluster_after_the_request_says_it_was_sent():
    kafka = lost()

    def fall() -> None:
        for broker in (2, 3):
            kafka.kill(broker)

    with pytest.raises(NoLeaderElected, match="an unclean election of orders-0 was requested"):
        attempt(kafka, elections=Sent(kafka, Outcome(), fall))

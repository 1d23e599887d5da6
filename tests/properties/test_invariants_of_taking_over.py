"""What outlives a process: invariants 6 (record first) and 7 (one mover), whatever dies, is lost or arrives late."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.execution.arrivals import ARRIVAL_SECONDS
from bellwether.core.model.cluster import PartitionKey, TopicPartition
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.fault_injection import Fate, Faults
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import Play, Step, perform, scripts, trouble
from testkit.values.builders import site
from testkit.values.strategies import memory_clusters


@given(memory_clusters(), scripts(trouble()))
def test_invariant_6_whatever_dies_or_is_lost_the_baselines_come_back_exactly(
    cluster: MemoryCluster, script: list[Step]
):
    play = Play(cluster)
    baseline = play.orders
    perform(play, script)
    assert [s for s in play.watcher.violations if s.startswith("invariant 6")] == []
    play.calm()
    play.everyone(Reading.PASSING)
    play.succeed()
    play.reconciles(90)
    assert play.orders == baseline
    assert all(p.leader == p.replicas[0] for p in cluster.partitions())
    assert play.site.store.record is not None
    assert play.site.store.record.empty


class Delay:
    """How long a request without an answer is on its way: a frozen broker holds it without any bound.

    ``frozen_seconds`` while the asked broker answers nothing, then ``forwarding_seconds`` while it answers and
    forwards: Kafka ends that after 60 s.
    """

    def __init__(self, frozen_seconds: float, forwarding_seconds: float, arrives: bool) -> None:
        self.frozen_seconds = frozen_seconds
        self.forwarding_seconds = forwarding_seconds
        self.arrives = arrives

    def __repr__(self) -> str:
        return f"Delay({self.frozen_seconds}, {self.forwarding_seconds}, arrives={self.arrives})"

    def pass_over(self, operator: Operator, faults: Faults) -> None:
        """Reconciles of an operator until the request arrives, or is dropped."""
        operator.reconciles(8, self.frozen_seconds / 8)
        faults.resumed = True
        operator.reconciles(5, self.forwarding_seconds / 5)
        if self.arrives:
            faults.deliver()
        else:
            faults.drop()
        operator.reconcile()


def delays() -> st.SearchStrategy[Delay]:
    return st.builds(Delay, st.floats(0, 100_000), st.floats(0, 59), st.booleans())


@given(st.integers(0, 3), st.booleans(), delays(), st.sampled_from(["reorder", "elect"]))
def test_invariant_7_a_batch_that_arrives_at_any_time_after_a_take_over_is_undone(
    after: int, healed: bool, delay: Delay, kind: str
):
    made = site(4, {"orders": 8, "__consumer_offsets": 4}).well()
    baseline = {p.key: p.replicas for p in made.cluster.partitions()}
    faults = Faults()
    old = Operator(made, identity="old", faults=faults).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    faults.fail_next(kind, Fate.LATE, after=after)
    old.reconciles(1)
    made.clock.advance(20)
    if healed:
        made.signals.say(1, Reading.PASSING)
    new = Operator(made, identity="new", faults=faults, arrival_seconds=ARRIVAL_SECONDS).reconciles(3)
    delay.pass_over(new, faults)
    old.reconciles(2)
    assert old.fenced
    new.reconciles(60)
    if not healed:
        assert made.cluster.snapshot().leaders()[1] == 0
        made.signals.say(1, Reading.PASSING)
        new.reconciles(60)
    assert {p.key: p.replicas for p in made.cluster.partitions()} == baseline
    made.cluster.auto_balance()  # Kafka's, which elects what was not elected within RESTORE_TIMEOUT
    assert made.cluster.snapshot().leaders()[1] == 3
    assert [note for said in new.reports for note in said.notes] == [], "an order of ours is not another tool's"
    new.reconciles(3, ARRIVAL_SECONDS)
    assert made.store.record is not None
    assert made.store.record.empty, "what can no longer arrive is forgotten"


@given(delays(), st.booleans(), st.booleans())
def test_invariant_7_a_late_batch_of_a_demotion_that_was_ended_is_undone_while_another_broker_is_demoted(
    delay: Delay, restarted: bool, returning: bool
):
    made = site(4, {"orders": 8}).well()
    baseline = {p.key: p.replicas for p in made.cluster.partitions()}
    faults = Faults()
    operator = Operator(made, faults=faults, arrival_seconds=ARRIVAL_SECONDS).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    if returning:
        operator.reconciles(2)
        made.signals.say(1, Reading.PASSING)
        made.clock.advance(20)
    faults.fail_next("reorder", Fate.LATE)
    operator.reconciles(3)
    made.signals.say(1, Reading.PASSING)
    made.signals.say(2, Reading.FAILING)
    if restarted:
        operator = Operator(made, faults=faults, arrival_seconds=ARRIVAL_SECONDS)
    operator.reconciles(20)
    delay.pass_over(operator, faults)
    operator.reconciles(20)
    assert made.cluster.snapshot().leaders()[2] == 0
    made.signals.say(2, Reading.PASSING)
    operator.reconciles(60)
    assert {p.key: p.replicas for p in made.cluster.partitions()} == baseline
    assert [note for said in operator.reports for note in said.notes] == []


def with_outstanding_reorder() -> tuple[MemorySite, Operator, Faults, dict[PartitionKey, tuple[int, ...]]]:
    """A demotion whose reorder was sent and not answered, and ended since; and the orders of before."""
    made = site(3, {"orders": 4}).well()
    baseline = {p.key: p.replicas for p in made.cluster.partitions()}
    faults = Faults()
    operator = Operator(made, faults=faults, arrival_seconds=ARRIVAL_SECONDS).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    faults.fail_next("reorder", Fate.LATE)
    operator.reconciles(1)
    made.signals.say(1, Reading.PASSING)
    operator.reconciles(20)
    return made, operator, faults, baseline


@given(delays())
def test_invariant_7_an_order_that_comes_back_when_nothing_is_outstanding_is_another_tools(delay: Delay):
    made, operator, faults, _ = with_outstanding_reorder()
    ours = dict(made.store.record.entries) if made.store.record is not None else {}
    delay.pass_over(operator, faults)
    operator.reconciles(10)
    key, entry = next(iter(ours.items()))
    name = TopicPartition(entry.topic, key.partition)
    sent = entry.outstanding[-1].order
    operator.reconciles(3, ARRIVAL_SECONDS)
    made.cluster.foreign_reorder(name, sent)
    operator.reconciles(3, ARRIVAL_SECONDS)
    if delay.arrives:
        assert made.cluster.partition(*name).replicas == sent, "another tool wants it"
    assert made.store.record is not None
    assert made.store.record.empty


def test_invariant_7_reorder_that_broker_forwards_twice_is_undone_twice():
    made, operator, faults, baseline = with_outstanding_reorder()
    for again in (True, False):
        assert faults.deliver(again=again)
        assert {p.key: p.replicas for p in made.cluster.partitions()} != baseline
        operator.reconciles(20)
        assert {p.key: p.replicas for p in made.cluster.partitions()} == baseline
    operator.reconciles(3, ARRIVAL_SECONDS)
    assert made.store.record is not None
    assert made.store.record.empty
    assert [note for said in operator.reports for note in said.notes] == []


@given(st.floats(0, 5))
def test_invariant_7_nothing_is_sent_when_the_lease_does_not_outlast_the_request(left: float):
    made = site().well()
    operator = Operator(made).reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.world.leadership.seconds = left  # type: ignore[attr-defined]
    before = made.cluster.mutations
    operator.reconcile()
    assert (made.cluster.mutations == before) == (left <= operator.world.leaders.request_timeout_seconds)

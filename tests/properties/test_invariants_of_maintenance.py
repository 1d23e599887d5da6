"""The invariants while brokers are drained and returned, by people and by their pods, with any other events."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.undo_record import Cause, EntryState
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Demotion, Promotion, PromotionWaves
from bellwether.core.signals import OverrideState, Reading, SignalType
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.simulation.scenario_driver import Play, Step, befalling, maintaining, perform, scripts, trouble
from testkit.values.builders import site
from testkit.values.strategies import memory_clusters

AT_ONCE = replace(POLICY, promotion=Promotion(stabilization_seconds=5, waves=PromotionWaves(steps=(100,))))
FEWER = settings(max_examples=settings().max_examples // 3)
"""For what goes through many turns with each example."""
PASSING, FAILING, UNKNOWN = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN
EIGHT = st.lists(st.sampled_from([PASSING, FAILING, UNKNOWN]), min_size=8, max_size=8)
THEN_UNKNOWN = [FAILING, *[PASSING] * 5, FAILING, UNKNOWN]
THEN_FAILING = [*[PASSING] * 4, FAILING, PASSING, PASSING, FAILING]


@given(memory_clusters(), scripts(maintaining(), maintaining(), befalling(), trouble()))
def test_invariants_1_2_6_and_10_hold_under_drains(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    assert play.watcher.violations == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@given(memory_clusters(), scripts(maintaining(), maintaining(), befalling(), trouble()), st.integers(0, 4))
def test_invariant_3_a_drained_broker_leads_only_where_a_named_reason_holds_the_move(
    cluster: MemoryCluster, script: list[Step], drained: int
):
    play = Play(cluster)
    perform(play, script)
    play.hear()
    play.drain(drained, None)
    # Long enough for an answer to a tool that contests an order.
    play.reconciles(40, seconds=30.0)
    said = play.operator.reports[-1] if play.operator.reports else None
    if not any(b.active for b in cluster.brokers.values()) or said is None:
        return
    held = {h.key for h in said.held}
    assert all(p.key in held for p in cluster.partitions() if p.leader in said.plan.decisions.demoted)
    for broker in said.brokers:
        drain = [c for c in broker.conditions if c.type == "Drained"]
        if drain and drain[0].status:
            assert cluster.snapshot().leaders()[broker.broker] == 0


@given(st.integers(3, 7), st.data(), st.integers(1, 3))
def test_invariant_4_brokers_in_maintenance_do_not_count_against_cap(count: int, data: st.DataObject, cap: int):
    made = site(count, {"orders": 2 * count})
    ids = st.integers(1, count)
    maintained = data.draw(st.sets(ids, max_size=count))
    sick = data.draw(st.sets(ids, max_size=count)) - maintained
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.FAILING if broker in sick else Reading.PASSING)
    for broker in maintained:
        made.signals.drain(broker)
    operator = Operator(made, replace(POLICY, demotion=Demotion(max_brokers=cap)))
    operator.reconciles(3)
    assert operator.memory is not None
    demoted = operator.memory.record.demoted
    by_signals = {b for b, d in demoted.items() if d.cause is Cause.SIGNALS}
    assert by_signals <= sick
    assert len(by_signals) <= cap
    # A drain that is held hides nothing, and its broker may lead for another.
    away = {b for b, d in demoted.items() if d.cause is Cause.MAINTENANCE}
    if (len(sick) > 1 and 2 * len(sick) >= count) or not set(made.cluster.brokers) - away - sick:
        assert not by_signals
    elif sick:
        assert by_signals
    named = {h.broker for h in operator.reports[-1].plan.decisions.held}
    assert set(demoted) | named >= maintained


@FEWER
@given(st.fixed_dictionaries(dict.fromkeys((2, 3, 4, 5), EIGHT)), EIGHT, st.integers(1, 60))
@example({2: [PASSING] * 8, 3: [FAILING] + [PASSING] * 7, 4: [PASSING] * 8, 5: [PASSING] * 8}, [FAILING] * 8, 42)
@example({2: [PASSING] * 8, 3: THEN_UNKNOWN, 4: [PASSING] * 8, 5: THEN_FAILING}, [PASSING] * 7 + [FAILING], 42)
def test_signals_during_maintenance_never_demote_the_broker(
    others: dict[int, list[Reading]], about: list[Reading], lasts: int
):
    """Two clusters that differ in nothing but what is said of the broker in maintenance, until that has ended.

    It is judged as others are where it has to lead, as in the second example: all replicas of some partitions are
    on it and on two that are demoted.
    """
    ends, led = [], False
    for readings in (about, [PASSING] * 8):
        made = site(5, {"orders": 10})
        for broker in made.cluster.brokers:
            made.signals.say(broker, PASSING)
        operator = Operator(made, replace(AT_ONCE, demotion=Demotion(dwell_seconds=0, max_brokers=1)))
        operator.reconciles(2)
        made.signals.drain(1)
        operator.reconciles(1)
        demoted = []
        for moment in range(8):
            for broker, said in {1: readings, **others}.items():
                made.signals.say(broker, said[moment])
            operator.reconciles(1)
            assert operator.memory is not None
            assert operator.memory.record.demoted[1].cause is not Cause.SIGNALS
            demoted.append({b for b in operator.memory.record.demoted if b != 1})
            led |= made.cluster.snapshot().leaders()[1] > 0
        operator.reconciles(lasts)
        led |= made.cluster.snapshot().leaders()[1] > 0
        made.signals.lift(1)
        operator.reconciles(20)
        assert operator.memory is not None
        kept = operator.memory.record.demoted.get(1)
        assert kept is None or kept.cause is Cause.MAINTENANCE or (led and readings is about)
        ends.append(demoted)
    assert ends[0] == ends[1] or led


@FEWER
@given(
    st.sets(st.integers(1, 5), max_size=1),
    st.lists(st.tuples(st.sampled_from(["drain", "lift", "pod", "ready"]), st.integers(1, 5)), max_size=8),
)
def test_broker_that_is_safe_to_stop_stays_so_during_drains(sick: set[int], acts: list[tuple[str, int]]):
    made = MemoryCluster(5)
    made.create_topic("orders", 10, 3, min_isr=2)
    play = Play(made)
    play.site.pods = {b: Pod(f"kafka-{b}") for b in made.brokers}
    for broker in made.brokers:
        play.site.signals.say(broker, Reading.FAILING if broker in sick else Reading.PASSING)
    play.reconciles(5)
    safe: set[int] = set()
    for act, broker in acts:
        if act == "drain":
            play.site.signals.drain(broker)
        elif act == "lift":
            play.site.signals.lift(broker)
        else:
            play.site.pods[broker] = Pod(f"kafka-{broker}", ready=act == "ready")
        play.reconciles(4)
        reports = {b.broker: b.drained for b in play.operator.reports[-1].brokers if b.drained is not None}
        now = {b for b, drained in reports.items() if drained.status}
        assert safe & reports.keys() <= now, reports
        safe = now


FAULTS = st.sampled_from([SignalType.EXTERNAL_REACHABILITY, SignalType.STORAGE_LATENCY, SignalType.READ_LATENCY])


@FEWER
@given(
    st.integers(3, 6),
    FAULTS,
    st.sampled_from(["a person", "its pod"]),
    st.booleans(),
    st.sets(st.integers(2, 6)),
    st.dictionaries(st.integers(2, 6), st.sampled_from([Cause.SIGNALS, Cause.OVERRIDE]), max_size=3),
    st.booleans(),
)
def test_invariant_17_a_drain_hides_no_fault_whatever_holds_it(
    count: int,
    fault: SignalType,
    how: str,
    first: bool,
    unready: set[int],
    others: dict[int, Cause],
    single: bool,
):
    """Two clusters that differ in nothing but the maintenance of broker 1, which its fault demotes or does not."""
    demoted, led = [], []
    for maintained in (False, True):
        made = site(count, {"orders": 2 * count})
        if single:
            made.cluster.create_topic("alone", assignment=[(1,)])
        made.pods = {b: Pod(f"kafka-{b}", ready=b not in unready) for b in made.cluster.brokers}
        for broker in made.cluster.brokers:
            why = others.get(broker)
            made.signals.say(broker, Reading.FAILING if why is Cause.SIGNALS else Reading.PASSING)
            if why is Cause.OVERRIDE:
                made.signals.override(broker, OverrideState.DEMOTED)
        operator = Operator(made, replace(AT_ONCE, demotion=Demotion(dwell_seconds=0, max_brokers=1)))
        operator.reconciles(2)

        def maintain(made: MemorySite = made, maintained: bool = maintained) -> None:
            if maintained and how == "a person":
                made.signals.drain(1)
            elif maintained and made.pods is not None:
                made.pods[1] = Pod("kafka-1", ready=False)

        if first:
            maintain()
            operator.reconciles(3)
        made.signals.say(1, Reading.FAILING, type=fault, latency_seconds=0.5)
        if not first:
            maintain()
        operator.reconciles(6)
        assert operator.memory is not None
        demoted.append(1 in operator.memory.record.demoted)
        led.append(made.cluster.snapshot().leaders()[1])
        report = next(b for b in operator.reports[-1].brokers if b.broker == 1)
        if report.drained is not None and not report.drained.status:
            assert operator.reports[-1].condition("Ready").reason is not Reason.UP_TO_DATE
    assert demoted[1] >= demoted[0]
    assert led[1] <= led[0]


@given(memory_clusters(), scripts(befalling(harmful=False), maintaining()), st.integers(0, 4))
def test_stopping_a_drained_broker_leaves_every_partition_with_a_leader(
    cluster: MemoryCluster, script: list[Step], which: int
):
    play = Play(cluster)
    perform(play, script)
    play.drain(which, None)
    play.reconciles(3)
    broker = sorted(cluster.brokers)[which % len(cluster.brokers)]
    said = next((b for b in play.operator.reports[-1].brokers if b.broker == broker), None)
    drain = [c for c in said.conditions if c.type == "Drained"] if said is not None else []
    assume(bool(drain))
    led = {p.key for p in cluster.partitions() if p.leader is not None}
    if drain[0].status:
        cluster.kill(broker)
        assert {p.key for p in cluster.partitions() if p.leader is not None} >= led
    else:
        assert drain[0].reason is not Reason.LEADS_NOTHING


@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 2)), max_size=5),
    st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True),
)
def test_invariant_13_brokers_that_may_be_stopped_leave_every_partition_a_leader_and_its_min_insync_replicas(
    rf: int, least: int, lagging: list[tuple[int, int]], maintained: list[int]
):
    made = MemoryCluster(5)
    made.create_topic("orders", 10, rf, min_isr=least)
    made.create_topic("others", 5, 3)
    play = Play(made)
    play.reconciles(1)
    for index, follower in lagging:
        p = made.partition("orders", index)
        if follower < rf:
            made.shrink_isr(p.name, p.replicas[follower])
    for broker in maintained:
        play.drain(broker, None)
        play.reconciles(1)
    play.reconciles(3)
    drained = {b.broker for b in play.operator.reports[-1].brokers if b.drained is not None and b.drained.status}
    for broker in drained:
        made.kill(broker)
    for p in made.partitions():
        if not drained.isdisjoint(p.replicas):
            assert p.leader is not None
            assert len(p.isr) >= min(least if p.topic == "orders" else 1, len(p.replicas))


@FEWER
@given(memory_clusters(), st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=6))
def test_rolling_through_a_cluster_puts_every_order_back_exactly(
    cluster: MemoryCluster, restarts: list[tuple[int, bool]]
):
    play = Play(cluster)
    before = play.orders
    known = sorted(cluster.brokers)
    assert play.site.pods is not None
    for pick, by_pod in restarts:
        broker = known[pick % len(known)]
        if by_pod:
            play.site.pods[broker] = Pod(f"kafka-{broker}", leaving=True)
        else:
            play.drain(pick, None)
        play.reconciles(4)
        cluster.kill(broker)
        play.site.signals.say(broker, Reading.FAILING)
        play.reconciles(3)
        play.site.pods.pop(broker, None)
        play.reconciles(2)
        cluster.revive(broker)
        cluster.catch_up(broker)
        play.site.pods[broker] = Pod(f"kafka-{broker}")
        play.site.signals.say(broker, Reading.PASSING)
        play.end(pick)
        play.reconciles(25)
    play.reconciles(150)
    assert play.orders == before
    assert play.site.store.record is not None
    assert not play.site.store.record.demoted
    assert not [e for e in play.site.store.record.entries.values() if e.state is EntryState.DISPLACED]


@given(st.sampled_from(["drain", "pod"]), st.integers(1, 40))
def test_invariant_8_a_drained_broker_at_rest_causes_no_mutation(how: str, wait: int):
    made = site(4, {"orders": 8})
    made.pods = {}
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made, AT_ONCE)
    operator.reconciles(2)
    if how == "drain":
        made.signals.drain(2)
    else:
        made.pods[2] = Pod("kafka-2", leaving=True)
    operator.reconciles(3)
    mutations, said = made.cluster.mutations, operator.reports[-1]
    assert operator.memory is not None
    record = operator.memory.record
    operator.reconciles(wait)
    assert made.cluster.mutations == mutations
    assert operator.memory.record == record
    assert [b.conditions for b in operator.reports[-1].brokers] == [b.conditions for b in said.brokers]
    assert operator.reports[-1].conditions == said.conditions

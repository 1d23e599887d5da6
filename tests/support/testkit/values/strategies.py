"""Hypothesis strategies: partitions, clusters, undo records, simulated clusters, and what may happen to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from bellwether.core.model.cluster import Broker, Cluster, Partition, PartitionKey
from bellwether.core.model.log_dirs import DemotedLogDir, LogDir
from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.undo_record import (
    BrokenLink,
    Cause,
    DemotedBroker,
    EntryState,
    Link,
    SentOrder,
    UndoEntry,
    UndoRecord,
)
from bellwether.core.settings.placement import Placement, Preference, TopicRule
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import START
from testkit.simulation.fault_injection import Fate

Act = Callable[[MemoryCluster], object]
"""Something that happens to a cluster; a no-op where it makes no sense any more."""


def orders(brokers: list[int], max_size: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    """A replica order over some brokers."""
    return st.lists(st.sampled_from(brokers), min_size=1, max_size=min(max_size, len(brokers)), unique=True).map(tuple)


@st.composite
def partitions(
    draw: st.DrawFn,
    brokers: tuple[int, ...] = (1, 2, 3, 4),
    topic: str = "orders",
    index: int = 0,
) -> Partition:
    """Any partition that metadata could show: the leader is of the ISR, or there is none, or it is not named."""
    replicas = draw(orders(list(brokers)))
    isr = tuple(draw(st.lists(st.sampled_from(replicas), unique=True, max_size=len(replicas))))
    leader = draw(st.sampled_from([*isr, None]))
    elr = () if isr else tuple(draw(st.lists(st.sampled_from(replicas), unique=True, max_size=2)))
    adding = draw(st.sampled_from([(), (), (), replicas[-1:]])) if len(replicas) > 1 else ()
    unknown = leader is None and bool(isr) and draw(st.booleans())
    offline = tuple(draw(st.sets(st.sampled_from(replicas), max_size=1)))
    found = Partition(topic, f"id-of-{topic}", index, replicas, isr, leader, 0, elr, adding)
    return replace(found, leader_unknown=unknown, offline=offline)


@st.composite
def clusters(draw: st.DrawFn, max_brokers: int = 5, max_partitions: int = 8) -> Cluster:
    """Any snapshot; replica lists may name brokers that are not registered."""
    ids = list(range(1, draw(st.integers(2, max_brokers)) + 1))
    gone = draw(st.sets(st.sampled_from(ids), max_size=len(ids) - 1))
    fenced = draw(st.sets(st.sampled_from(ids), max_size=1))
    racks = draw(st.sampled_from([(None,), ("a", "b"), ("a", "b", "c")]))
    drawn = tuple(draw(partitions(tuple(ids), "orders", i)) for i in range(draw(st.integers(0, max_partitions))))
    brokers = {b: Broker(b, racks[b % len(racks)], fenced=b in fenced) for b in ids if b not in gone}
    return Cluster("memory-cluster", brokers, drawn)


@st.composite
def entries(draw: st.DrawFn) -> UndoEntry:
    """Any entry of an undo record: three orders of one set."""
    baseline = draw(orders([1, 2, 3, 4]))
    replaced, written, sent = (tuple(draw(st.permutations(baseline))) for _ in range(3))
    outstanding = draw(st.lists(st.builds(SentOrder, st.just(sent), st.none() | st.integers(1, 5)), max_size=2))
    state = draw(st.sampled_from(EntryState))
    finished = START + timedelta(seconds=draw(st.integers(0, 600))) if state is EntryState.RESTORED else None
    return UndoEntry("orders", baseline, written, replaced, tuple(outstanding), state, finished)


@st.composite
def records(draw: st.DrawFn) -> UndoRecord:
    """Any undo record."""
    brokers = draw(st.sets(st.integers(1, 5), max_size=3))
    return UndoRecord(
        "memory-cluster",
        draw(st.integers(1, 9)),
        {
            b: DemotedBroker(b, draw(st.sampled_from(Cause)), "Reason", draw(st.text(max_size=20)), START)
            for b in brokers
        },
        {
            PartitionKey(f"id-{t}", i): draw(entries())
            for t, i in draw(st.sets(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=6))
        },
        returning={
            b: ReturningBroker(
                b,
                draw(st.integers(0, 99)),
                START,
                START,
                draw(st.sampled_from(RestorationTrigger)),
                draw(st.none() | st.floats(0, 100)),
            )
            for b in draw(st.sets(st.integers(1, 5), max_size=2)) - brokers
        },
        log_dirs={
            (one := LogDir(b, path)): DemotedLogDir(*one, "Reason", draw(st.text(max_size=20)), START, "StorageLatency")
            for b, path in draw(st.sets(st.tuples(st.integers(1, 5), st.sampled_from(["/a", "/b"])), max_size=2))
            if b not in brokers
        },
        links={
            (link := Link(one, other)): BrokenLink(link, START, draw(st.integers(1, 3)))
            for one, other in draw(st.sets(st.tuples(st.integers(1, 2), st.integers(3, 5)), max_size=1))
        },
    )


@st.composite
def memory_clusters(draw: st.DrawFn, min_brokers: int = 3, max_brokers: int = 5) -> MemoryCluster:
    """A healthy simulated cluster with a few topics."""
    count = draw(st.integers(min_brokers, max_brokers))
    racks = draw(st.sampled_from([1, 3]))
    racked = {b: None if racks == 1 else f"rack-{b % racks}" for b in range(1, count + 1)}
    made = MemoryCluster(racked, version=draw(st.sampled_from([(4, 4), (4, 2), (4, 0)])))
    for number in range(draw(st.integers(1, 3))):
        made.create_topic(
            f"topic-{number}",
            draw(st.integers(1, 5)),
            draw(st.integers(1, 3)),
            min_isr=draw(st.integers(1, 2)),
            internal=draw(st.booleans()),
        )
    return made


@st.composite
def deeds(draw: st.DrawFn, *, harmful: bool = True) -> tuple[str, Act]:
    """One thing that others do to a cluster, with a name that a failing example can be read by."""
    broker, pick, seed = draw(st.integers(1, 5)), draw(st.integers(0, 50)), draw(st.integers(0, 50))
    kinds = ["revive", "catch_up", "reorder", "balance", "create", "thaw"]
    if harmful:
        kinds += ["kill", "fence", "freeze", "shrink", "reassign", "finish", "recreate", "delete", "raise_rf"]
    kind = draw(st.sampled_from(kinds))
    return f"{kind}(broker={broker}, pick={pick}, seed={seed})", lambda c: _do(c, kind, broker, pick, seed)


def fates() -> st.SearchStrategy[tuple[str, Fate, int]]:
    """A fault for ``Faults.fail_next``: which requests, what becomes of them, after how many."""
    kinds = st.sampled_from(["read", "partitions", "reorder", "elect", "cancel", "save"])
    return st.tuples(kinds, st.sampled_from(Fate), st.integers(0, 2))


def _do(c: MemoryCluster, kind: str, broker: int, pick: int, seed: int) -> None:
    broker = sorted(c.brokers)[broker % len(c.brokers)]
    simple: dict[str, Callable[[int], object]] = {
        "kill": c.kill,
        "fence": c.fence,
        "freeze": c.freeze,
        "thaw": c.thaw,
        "revive": c.revive,
        "catch_up": c.catch_up,
    }
    if kind in simple:
        simple[kind](broker)
    elif kind == "finish":
        c.finish_reassignments()
    elif kind == "balance":
        c.auto_balance()
    elif kind == "create":
        _create(c, seed)
    elif chosen := c.partitions():
        _do_to_partition(c, kind, chosen[pick % len(chosen)].name.topic, pick, seed)


def _create(c: MemoryCluster, seed: int) -> None:
    active = sum(b.active for b in c.brokers.values())
    topic = f"new-{seed}"
    if active and not c.partitions([topic]):
        c.create_topic(topic, 1 + seed % 3, 1 + seed % min(3, active))


def _do_to_partition(c: MemoryCluster, kind: str, topic: str, pick: int, seed: int) -> None:
    of_topic = c.partitions([topic])
    p = of_topic[pick % len(of_topic)]
    active = [b.id for b in c.brokers.values() if b.active]
    if kind == "delete":
        c.delete_topic(topic)
    elif kind == "recreate":
        # The new topic is as wide as the old one's first partition, which may be in reassignment.
        if len(active) >= len(of_topic[0].replicas):
            c.recreate_topic(topic)
    elif kind == "raise_rf":
        if all(set(active) - set(q.replicas) for q in of_topic):
            c.raise_rf(topic, finish=seed % 2 == 0)
    elif kind == "reorder":
        if not p.reassigning:
            shift = seed % len(p.replicas)
            c.foreign_reorder(p.name, p.replicas[shift:] + p.replicas[:shift])
    elif kind == "shrink":
        followers = [b for b in p.isr if b != p.leader]
        if followers:
            c.shrink_isr(p.name, followers[seed % len(followers)])
    elif kind == "reassign":
        free = [b for b in active if b not in p.replicas]
        if free and not p.reassigning:
            c.foreign_reassign(p.name, (*p.replicas[1:], free[seed % len(free)]))


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """Preferred racks of ``memory_clusters``, one that no broker has among them; in order, by weight, by topic."""
    racks = st.lists(st.sampled_from(["rack-0", "rack-1", "rack-2", "gone"]), min_size=1, max_size=3, unique=True)

    def preference() -> Preference:
        named = tuple(draw(racks))
        if draw(st.booleans()):
            return Preference(named)
        return Preference(weights=tuple((rack, draw(st.integers(1, 9))) for rack in named))

    patterns = draw(st.sets(st.sampled_from(["topic-0", "*-1", "new-?"])))
    rules = [TopicRule(pattern, preference()) for pattern in sorted(patterns)]
    return Placement(draw(st.sampled_from([None, preference(), preference()])), tuple(rules))

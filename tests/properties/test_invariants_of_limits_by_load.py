"""A demotion within what brokers can carry, whatever was measured: never over the limit, settled soon, no way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.detection.context import Context
from bellwether.core.execution.reorder_checks import record_intents
from bellwether.core.model.cluster import Cluster, Partition, PartitionKey
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.reasons import Reason
from bellwether.core.settings.objective import WHOLE
from bellwether.core.settings.placement import Placement
from bellwether.core.settings.policy import Capacity, Demotion, Policy
from testkit.values.builders import after, cluster, decisions, demoted, partition, record, snapshot, verdicts
from testkit.values.strategies import placements

RACKS = {b: f"rack-{b % 3}" for b in range(1, 6)}


@dataclass
class Scene:
    """A cluster, who is demoted on it, what brokers can carry; it changes as plans are carried out."""

    seen: Cluster
    sick: tuple[int, ...]
    capacity: Capacity
    wish: Placement | None = None

    def __post_init__(self) -> None:
        self.undo: UndoRecord = record(None, *(demoted(b) for b in self.sick))

    def plan(self, loads: Loads | None) -> Plan:
        policy = Policy(name="p", placement=self.wish, demotion=Demotion(capacity=self.capacity))
        found = replace(snapshot(self.seen, now=after(100), undo=self.undo), loads=loads)
        return build_plan(Context(found, verdicts(self.seen), policy), decisions(*self.sick))

    def reconcile(self, loads: Loads | None) -> Plan:
        """Plan, carry it out, and see that nothing is left."""
        made = self.plan(loads)
        moved = {m.key: m for m in made.moves}
        partitions = tuple(
            replace(p, replicas=m.order, leader=m.order[0] if m.elect else p.leader) if (m := moved.get(p.key)) else p
            for p in self.seen.partitions
        )
        after_it = record_intents(made, self.undo, None)
        self.undo = after_it.with_entries(
            {
                k: replace(e, state=EntryState.DISPLACED if e.state is EntryState.INTENDED else EntryState.RESTORED)
                for k, e in after_it.entries.items()
                if k in moved
            }
        )
        self.seen = replace(self.seen, partitions=partitions)
        return made

    def settle(self, loads: Loads | None, most: int = 10) -> None:
        """Turns until nothing moves. Raises AssertionError where none ends."""
        for _ in range(most):
            if self.reconcile(loads).empty:
                return
        raise AssertionError("it does not settle")

    @property
    def leaders(self) -> dict[PartitionKey, int | None]:
        return {p.key: p.leader for p in self.seen.partitions}

    def carried(self, loads: Loads) -> dict[int, int]:
        """What each broker carries, by leading and by following."""
        found = {b: loads.following.get(b, 0) for b in self.seen.brokers}
        for p in self.seen.partitions:
            if p.leader is not None:
                found[p.leader] += loads.partitions.get(p.key, 0)
        return found

    def fullness(self, broker: int | None, loads: Loads, without: Partition | None = None) -> Fraction:
        """What a broker carries for its capacity, where any leader counts for something."""
        assert broker is not None
        led = [p for p in self.seen.partitions if p.leader == broker and p is not without]
        weight = sum(loads.partitions.get(p.key, 0) + loads.least for p in led) if loads.partitions else len(led)
        following = loads.following.get(broker, 0) if loads.partitions else 0
        return Fraction(
            (following + weight) * WHOLE, loads.capacities.get(broker, WHOLE) if loads.partitions else WHOLE
        )

    def limit(self, broker: int, loads: Loads) -> int:
        assert self.capacity.max_load is not None
        return self.capacity.max_load * loads.capacities.get(broker, WHOLE) // WHOLE


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Five brokers in three racks; every partition in sync and led by its first replica."""
    order = st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(tuple)
    orders = draw(st.lists(order, min_size=6, max_size=14))
    return cluster(*(partition(index=i, replicas=order) for i, order in enumerate(orders)), brokers=5, racks=RACKS)


@st.composite
def loads_of(draw: st.DrawFn, partitions: Sequence[Partition]) -> Loads:
    """Some partitions were never measured, some brokers carry more than others, and all follow something."""
    rates = draw(st.lists(st.one_of(st.none(), st.integers(0, 20)), min_size=len(partitions), max_size=len(partitions)))
    capacities = draw(st.dictionaries(st.integers(1, 5), st.sampled_from([50, 150, 200])))
    following = draw(st.dictionaries(st.integers(1, 5), st.integers(0, 20)))
    return Loads(known(partitions, rates), capacities, following, after(0))


def known(partitions: Sequence[Partition], rates: Sequence[int | None]) -> Mapping[PartitionKey, int]:
    return {p.key: rate for p, rate in zip(partitions, rates, strict=True) if rate is not None}


@st.composite
def scenes(draw: st.DrawFn, count: int = 1, *, racks: bool = True) -> tuple[Scene, list[Loads]]:
    """A scene, and what was measured at several times."""
    seen = draw(clusters())
    sick = tuple(sorted(draw(st.sets(st.integers(1, 5), min_size=1, max_size=2))))
    capacity = Capacity(
        max_load=draw(st.integers(10, 60)), max_leaders=draw(st.one_of(st.none(), st.none(), st.integers(1, 8)))
    )
    wish = draw(st.one_of(st.none(), placements())) if racks else None
    return Scene(seen, sick, capacity, wish), [draw(loads_of(seen.partitions)) for _ in range(count)]


@given(scenes())
def test_no_broker_is_put_over_its_limit(drawn: tuple[Scene, list[Loads]]):
    scene, (loads,) = drawn
    before = scene.carried(loads)
    for _ in range(4):
        scene.reconcile(loads)
        for broker, carried in scene.carried(loads).items():
            assert carried <= max(before[broker], scene.limit(broker, loads))


@given(scenes(racks=False))
def test_leaders_stay_on_a_demoted_broker_only_without_room_elsewhere(drawn: tuple[Scene, list[Loads]]):
    """Invariant 3: where a demoted broker leads on, a named reason holds it, and that reason is so."""
    scene, (loads,) = drawn
    scene.settle(loads)
    held = {h.key: h.reason for h in scene.plan(loads).holds}
    carried, counts = scene.carried(loads), scene.seen.leaders()
    most = scene.capacity.max_leaders
    for p in scene.seen.partitions:
        if p.leader not in scene.sick:
            continue
        others = [b for b in p.replicas if b not in scene.sick]
        if not others:
            assert held[p.key] in (Reason.ONLY_REPLICA, Reason.NO_HEALTHY_ISR_MEMBER)
            continue
        assert held[p.key] is Reason.CAPACITY_REACHED
        load = loads.partitions.get(p.key, 0)
        for broker in others:
            full = most is not None and counts.get(broker, 0) >= most
            assert full or (load and carried[broker] + load > scene.limit(broker, loads)), (p, broker)


@given(scenes(racks=False))
def test_the_lightest_takes_over(drawn: tuple[Scene, list[Loads]]):
    """Of what a broker took, there is one without which no other that could have taken that carries less."""
    scene, (loads,) = drawn
    scene = replace(scene, capacity=Capacity(max_load=10**9))
    led = scene.leaders
    scene.settle(loads)
    taken: dict[int | None, list[Partition]] = {}
    for p in scene.seen.partitions:
        if p.leader != led[p.key]:
            taken.setdefault(p.leader, []).append(p)
    for broker, partitions in taken.items():
        assert any(
            scene.fullness(broker, loads, without=p) < scene.fullness(other, loads) + 1
            for p in partitions
            for other in [min(set(p.replicas) - set(scene.sick), key=lambda b: (scene.fullness(b, loads), b == broker))]
        ), (broker, partitions)


@given(scenes())
def test_invariant_8_it_settles_and_then_moves_nothing(drawn: tuple[Scene, list[Loads]]):
    scene, (loads,) = drawn
    scene.settle(loads)
    assert all(scene.reconcile(loads).empty for _ in range(3))


@given(scenes(count=2), st.lists(st.integers(0, 1), min_size=1, max_size=8))
def test_loads_that_change_bring_no_leader_back_to_demoted_broker(drawn: tuple[Scene, list[Loads]], order: list[int]):
    scene, several = drawn
    gone: set[PartitionKey] = set()
    for reconcile in order:
        scene.reconcile(several[reconcile])
        back = {k for k, leader in scene.leaders.items() if leader in scene.sick and k in gone}
        assert not back
        gone |= {k for k, leader in scene.leaders.items() if leader not in scene.sick}


@given(scenes(count=2, racks=False))
def test_loads_that_change_to_and_fro_move_nothing_to_and_fro(drawn: tuple[Scene, list[Loads]]):
    """Once both have had their say nothing is left to move, however often each comes again."""
    scene, (one, other) = drawn
    for loads in (one, other, one, other):
        scene.settle(loads)
    stands = scene.leaders
    for loads in (one, other) * 3:
        assert scene.reconcile(loads).empty
    assert scene.leaders == stands


@given(scenes(racks=False), st.integers(2, 9))
def test_heavier_loads_move_no_leader_that_was_placed(drawn: tuple[Scene, list[Loads]], times: int):
    scene, (loads,) = drawn
    scene.settle(loads)
    heavier = replace(loads, partitions={k: load * times for k, load in loads.partitions.items()})
    assert scene.reconcile(heavier).empty


@given(scenes(racks=False))
def test_without_loads_or_while_they_are_awaited(drawn: tuple[Scene, list[Loads]]):
    """Unknown limits nothing; awaited moves no leader."""
    scene, _ = drawn
    assert not any(m.elect for m in scene.plan(LOADS_PENDING).moves)
    by_number = replace(scene, capacity=Capacity(max_leaders=scene.capacity.max_leaders))
    unknown, unlimited = scene.plan(None), by_number.plan(None)
    assert {h.key for h in unknown.holds} == {h.key for h in unlimited.holds}

"""One property per law of the design, on the core with the fake: any faults, foreign acts, deaths and turns.

Law 10 is only watched (nothing in reassignment is touched); its pauses by other tools are not ours to play here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from bellwether.adapters.memory.clusters import MemoryCluster
from bellwether.adapters.memory.faults import Fate, Faults, Interruptions, Killed
from bellwether.adapters.memory.worlds import MemorySite
from bellwether.connections import Connection, Mechanism, Protocol, Security
from bellwether.core.baselines import EntryState
from bellwether.core.clusters import PartitionKey
from bellwether.core.policies import Demotion
from bellwether.core.reasons import Reason
from bellwether.core.recovery import project
from bellwether.core.signals import OverrideState, Reading, Signal, SignalType
from testkit.builders import site
from testkit.operators import GRACE_SECONDS, POLICY, Operator
from testkit.strategies import Act, deeds, fates, memory_clusters
from testkit.watchers import Watcher

DETERMINED = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

GENEROUS = replace(POLICY, demotion=Demotion(max_brokers=2))

Step = tuple[str, Callable[["Play"], object]]
Orders = dict[PartitionKey, tuple[int, ...]]


class Play:
    """A site, the operator that runs on it now, and whoever watches it."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.site = MemorySite(cluster)
        self.watcher = Watcher(self.site.store)
        self.faults = Faults()
        self.number = 0
        self.everyone(Reading.PASSING)
        self.operator = self.begin()

    def begin(self, at: int | None = None) -> Operator:
        """A new process; ``at`` is the side effect after which it dies."""
        self.number += 1
        operator = Operator(self.site, GENEROUS, identity=f"operator-{self.number}", faults=self.faults)
        operator.world = Interruptions(at).around(self.watcher.around(operator.world))
        self.operator = operator
        return operator

    def succeed(self, at: int | None = None) -> None:
        """The process is gone; the next one takes over once it may."""
        self.site.clock.advance(self.site.lease.duration_seconds + 2)
        self.begin(at)

    def everyone(self, reading: Reading) -> None:
        for broker in self.site.cluster.brokers:
            self.site.signals.say(broker, reading)

    def say(self, broker: int, reading: Reading) -> None:
        known = sorted(self.site.cluster.brokers)
        self.site.signals.say(known[broker % len(known)], reading)

    def turns(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            try:
                self.operator.turns(1, seconds)
            except Killed:
                self.succeed()

    def calm(self) -> None:
        """No fault is left, every broker is back, nothing is in flight."""
        self.faults.relent()
        self.faults.deliver()
        for broker in self.site.cluster.brokers:
            self.site.cluster.revive(broker)
        self.site.cluster.finish_reassignments()
        for broker in self.site.cluster.brokers:
            self.site.cluster.catch_up(broker)

    @property
    def orders(self) -> Orders:
        return {p.key: p.replicas for p in self.site.cluster.partitions()}


def sickness() -> st.SearchStrategy[Step]:
    """Brokers that fall ill and recover."""
    return st.tuples(st.integers(0, 4), st.sampled_from([Reading.FAILING, Reading.FAILING, Reading.PASSING])).map(
        lambda pair: (f"say{pair}", lambda play: play.say(*pair))
    )


def passing_time() -> st.SearchStrategy[Step]:
    return st.sampled_from([1, 1, 1, 3, 15]).map(lambda n: (f"turns({n})", lambda play: play.turns(n)))


def trouble() -> st.SearchStrategy[Step]:
    """Requests that fail, arrive late, or kill whoever sent them."""
    failing = fates().map(
        lambda f: (f"fail{f}", lambda play: play.faults.fail_next(f[0], f[1], after=f[2])),
    )
    late: st.SearchStrategy[Step] = st.just(("deliver()", lambda play: play.faults.deliver()))
    dying = st.integers(1, 6).map(lambda n: (f"dies at {n}", lambda play: play.succeed(n)))
    return st.one_of(failing, late, dying)


def befalling(*, harmful: bool = True) -> st.SearchStrategy[Step]:
    def step(deed: tuple[str, Act]) -> Step:
        return deed[0], lambda play: deed[1](play.site.cluster)

    return deeds(harmful=harmful).map(step)


def racing() -> st.SearchStrategy[Step]:
    """Something that others do between our check and our request."""

    def step(deed: tuple[str, Act]) -> Step:
        return f"race {deed[0]}", lambda play: play.faults.race("reorder", lambda: deed[1](play.site.cluster))

    return deeds().map(step)


def scripts(*kinds: st.SearchStrategy[Step], most: int = 14) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.one_of(passing_time(), sickness(), *kinds), max_size=most)


def perform(play: Play, script: list[Step]) -> None:
    for _, act in script:
        act(play)
        play.turns(1)


@DETERMINED
@given(memory_clusters(), scripts(befalling(), trouble()))
def test_law_1_no_request_asks_for_another_set_than_the_one_just_read(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    assert [s for s in play.watcher.sins if s.startswith("law 1")] == []
    assert [s for s in play.watcher.sins if s.startswith("law 10")] == []


@DETERMINED
@given(memory_clusters(), scripts(racing()))
def test_law_1_a_set_that_changes_between_check_and_request_is_undone_or_named(
    cluster: MemoryCluster, script: list[Step]
):
    play = Play(cluster)
    for _, act in script:
        act(play)
        before = {p.key: p for p in play.site.cluster.partitions()}
        sent = play.operator.turn()
        after = {p.key: p for p in play.site.cluster.partitions()}
        touched = {h.key for h in sent.deeds.touched} if sent else set()
        named = {(h.topic, h.key.partition) for h in sent.deeds.touched} if sent else set()
        ours = set(play.watcher.read)
        for key, partition in after.items():
            old = before.get(key)
            if old is not None and partition.reassigning and not old.reassigning and partition.name in ours:
                foreign = set(partition.replicas) - set(partition.removing)
                assert key in touched or partition.name in named or foreign != set(old.replicas), (old, partition)
        play.site.clock.advance(1)


@DETERMINED
@given(memory_clusters(), scripts(befalling(), trouble()))
def test_law_2_no_election_of_a_replica_outside_the_isr(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    assert [s for s in play.watcher.sins if s.startswith("law 2")] == []
    assert all(p.leader is None or p.leader in p.isr for p in cluster.partitions())


@DETERMINED
@given(memory_clusters(), scripts(befalling(), trouble()), st.integers(0, 4))
def test_law_3_a_demoted_broker_leads_only_where_a_named_reason_holds_the_move(
    cluster: MemoryCluster, script: list[Step], sick: int
):
    play = Play(cluster)
    perform(play, script)
    play.faults.relent()
    play.faults.deliver()
    for broker in cluster.brokers:
        cluster.thaw(broker)
    play.say(sick, Reading.FAILING)
    # Long enough for whoever contests an order to be answered.
    play.turns(40, seconds=30.0)
    said = play.operator.reports[-1] if play.operator.reports else None
    if not any(b.active for b in cluster.brokers.values()) or said is None:
        return
    held = {h.key: h.reason for h in said.held}
    for p in cluster.partitions():
        if p.leader in said.plan.decisions.demoted:
            assert p.key in held, p
            healthy = [
                b
                for b in p.isr
                if cluster.brokers[b].active and b not in said.plan.decisions.demoted and not p.reassigning
            ]
            assert not healthy or held[p.key] in (Reason.CONTESTED, Reason.REASSIGNING), (p, held[p.key])
    assert sum(said.held_by_reason.values()) == len(said.held)


@DETERMINED
@given(st.integers(3, 9), st.data(), st.integers(1, 3) | st.sampled_from(["10%", "20%", "40%"]))
def test_law_4_the_cap_counts_everyone_who_cannot_lead_and_half_demotes_nobody(
    count: int, data: st.DataObject, cap: int | str
):
    made = site(count, {"orders": 2 * count})
    ids = st.integers(1, count)
    down = data.draw(st.sets(ids, max_size=count - 1))
    sick = data.draw(st.sets(ids, max_size=count)) - down
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.FAILING if broker in sick else Reading.PASSING)
    for broker in down:
        made.cluster.kill(broker)
    policy = replace(POLICY, demotion=Demotion(max_brokers=cap))
    operator = Operator(made, policy)
    operator.turns(3)
    assert operator.memory is not None
    demoted = set(operator.memory.record.demoted)
    assert demoted <= sick
    assert len(demoted | down) <= max(policy.demotion.cap(count), len(down))
    if 2 * len(down | sick) >= count:
        assert not demoted
    said = operator.reports[-1]
    # Each of the sick is demoted or named; where all the living look sick, it is the vantages that are.
    assert {h.broker for h in said.plan.decisions.held} | demoted >= sick or sick == set(made.cluster.brokers) - down
    # More of them fall ill: whoever is demoted stays so.
    for broker in data.draw(st.sets(ids)):
        made.signals.say(broker, Reading.FAILING)
    operator.turns(30)
    assert demoted <= set(operator.memory.record.demoted)


@DETERMINED
@given(st.data())
def test_law_5_without_fresh_evidence_from_a_quorum_nothing_moves(data: st.DataObject):
    made = site(4, {"orders": 8})
    now = made.clock.now()
    readings = st.sampled_from([Reading.FAILING, Reading.UNKNOWN, Reading.PASSING])
    stale = st.sampled_from([None, POLICY.reachability.stale_after_seconds + 1.0, 1000.0])
    blind = data.draw(st.booleans())
    for broker in made.cluster.brokers:
        for source in ("a", "b", "c"):
            # One vantage is fresh, and may be one that sees nobody; the others have gone silent.
            age = 0.0 if source == "a" else data.draw(stale)
            reading = Reading.FAILING if blind and source == "a" else data.draw(readings)
            made.signals.put(
                Signal(broker, SignalType.EXTERNAL_REACHABILITY, source, reading, now, age, control=Reading.PASSING)
            )
    before = made.cluster.mutations
    Operator(made).turns(20)
    assert made.cluster.mutations == before
    assert made.store.record is not None
    assert made.store.record.empty


@DETERMINED
@given(memory_clusters(), scripts(trouble()))
def test_law_6_whatever_dies_or_is_lost_the_baselines_come_back_exactly(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    baseline = play.orders
    perform(play, script)
    assert [s for s in play.watcher.sins if s.startswith("law 6")] == []
    play.calm()
    play.everyone(Reading.PASSING)
    play.succeed()
    play.turns(90)
    assert play.orders == baseline
    assert all(p.leader == p.replicas[0] for p in cluster.partitions())
    assert play.site.store.record is not None
    assert play.site.store.record.empty


@DETERMINED
@given(st.integers(0, 3), st.booleans(), st.floats(0, GRACE_SECONDS - 1), st.sampled_from(["reorder", "elect"]))
def test_law_7_a_batch_that_arrives_after_a_take_over_is_undone(after: int, healed: bool, delay: float, kind: str):
    made = site(4, {"orders": 8, "__consumer_offsets": 4})
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    baseline = {p.key: p.replicas for p in made.cluster.partitions()}
    faults = Faults()
    old = Operator(made, identity="old", faults=faults)
    old.turns(1)
    made.signals.say(1, Reading.FAILING)
    faults.fail_next(kind, Fate.LATE, after=after)
    old.turns(1)
    made.clock.advance(20)
    if healed:
        made.signals.say(1, Reading.PASSING)
    new = Operator(made, identity="new")
    new.turns(3)
    made.clock.advance(delay)
    faults.deliver()
    old.turns(2)
    assert old.fenced
    new.turns(60)
    if not healed:
        assert made.cluster.snapshot().leaders()[1] == 0
        made.signals.say(1, Reading.PASSING)
        new.turns(60)
    assert {p.key: p.replicas for p in made.cluster.partitions()} == baseline
    assert made.cluster.snapshot().leaders()[1] == 3


@DETERMINED
@given(st.floats(0, 5))
def test_law_7_nothing_is_sent_when_the_lease_does_not_outlast_the_request(left: float):
    made = site()
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made)
    operator.turns(1)
    made.signals.say(1, Reading.FAILING)
    operator.world.leadership.seconds = left  # type: ignore[attr-defined]
    before = made.cluster.mutations
    operator.turn()
    assert (made.cluster.mutations == before) == (left <= operator.world.leaders.request_timeout_seconds)


@DETERMINED
@given(memory_clusters(), scripts(befalling(), trouble()))
def test_law_8_a_settled_cluster_causes_no_mutation_and_no_news(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    play.calm()
    play.turns(60, seconds=20.0)
    assume(play.operator.reports)
    before = (cluster.mutations, play.site.store.writes)
    said = replace(play.operator.reports[-1], now=play.site.clock.now())
    play.turns(10, seconds=20.0)
    assert (cluster.mutations, play.site.store.writes) == before
    assert all(replace(r, now=said.now) == said for r in play.operator.reports[-10:])


@DETERMINED
@given(st.permutations([1, 2, 3]), st.integers(0, 5), st.integers(0, 30))
def test_law_9_a_foreign_order_becomes_the_baseline(foreign: list[int], index: int, wait: int):
    made = site(3, {"orders": 6})
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made)
    operator.turns(1)
    made.signals.say(1, Reading.FAILING)
    operator.turns(3)
    assert made.store.record is not None
    p = made.cluster.partition("orders", index)
    entry = made.store.record.entries.get(p.key)
    known = entry is not None and entry.knows(tuple(foreign))
    before = entry.baseline if entry is not None else p.replicas
    made.cluster.foreign_reorder(p.name, foreign)
    operator.turns(wait)
    made.signals.say(1, Reading.PASSING)
    operator.turns(90, seconds=5)
    wanted = before if known else tuple(foreign)
    assert made.cluster.partition("orders", index).replicas == wanted


@DETERMINED
@given(st.integers(0, 5), st.sampled_from([(4, 2, 3), (1, 4, 3), (2, 4, 1), (3, 2, 4), (4, 3, 2, 1)]))
def test_law_9_another_replica_set_is_projected_never_forced(index: int, target: tuple[int, ...]):
    made = MemoryCluster(4)
    made.create_topic("orders", assignment=[(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 2)
    play = Play(made)
    play.turns(1)
    play.site.signals.say(1, Reading.FAILING)
    play.turns(3)
    p = made.partition("orders", index)
    assert play.site.store.record is not None
    entry = play.site.store.record.entries.get(p.key)
    made.foreign_reassign(p.name, target)
    play.turns(2)
    made.finish_reassignments()
    placed = made.partition("orders", index).replicas
    play.turns(3)
    play.site.signals.say(1, Reading.PASSING)
    play.turns(60)
    after = made.partition("orders", index)
    assert set(after.replicas) == set(target)
    assert after.replicas == (placed if entry is None else project(entry.baseline, placed))


@DETERMINED
@given(st.sampled_from(["delete", "recreate"]), st.integers(0, 10))
def test_law_9_another_topic_id_drops_the_baseline_and_names_it(what: str, wait: int):
    made = site(3, {"orders": 6, "others": 3})
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made)
    operator.turns(1)
    made.signals.say(1, Reading.FAILING)
    operator.turns(wait)
    old = {p.key for p in made.cluster.partitions(["orders"])}
    assert made.store.record is not None
    had = old & set(made.store.record.entries)
    if what == "delete":
        made.cluster.delete_topic("orders")
    else:
        made.cluster.recreate_topic("orders")
    operator.turns(40)
    assert not old & set(made.store.record.entries)
    named = {n.partition for r in operator.reports for n in r.notes if n.topic == "orders"}
    assert named >= {k.partition for k in had}
    assert made.cluster.snapshot().leaders()[1] == 0


@DETERMINED
@given(st.integers(1, 5))
def test_law_9_whoever_fights_over_an_order_meets_ever_rarer_re_assertion(every: int):
    made = site(3, {"orders": 1})
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.PASSING)
    operator = Operator(made)
    watcher = Watcher(made.store)
    operator.world = watcher.around(operator.world)
    operator.turns(1)
    made.signals.say(1, Reading.FAILING)
    operator.turns(2)
    contested = False
    for _ in range(300):
        made.cluster.foreign_reorder(made.cluster.partition("orders").name, (1, 2, 3))
        operator.turns(every)
        contested = contested or bool(operator.reports[-1].condition("Contested").status)
    assert contested
    assert watcher.reorders <= 16


SECRETS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%$", min_size=12)


@DETERMINED
@given(SECRETS)
def test_law_11_a_secret_is_in_no_text_that_a_connection_makes_of_itself(secret: str):
    security = Security(
        protocol=Protocol.SASL_SSL, mechanism=Mechanism.SCRAM_SHA_512, username="bellwether", password=secret
    )
    connection = Connection(("kafka.test:9093",), security)
    for text in (repr(security), str(security), f"{connection}", f"{connection!r}"):
        assert secret not in text


@DETERMINED
@given(memory_clusters(), scripts(trouble(), most=10))
def test_law_12_no_turn_claims_more_than_the_cluster_shows(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    for _, act in script:
        act(play)
        before = {p.key: p for p in cluster.partitions()}
        try:
            said = play.operator.turn()
        except Killed:
            play.succeed()
            continue
        play.site.clock.advance(1)
        if said is None:
            continue
        after = {p.key: p for p in cluster.partitions()}
        moved = sum(p.leader != before[k].leader for k, p in after.items())
        reordered = sum(p.replicas != before[k].replicas for k, p in after.items())
        assert said.deeds.elected <= moved
        assert said.deeds.reordered <= reordered


@DETERMINED
@given(memory_clusters(), st.integers(0, 4), st.integers(0, 40))
def test_an_override_demotes_and_its_end_promotes_exactly(cluster: MemoryCluster, pick: int, wait: int):
    play = Play(cluster)
    baseline = play.orders
    known = sorted(cluster.brokers)
    broker = known[pick % len(known)]
    play.site.signals.override(broker, OverrideState.DEMOTED, "disk swap")
    play.turns(4)
    alone = sum(1 for p in cluster.partitions() if p.replicas == (broker,))
    assert cluster.snapshot().leaders()[broker] == alone
    play.turns(wait)
    play.site.signals.lift(broker)
    play.turns(60)
    assert play.orders == baseline
    assert play.site.store.record is not None
    assert not [e for e in play.site.store.record.entries.values() if e.state is EntryState.DISPLACED]

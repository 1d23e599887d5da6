"""Plays: a simulated cluster, the operator that runs on it, and a script of what happens to both, step by step.

In: clusters and steps that Hypothesis draws. Out: a ``Play`` whose watcher knows which invariants were broken, for the
property tests of the invariants.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import strategies as st

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.policy import Demotion, Election, PromotionWaves
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.fault_injection import Faults, Interruptions, Killed
from testkit.simulation.invariant_watcher import Watcher
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.strategies import Act, deeds, fates

GENEROUS = replace(POLICY, demotion=Demotion(max_brokers=2))

WAVING = replace(
    GENEROUS,
    promotion=replace(
        GENEROUS.promotion,
        waves=PromotionWaves(steps=(30, 60, 100), pause_seconds=2, skip_up_to_leaders=0, min_downtime_seconds=3),
    ),
    election=Election(interval_seconds=5),
)
"""However few its leaders are, a broker gets them back in waves, and so does one that was down for a moment.

Leaders that are not the first in their order are elected every few seconds.
"""

Step = tuple[str, Callable[["Play"], object]]
Orders = dict[PartitionKey, tuple[int, ...]]


class Play:
    """A site, the operator that runs on it now, and its watcher."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.site = MemorySite(cluster, pods={})
        self.watcher = Watcher(self.site.store)
        self.faults = Faults()
        self.number = 0
        self.everyone(Reading.PASSING)
        self.operator = self.begin()

    def begin(self, at: int | None = None) -> Operator:
        """A new process; ``at`` is the side effect after which it dies."""
        self.number += 1
        operator = Operator(self.site, WAVING, identity=f"operator-{self.number}", faults=self.faults)
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

    def drain(self, broker: int, seconds: float | None) -> None:
        """A person puts a broker in maintenance, for so long or until it is ended."""
        known, now = sorted(self.site.cluster.brokers), self.site.clock.now()
        until = now + timedelta(seconds=seconds) if seconds is not None else None
        self.site.signals.drain(known[broker % len(known)], until=until)

    def end(self, broker: int) -> None:
        """A person ends any override."""
        known = sorted(self.site.cluster.brokers)
        self.site.signals.lift(known[broker % len(known)])

    def pod(self, broker: int, state: str) -> None:
        """A broker's pod is ready, not ready, terminating or gone."""
        known = sorted(self.site.cluster.brokers)
        which, pods = known[broker % len(known)], self.site.pods
        assert pods is not None
        pods.pop(which, None)
        if state != "gone":
            pods[which] = Pod(f"kafka-{which}", ready=state == "ready", leaving=state == "terminating")

    def reconciles(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            try:
                self.operator.reconciles(1, seconds)
            except Killed:
                self.succeed()

    def hear(self) -> None:
        """No fault is left, nothing is in flight, and every live broker answers."""
        self.faults.relent()
        self.faults.deliver()
        for broker in self.site.cluster.brokers:
            self.site.cluster.thaw(broker)

    def calm(self) -> None:
        """No fault is left, every broker is back, nothing is in flight."""
        self.hear()
        for broker in self.site.cluster.brokers:
            self.site.cluster.revive(broker)
        self.site.cluster.finish_reassignments()
        for broker in self.site.cluster.brokers:
            self.site.cluster.catch_up(broker)

    @property
    def orders(self) -> Orders:
        return {p.key: p.replicas for p in self.site.cluster.partitions()}


def sickness() -> st.SearchStrategy[Step]:
    """Brokers that become sick and recover."""
    return st.tuples(st.integers(0, 4), st.sampled_from([Reading.FAILING, Reading.FAILING, Reading.PASSING])).map(
        lambda pair: (f"say{pair}", lambda play: play.say(*pair))
    )


def passing_time() -> st.SearchStrategy[Step]:
    return st.sampled_from([1, 1, 1, 3, 15]).map(lambda n: (f"reconciles({n})", lambda play: play.reconciles(n)))


def trouble() -> st.SearchStrategy[Step]:
    """Requests that fail, arrive late, or kill their sender."""
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


def maintaining() -> st.SearchStrategy[Step]:
    """Drains that begin and end, and pods that come and go."""
    brokers = st.integers(0, 4)
    drains = st.tuples(brokers, st.sampled_from([None, 1.0, 20.0])).map(
        lambda pair: (f"drain{pair}", lambda play: play.drain(*pair))
    )
    ends = brokers.map(lambda b: (f"end({b})", lambda play: play.end(b)))
    states = st.sampled_from(["ready", "not ready", "terminating", "gone"])
    pods = st.tuples(brokers, states).map(lambda pair: (f"pod{pair}", lambda play: play.pod(*pair)))
    return st.one_of(drains, ends, pods)


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
        play.reconciles(1)

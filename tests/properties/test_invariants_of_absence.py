"""What was not seen: whatever is away, and for however long, a broker returns after the asked seconds known to be good.

And what is called safe to stop is so by the cluster itself. This file keeps its own accounts of both, from what probers
said and from what a turn could see of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.kubernetes.api_client import SIGNAL_SOURCES
from bellwether.core.doctor.risks import MIN_ISR
from bellwether.core.reporting.report import Report
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.kubernetes import api_objects
from testkit.simulation.fault_injection import Fate
from testkit.simulation.memory_site import RENEW_SECONDS
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.operators import Operator
from testkit.simulation.scenario_driver import WAVING, Play, Step, befalling, maintaining, perform, scripts

STALE = MOST = 10.0
"""Seconds after which a silent prober's word counts no more, and most seconds that count between two turns."""
PATIENT = replace(WAVING, promotion=replace(WAVING.promotion, stabilization_seconds=30))
VANTAGES = ("vantage-a", "vantage-b")


class Accounts(Play):
    """A play with accounts of broker 1, which was cut off, demoted, and is well again, and of what may be stopped."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.good = 0.0
        self.seen_at: float | None = None
        self.silent_since: float | None = None
        self.unsafe: list[str] = []
        super().__init__(cluster)

    def begin(self, at: int | None = None) -> Operator:
        self.begun_at, self.seen_at = self.site.clock.monotonic(), None
        operator = super().begin(at)
        operator.policy = PATIENT
        return operator

    def reconciles(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            before, now = self.operator.reports[-1:], self.site.clock.monotonic()
            super().reconciles(1, seconds)
            made = [r for r in self.operator.reports[-1:] if not before or r is not before[0]]
            if made:  # a turn that read and judged
                self.account(now)
                self.unsafe += self.refuted(made[0])

    def account(self, now: float) -> None:
        spoke = now if self.silent_since is None else self.silent_since
        heard = not self.begun_at or spoke >= self.begun_at + RENEW_SECONDS
        good = heard and now - spoke <= STALE and self.site.cluster.brokers[1].active
        if good and self.seen_at is not None:
            self.good += min(now - self.seen_at, MOST)
        self.seen_at = now if good else None

    def refuted(self, said: Report) -> list[str]:
        """Brokers that are called safe to stop, and are not."""
        cluster = self.site.cluster
        live = {b.id for b in cluster.brokers.values() if b.active}
        safe = {b.broker for b in said.brokers if b.drained is not None and b.drained.status} & live
        least = {p.topic: int(cluster.topic_settings(p.topic)[MIN_ISR]) for p in cluster.partitions()}
        return [
            f"{sorted(safe)} are called safe to stop: {p}"
            for p in cluster.partitions()
            if not safe.isdisjoint(p.replicas)
            and (p.leader in safe or len(live.intersection(p.isr) - safe) < min(least[p.topic], len(p.replicas)))
        ]

    @property
    def demoted(self) -> Collection[int]:
        assert self.site.store.record is not None
        return self.site.store.record.demoted

    # What happens to the view of it.

    def fail_between_turns(self) -> None:
        if self.silent_since is None:
            self.site.signals.say(1, Reading.FAILING)
            self.site.clock.advance(0.5)
            self.site.signals.say(1, Reading.PASSING)
            self.good, self.seen_at = 0.0, None

    def silence(self, turns: int) -> None:
        self.silent_since = self.site.clock.monotonic()
        for source in VANTAGES:
            self.site.signals.silence(source)
        self.reconciles(turns)
        self.silent_since = None
        for source in VANTAGES:
            self.site.signals.resume(source)

    def unlisted(self, turns: int) -> None:
        self.site.cluster.without_listener.add(1)
        self.reconciles(turns)
        self.site.cluster.without_listener.clear()

    def unreadable(self, turns: int) -> None:
        self.faults.fail_next("read", Fate.LOST, times=turns)
        self.reconciles(turns)

    def nobody(self, seconds: float) -> None:
        self.site.clock.advance(seconds)
        self.succeed()


ABSENCES: dict[str, Callable[[Accounts], object]] = {
    "no turn": lambda play: play.site.clock.advance(600),
    "no operator": lambda play: play.nobody(600),
    "another operator": lambda play: play.nobody(0),
    "the clock goes forward": lambda play: play.site.clock.step(3600),
    "the clock goes back": lambda play: play.site.clock.step(-3600),
    "probers are silent": lambda play: play.silence(40),
    "metadata does not list it": lambda play: play.unlisted(5),
    "metadata is not read": lambda play: play.unreadable(40),
    "it fails between turns": lambda play: play.fail_between_turns(),
    "it fails while no prober looks": lambda play: (play.fail_between_turns(), play.nobody(60)),
}


@pytest.mark.parametrize("what", ABSENCES)
@pytest.mark.parametrize("turns", [1, 20])
def test_invariant_5_whatever_was_not_seen_does_not_count_as_recovery(what: str, turns: int):
    cluster = MemoryCluster(4)
    cluster.create_topic("orders", 8, 3)
    play = Accounts(cluster)
    play.reconciles(2)
    play.site.signals.say(1, Reading.FAILING)
    play.reconciles(3)
    assert 1 in play.demoted
    play.site.signals.say(1, Reading.PASSING)
    play.good, play.seen_at = 0.0, None
    play.reconciles(turns)
    ABSENCES[what](play)
    while 1 in play.demoted:
        play.reconciles(1)
    assert PATIENT.promotion.stabilization_seconds <= play.good <= 2 * PATIENT.promotion.stabilization_seconds


@given(st.integers(4, 6), st.integers(2, 3), scripts(maintaining(), maintaining(), maintaining(), befalling()))
def test_invariant_13_what_is_called_safe_to_stop_is_so_by_the_cluster_itself(
    brokers: int, replicas: int, script: list[Step]
):
    cluster = MemoryCluster(brokers)
    cluster.create_topic("orders", brokers, replicas, min_isr=replicas - 1)
    play = Accounts(cluster)
    perform(play, script)
    assert play.unsafe == []


# What the rule says of broker 2 for some seconds, and whether the sources can be read meanwhile.
STRETCHES = st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(1, 15)), min_size=1, max_size=6)


def demoted_by_second(stretches: list[tuple[bool, bool, int]], *, refused: bool) -> list[list[int]]:
    operator, found = MemoryOperator.well(), list[list[int]]()
    operator.api.put(SIGNAL_SOURCES, api_objects.prometheus(query="up"))
    named = {"signalSources": [{"name": "prom"}]}
    loop = operator.begin(detection=named, promotion={"stabilizationSeconds": 5})
    for failing, unreadable, seconds in stretches:
        reading = Reading.FAILING if failing else Reading.PASSING
        operator.site.signals.say(2, reading, type="Prometheus", sources=["flush"])
        operator.api.refuse("list", SIGNAL_SOURCES, Terminal("forbidden") if refused and unreadable else None)
        for _ in range(seconds):
            operator.step(loop)
            assert loop.record is not None
            found.append(sorted(loop.record.demoted))
    operator.close()
    return found


@given(STRETCHES)
def test_brokers_are_demoted_and_promoted_alike_without_sources(stretches: list[tuple[bool, bool, int]]) -> None:
    assert demoted_by_second(stretches, refused=True) == demoted_by_second(stretches, refused=False)

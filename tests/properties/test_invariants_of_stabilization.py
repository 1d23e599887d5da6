"""When a broker that signals demoted leads again: after it was known to be good for the stabilization time.

Invariants 5 (unknown moves nothing), 6 (killed anywhere) and 17 (absence is not health), for any order of failures,
silences, blind vantages, failures between two reconciles, take-overs, unreadable metadata and steps of the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.signals import Reading
from testkit.simulation.fault_injection import Faults, Interruptions, Killed
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import site

WAIT = 20
STABILIZING = replace(POLICY, promotion=replace(POLICY.promotion, stabilization_seconds=WAIT, flap_window_seconds=0))
VANTAGES = ("vantage-a", "vantage-b")
STALE_AFTER = POLICY.detection.external_reachability.stale_after_seconds


class Case:
    """Broker 1 of three, the operator, and an own count of the seconds in which broker 1 was known to be good.

    Seconds in which no operator judged do not count; of those in which it read no metadata only so many as a signal
    stays fresh.
    """

    def __init__(self) -> None:
        self.site = site()
        self.faults = Faults()
        self.reading = Reading.PASSING
        self.blind = False
        self.silent_for: float | None = None
        self.good = 0.0
        self.early: list[str] = []
        self.number = 0
        self.report()
        self.begin(None)

    def begin(self, dies_at: int | None) -> None:
        self.number += 1
        self.operator = Operator(
            self.site, STABILIZING, identity=f"operator-{self.number}", faults=self.faults, life=Interruptions(dies_at)
        )

    def report(self) -> None:
        """Every vantage reports what it sees."""
        for broker in self.site.cluster.brokers:
            failing = self.blind or (broker == 1 and self.reading is Reading.FAILING)
            self.site.signals.say(broker, Reading.FAILING if failing else Reading.PASSING)

    def say(self, reading: Reading) -> None:
        self.reading = reading
        self.report()
        if reading is Reading.FAILING:
            self.good = 0.0

    def blip(self) -> None:
        """Broker 1 fails and passes again before the next reconcile."""
        before = self.reading
        self.say(Reading.FAILING)
        self.site.clock.advance(0.2)
        self.say(before)

    def blinded(self, blind: bool) -> None:
        self.blind = blind
        self.report()

    def silence(self, silent: bool) -> None:
        for source in VANTAGES:
            (self.site.signals.silence if silent else self.site.signals.resume)(source)
        self.silent_for = (self.silent_for or 0.0) if silent else None

    def take_over(self, dies_at: int | None) -> None:
        good = self.good
        self.pass_time(self.site.lease.duration_seconds + 2)
        self.good = min(self.good, good)
        self.begin(dies_at)

    def unreadable(self, times: int) -> None:
        """Metadata cannot be read, so many times in a row."""
        self.faults.fail_next("read", times=times)
        good = self.good
        self.reconciles(times, 5.0)
        self.good = min(self.good, good + STALE_AFTER)

    def take_over_with_blip(self) -> None:
        self.take_over(None)
        self.blip()

    def pass_time(self, seconds: float) -> None:
        known = not self.blind and (self.silent_for is None or self.silent_for <= STALE_AFTER)
        if self.reading is Reading.PASSING and known:
            self.good += seconds
        if self.silent_for is not None:
            self.silent_for += seconds
        self.site.clock.advance(seconds)

    def reconciles(self, count: int, seconds: float = 1.0) -> None:
        for _ in range(count):
            before = self.demoted
            try:
                self.operator.reconcile()
            except Killed:
                self.take_over(None)
            if before and not self.demoted and self.good < WAIT:
                self.early.append(f"promoted after {self.good} good seconds of {WAIT}")
            self.pass_time(seconds)

    @property
    def demoted(self) -> bool:
        return self.site.store.record is not None and 1 in self.site.store.record.demoted


Act = Callable[[Case], object]

ACTS: st.SearchStrategy[tuple[str, Act]] = st.one_of(
    st.sampled_from([1, 2, 5, 9, 21]).map(lambda n: (f"reconciles({n})", lambda case: case.reconciles(n))),
    st.sampled_from([Reading.FAILING, Reading.PASSING, Reading.PASSING]).map(
        lambda reading: (f"say({reading})", lambda case: case.say(reading))
    ),
    st.just(("blip()", lambda case: case.blip())),
    st.just(("take_over_with_blip()", lambda case: case.take_over_with_blip())),
    st.booleans().map(lambda blind: (f"blinded({blind})", lambda case: case.blinded(blind))),
    st.booleans().map(lambda silent: (f"silence({silent})", lambda case: case.silence(silent))),
    st.sampled_from([None, 1, 2, 3, 4]).map(lambda n: (f"take_over({n})", lambda case: case.take_over(n))),
    st.sampled_from([1, 5, 12]).map(lambda n: (f"unreadable({n})", lambda case: case.unreadable(n))),
    st.sampled_from([60, -600, -3600, 86_400]).map(lambda n: (f"step({n})", lambda case: case.site.clock.step(n))),
)


@given(st.lists(ACTS, max_size=16))
def test_invariant_5_a_broker_leads_again_only_after_it_was_known_to_be_good_for_long_enough(
    acts: list[tuple[str, Act]],
):
    case = Case()
    case.reconciles(1)
    case.say(Reading.FAILING)
    case.reconciles(2)
    for _, act in acts:
        act(case)
        case.reconciles(1)
    assert case.early == []


@given(st.integers(1, 6), st.integers(0, 3))
def test_invariant_6_a_take_over_in_the_middle_of_a_demotion_does_not_shorten_the_stabilization(
    dies_at: int, later: int
):
    case = Case()
    case.reconciles(1 + later)
    case.take_over(dies_at)
    case.say(Reading.FAILING)
    case.reconciles(1)
    case.say(Reading.PASSING)
    case.reconciles(2 * WAIT)
    assert case.early == []
    assert not case.demoted


@given(st.lists(ACTS, max_size=10))
def test_a_broker_that_stays_good_gets_its_leaders_back_whatever_happened_before(acts: list[tuple[str, Act]]):
    case = Case()
    for _, act in acts:
        act(case)
        case.reconciles(1)
    case.silence(False)
    case.blinded(False)
    case.say(Reading.PASSING)
    case.reconciles(2 * WAIT)
    assert not case.demoted
    assert case.site.cluster.snapshot().leaders()[1] == 2


ABSENCES: dict[str, Act] = {
    "no operator": lambda case: case.take_over(None),
    "no operator, and a failure meanwhile": lambda case: case.take_over_with_blip(),
    "metadata that cannot be read": lambda case: case.unreadable(12),
    "a clock set forward": lambda case: case.site.clock.step(60),
    "a clock set back, and then no operator": lambda case: (case.site.clock.step(-600), case.take_over(None)),
}


@pytest.mark.parametrize("absence", ABSENCES)
def test_invariant_17_absence_is_not_health(absence: str):
    case = Case()
    case.reconciles(1)
    case.say(Reading.FAILING)
    case.reconciles(2)
    case.say(Reading.PASSING)
    case.reconciles(5)
    ABSENCES[absence](case)
    case.reconciles(2 * WAIT)
    assert case.early == []
    assert not case.demoted

import itertools
from statistics import mean, quantiles

import numpy as np
import pytest

from monthsim.assumptions import NAMES, SOURCES, Assumptions, FaultRates
from monthsim.draws import P99_AT_FIVE_MEDIANS, lognormal, times
from monthsim.episodes import SESSION_SECONDS, Episode, Kind
from monthsim.injected import faults
from monthsim.noise import noise
from monthsim.reports import upper_bound
from monthsim.worlds import drawn

WORLD = Assumptions()


def episodes(kind: Kind, world: Assumptions = WORLD, months: int = 200) -> list[Episode]:
    rng = np.random.default_rng(3)
    return [e for _ in range(months) for e in noise(3, world, rng) if e.kind is kind]


def test_events_come_as_often_as_the_rate_says() -> None:
    rng = np.random.default_rng(1)
    assert mean(len(times(2.0, rng)) for _ in range(5000)) == pytest.approx(2.0, rel=0.05)


def test_a_log_normal_has_its_median_and_its_99th_percentile() -> None:
    rng = np.random.default_rng(1)
    cuts = quantiles((lognormal(2.0, P99_AT_FIVE_MEDIANS, rng) for _ in range(50_000)), n=100)
    assert cuts[49] == pytest.approx(2.0, rel=0.03)
    assert cuts[98] == pytest.approx(10.0, rel=0.08)


@pytest.mark.parametrize(
    ("kind", "least", "most", "a_month"),
    [(Kind.GC_PAUSE, 3.0, 9.0, 2.0), (Kind.DISK_HICCUP, 0.0, 120.0, 4.0), (Kind.BURSTY_DISK, 3600.0, 3600.0, 0.05)],
)
def test_noise_has_the_lengths_and_the_rate_that_are_assumed(
    kind: Kind, least: float, most: float, a_month: float
) -> None:
    found = episodes(kind)
    assert all(least - 1e-6 <= e.end - e.start <= most + 1e-6 for e in found)
    assert len(found) / (200 * 3) == pytest.approx(a_month, rel=0.25)


def test_a_rolling_restart_has_one_broker_fenced_at_a_time() -> None:
    found = sorted((e.fenced[0] for e in episodes(Kind.ROLLING_RESTART, months=1)), key=lambda a: a.start)
    assert len(found) >= 3
    assert all(a.end < b.start for a, b in itertools.pairwise(found))


def test_a_write_takes_as_long_as_was_measured() -> None:
    rng = np.random.default_rng(2)
    found = WORLD.disk_median_seconds * np.exp(WORLD.disk_sigma * rng.standard_normal(100_000))
    assert float(found.mean()) == pytest.approx(0.00142, rel=0.02)
    assert float(found.std()) == pytest.approx(0.00073, rel=0.05)


def test_faults_are_injected_at_their_rates() -> None:
    rng = np.random.default_rng(4)
    found = [e.kind for _ in range(400) for e in faults(6, FaultRates(), WORLD, rng)]
    assert found.count(Kind.EXTERNAL_CUT) / 2400 == pytest.approx(0.05, rel=0.25)
    assert found.count(Kind.ZONE_CUT) / 400 == pytest.approx(0.1, rel=0.5)


def test_freezes_end_before_kafka_fences_the_broker_and_leave_the_other_faults_as_they_were() -> None:
    with_, without = (
        [e for n in range(100) for e in faults(6, rates, WORLD, np.random.default_rng(n))]
        for rates in (FaultRates(), FaultRates(freezing=0.0))
    )
    found = [e for e in with_ if e.kind is Kind.FREEZING]
    assert len(found) / 600 == pytest.approx(0.05, rel=0.5)
    assert all(p.end - p.start < SESSION_SECONDS for e in found for p in e.paths)
    assert [e for e in with_ if e.kind is not Kind.FREEZING] == without


def test_every_assumption_names_its_source() -> None:
    assert set(SOURCES) == set(NAMES)
    assert all(SOURCES.values())


def test_the_same_seed_is_the_same_month() -> None:
    one, other = (drawn(6, (1, 6, 0), WORLD, FaultRates())[0] for _ in range(2))
    assert one.episodes == other.episodes
    assert one.episodes != drawn(6, (1, 6, 1), WORLD, FaultRates())[0].episodes


@pytest.mark.parametrize(("name", "kinds"), [("gc_pauses", {Kind.GC_PAUSE}), ("loss_bursts", {Kind.LOSS_BURST})])
def test_number_that_is_changed_leaves_all_else_as_it_was(name: str, kinds: set[Kind]) -> None:
    one, other = (drawn(6, (1, 6, 0), world, FaultRates())[0].episodes for world in (WORLD, WORLD.scaled(name, 2.0)))
    assert one != other
    assert [e for e in one if e.kind not in kinds] == [e for e in other if e.kind not in kinds]


@pytest.mark.parametrize(
    ("count", "bound"), [(0, 2.9957), (1, 4.7439), (2, 6.2958), (3, 7.7537), (10, 16.9622), (100, 118.08)]
)
def test_the_bound_is_the_one_of_the_published_tables(count: int, bound: float) -> None:
    assert upper_bound(count) == pytest.approx(bound, rel=1e-3)


def test_three_thousand_quiet_months_are_just_enough_for_one_in_a_thousand() -> None:
    assert upper_bound(0) / 3000 * 1000 < 1.0 < upper_bound(0) / 2990 * 1000

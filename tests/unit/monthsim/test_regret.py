import numpy as np
import pytest

from monthsim.assumptions import Assumptions
from monthsim.episodes import FENCED_SECONDS, Disk, DiskEffect, Episode, Kind, Month, Path
from monthsim.injected import cut, freezes, slow_disk
from monthsim.models import MODELS, STANDARD
from monthsim.noise import frozen, slow_syncs
from monthsim.regret import MOVE_SECONDS, Cured, Stretch, clairvoyant, harm, price, suffered, without_agent
from monthsim.relief import Cure

CUT = cut(Kind.EXTERNAL_CUT, 1000.0, 600.0, (1,), Path.REFUSED)
SLOW = slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.2)


STALLED = Episode(Kind.DISK_STALLED, 1000.0, 1600.0, (1,), disks=(DiskEffect(1000.0, 1600.0, Disk.STALLED, (1,)),))
BUSY, QUIET = 20.0, 1.0
"""Appends a second of each replica fetcher: with writes of 0.2 s the first trails, the second keeps up."""


def month(*episodes: Episode, appends: float = BUSY, metadata_hangs: bool = False) -> Month:
    """Three brokers; half of the requests to a leader are writes with acks=all."""
    sizes = (0.001,) * 3, np.zeros((4, 3)), (0.02,) * 3
    return Month(3, episodes, *sizes, Assumptions(), (1, 3, 0), appends, metadata_hangs)


def only(one: Month) -> Stretch:
    (found,) = harm(one, 1)
    return found


def demoted(*times: float) -> list[tuple[float, Cure]]:
    return [(time, Cure.DEMOTION) for time in times]


def test_a_cut_loses_every_request_of_its_broker_and_none_of_others() -> None:
    found = only(month(CUT))
    assert (found.start, found.end, found.share, found.demoted.then) == (1000.0, 1600.0, 1.0, 0.0)
    assert harm(month(CUT), 0) == []


def test_disk_loses_share_of_its_writes_over_objective() -> None:
    def share(seconds: float) -> float:
        return only(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, seconds), appends=QUIET)).share

    assert share(0.2) == pytest.approx(0.5, abs=0.01)
    assert share(0.05) == pytest.approx(0.25)
    assert harm(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.01)), 1) == []


@pytest.mark.parametrize(
    ("seconds", "appends", "none", "demotion"),
    [
        pytest.param(0.2, QUIET, 0.5, 0.0, id="keeps up: acks=1 alone, and demotion ends it"),
        pytest.param(0.2, BUSY, 1.5, 1.5, id="trails: acks=all where it follows, by demotion also where it led"),
        pytest.param(0.5, BUSY, 2.0, 1.5, id="appends of 0.4 s and more: acks=all where it leads as well"),
    ],
)
def test_cure_ends_what_was_measured_of_each_kind_of_client(
    seconds: float, appends: float, none: float, demotion: float
) -> None:
    found = only(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, seconds), appends=appends))
    assert (found.share, found.demoted.then) == pytest.approx((none, demotion), abs=0.01)
    assert found.held.then == 0.0


def test_kafka_fences_a_stalled_disk_only_while_it_leads() -> None:
    assert only(month(STALLED)).lost == pytest.approx(2.0 * 600.0)
    fenced = only(month(STALLED, metadata_hangs=True))
    assert suffered([fenced], []) == pytest.approx(2.0 * FENCED_SECONDS)
    assert suffered([fenced], demoted(1005.0)) > 1.5 * 500.0
    assert suffered([fenced], demoted(1020.0)) == pytest.approx(2.0 * FENCED_SECONDS + MOVE_SECONDS)


def test_requests_in_flight_are_lost_for_while_after_cure() -> None:
    in_flight = Stretch(0.0, 100.0, 2.0, Cured(1.0, 2.0, 30.0))
    assert suffered([in_flight], demoted(10.0)) == pytest.approx(10 * 2 + 30 * 2 + 60 * 1 + MOVE_SECONDS)
    assert Cured(1.0, 2.0, 30.0).lost(since=0.0, start=100.0, end=110.0) == 10.0


def test_a_hold_after_a_demotion_ends_what_that_left_at_no_further_price() -> None:
    trailing = Stretch(0.0, 100.0, 1.5, Cured(1.5))
    assert suffered([trailing], [(10.0, Cure.DEMOTION), (20.0, Cure.HELD)]) == pytest.approx(20 * 1.5 + MOVE_SECONDS)


def test_without_agents_what_demotion_does_not_end_is_left_out() -> None:
    trailing = only(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.5)))
    (left,) = without_agent([trailing])
    assert (left.share, left.demoted.then, left.held.then) == pytest.approx((0.5, 0.0, 0.0), abs=0.01)
    assert clairvoyant([trailing]) < 0.1 * suffered([trailing], demoted(1000.0))


def test_slow_syncs_lose_nothing_until_leaders_move() -> None:
    slow = month(slow_syncs(1000.0, 1, Assumptions(), np.random.default_rng(1)))
    assert harm(slow, 1) == []
    for broker in range(3):
        assert price(slow, broker)(1001.0) > MOVE_SECONDS
        assert price(slow, broker)(900.0) == MOVE_SECONDS


def test_of_two_faults_at_once_the_worse_counts() -> None:
    assert sum(s.lost for s in harm(month(CUT, SLOW, appends=QUIET), 1)) == pytest.approx(600.0)


def test_what_no_demotion_cures_is_left_out() -> None:
    assert harm(month(frozen(Kind.GC_PAUSE, 1000.0, 6.0, 1)), 1) == []


def test_a_broker_that_freezes_again_and_again_loses_what_does_not_wait_for_followers() -> None:
    freezing = freezes(1000.0, 120.0, 1, np.random.default_rng(1))
    found = harm(month(freezing), 1)
    assert len(found) == len(freezing.paths) > 5
    assert all((s.share, s.demoted.then) == (0.5, 0.0) for s in found)
    assert clairvoyant(found) == MOVE_SECONDS


def test_clairvoyant_bears_short_fault_and_moves_away_from_long_one() -> None:
    assert clairvoyant([Stretch(0.0, 2.0, 1.0)]) == 2.0
    assert clairvoyant([Stretch(0.0, 600.0, 1.0)]) == MOVE_SECONDS
    assert clairvoyant([Stretch(t, t + 2.0, 1.0) for t in (0.0, 4.0, 8.0)]) == MOVE_SECONDS
    assert clairvoyant([Stretch(t, t + 2.0, 1.0) for t in (0.0, 4000.0)]) == 4.0


def test_a_demotion_ends_the_harm_and_costs_a_move() -> None:
    stretches = harm(month(CUT), 1)
    assert suffered(stretches, []) == pytest.approx(600.0)
    assert suffered(stretches, demoted(1004.0)) == pytest.approx(4.0 + MOVE_SECONDS)
    assert suffered(stretches, demoted(1004.0, 1010.0)) == pytest.approx(4.0 + MOVE_SECONDS)
    assert suffered([], demoted(50.0)) == MOVE_SECONDS


def test_a_demotion_ends_after_a_minute_without_harm() -> None:
    twice = [Stretch(0.0, 10.0, 1.0), Stretch(500.0, 510.0, 1.0)]
    assert suffered(twice, demoted(3.0)) == pytest.approx(3.0 + MOVE_SECONDS + 10.0)


def test_a_model_changes_faults_and_leaves_noise_as_it_was() -> None:
    pause = frozen(Kind.GC_PAUSE, 5000.0, 6.0, 0)
    for name, model in MODELS.items():
        made = model.applied(month(CUT, SLOW, pause)).episodes
        assert pause in made
        assert (made == (CUT, SLOW, pause)) is (name == STANDARD)
    longer = MODELS["durations x10"].applied(month(CUT)).episodes[0]
    assert (longer.end, longer.paths[0].end) == (7000.0, 7000.0)


def test_flapping_is_down_half_of_the_time() -> None:
    (made,) = MODELS["flapping"].applied(month(CUT)).episodes
    assert sum(p.end - p.start for p in made.paths) == pytest.approx((made.end - made.start) / 2, abs=2.0)


def test_bursts_are_slow_for_seven_seconds_of_ten() -> None:
    (made,) = MODELS["bursts"].applied(month(SLOW)).episodes
    assert all(d.what is Disk.SLOW for d in made.disks)
    assert sum(d.end - d.start for d in made.disks) == pytest.approx(0.7 * 600.0)


def test_drips_grow_to_a_hundred_milliseconds() -> None:
    (made,) = MODELS["drips"].applied(month(SLOW)).episodes
    levels = [d.levels[0] for d in made.disks]
    assert levels == sorted(levels)
    assert levels[-1] == pytest.approx(0.1)

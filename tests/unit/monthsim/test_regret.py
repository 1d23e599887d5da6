import numpy as np
import pytest

from monthsim.assumptions import Assumptions
from monthsim.episodes import Disk, Episode, Kind, Month, Path
from monthsim.injected import cut, slow_disk
from monthsim.models import MODELS, STANDARD
from monthsim.noise import frozen
from monthsim.regret import MOVE_SECONDS, Stretch, clairvoyant, harm, suffered

CUT = cut(Kind.EXTERNAL_CUT, 1000.0, 600.0, (1,), Path.REFUSED)
SLOW = slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.2)


def month(*episodes: Episode) -> Month:
    return Month(3, episodes, (0.001,) * 3, np.zeros((4, 3)), (0.02,) * 3, Assumptions(), (1, 3, 0))


def test_a_cut_loses_every_request_of_its_broker_and_none_of_others() -> None:
    assert harm(month(CUT), 1) == [Stretch(1000.0, 1600.0, 1.0)]
    assert harm(month(CUT), 0) == []


def test_a_disk_loses_the_share_of_its_writes_over_the_objective() -> None:
    assert harm(month(SLOW), 1)[0].share == pytest.approx(1.0, abs=0.01)
    assert harm(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.05)), 1)[0].share == pytest.approx(0.5)
    assert harm(month(slow_disk(Kind.DISK_SLOW, 1000.0, 600.0, 1, 0.01)), 1) == []


def test_of_two_faults_at_once_the_worse_counts() -> None:
    assert sum(s.lost for s in harm(month(CUT, SLOW), 1)) == pytest.approx(600.0)


def test_what_no_demotion_cures_is_left_out() -> None:
    assert harm(month(frozen(Kind.GC_PAUSE, 1000.0, 6.0, 1)), 1) == []


def test_a_clairvoyant_bears_a_short_fault_and_moves_away_from_a_long_one() -> None:
    assert clairvoyant([Stretch(0.0, 2.0, 1.0)]) == 2.0
    assert clairvoyant([Stretch(0.0, 600.0, 1.0)]) == MOVE_SECONDS
    assert clairvoyant([Stretch(t, t + 2.0, 1.0) for t in (0.0, 4.0, 8.0)]) == MOVE_SECONDS
    assert clairvoyant([Stretch(t, t + 2.0, 1.0) for t in (0.0, 4000.0)]) == 4.0


def test_a_demotion_ends_the_harm_and_costs_a_move() -> None:
    stretches = harm(month(CUT), 1)
    assert suffered(stretches, []) == pytest.approx(600.0)
    assert suffered(stretches, [1004.0]) == pytest.approx(4.0 + MOVE_SECONDS)
    assert suffered(stretches, [1004.0, 1010.0]) == pytest.approx(4.0 + MOVE_SECONDS)
    assert suffered([], [50.0]) == MOVE_SECONDS


def test_a_demotion_ends_after_a_minute_without_harm() -> None:
    twice = [Stretch(0.0, 10.0, 1.0), Stretch(500.0, 510.0, 1.0)]
    assert suffered(twice, [3.0]) == pytest.approx(3.0 + MOVE_SECONDS + 10.0)


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

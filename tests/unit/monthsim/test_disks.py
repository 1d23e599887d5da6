import itertools

import numpy as np
import pytest

from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading
from monthsim.disks import Volume, plain, watch, writes
from monthsim.episodes import Disk, DiskEffect
from monthsim.paths import News

OBJECTIVES = Objectives()


def volume(what: Disk, seconds: float, level: float = 0.0) -> Volume:
    return Volume(0.00126, 0.484, (DiskEffect(1000.0, 1000.0 + seconds, what, (0,), (level,)),), 0)


def news(one: Volume) -> list[News]:
    begun = list(writes(one, 0.5, np.random.default_rng(1)))
    return watch(one, begun, OBJECTIVES)


def failing(found: list[News]) -> list[float]:
    return [n.time for n in found if n.signal.reading is Reading.FAILING]


def lost(found: list[News]) -> float:
    return max((n.signal.harm.lost_seconds for n in found if n.signal.harm is not None), default=0.0)


def test_a_slow_disk_fails_at_the_second_slow_write_and_its_harm_grows() -> None:
    found = news(volume(Disk.SLOW, 3600.0, 0.2))
    assert failing(found)[0] == pytest.approx(1001.7, abs=0.1)
    assert lost(found) > 60
    assert found[-1].signal.reading is Reading.PASSING


def test_one_slow_write_is_no_failure() -> None:
    assert failing(news(volume(Disk.SLOW, 1.0, 0.2))) == []


def test_a_write_that_never_ends_fails_while_it_hangs() -> None:
    assert failing(news(volume(Disk.STALLED, 600.0)))[0] == pytest.approx(1001.6, abs=0.1)


def test_slow_syncs_are_reported_and_are_no_harm() -> None:
    found = news(volume(Disk.SYNCS, 600.0, 2.0))
    assert max(n.signal.value or 0.0 for n in found) == 2.0
    assert (failing(found), lost(found)) == ([], 0)


def test_a_disk_that_is_slow_one_second_in_ten_loses_less_than_a_move_costs() -> None:
    assert lost(news(volume(Disk.BURSTY, 3600.0, 0.1))) < 2.3


def test_a_wave_with_fast_writes_is_skipped() -> None:
    assert volume(Disk.WAVE, 900.0, 2.0).quiet()
    assert not volume(Disk.WAVE, 900.0, 30.0).quiet()


def test_a_skipped_wave_would_have_changed_no_reading() -> None:
    one = volume(Disk.WAVE, 900.0, 3.0)
    assert one.quiet()
    quieter = Volume(one.usual_seconds, one.sigma, (*one.effects, *volume(Disk.STALLED, 0.0).effects), 0)
    assert not quieter.quiet()
    assert news(quieter) == []


def test_no_write_begins_while_another_hangs() -> None:
    begun = list(writes(volume(Disk.STALLED, 60.0), 0.5, np.random.default_rng(1)))
    assert all(t + s <= u + 1e-9 for (t, s), (u, _) in itertools.pairwise(begun))
    assert max(s for _, s in begun) == pytest.approx(59.5, abs=0.1)


def test_hiccups_that_lie_days_apart_do_not_add_up() -> None:
    hiccups = tuple(DiskEffect(t, t + 2.0, Disk.SLOW, (0,), (0.2,)) for t in (1000.0, 90_000.0, 180_000.0))
    one = Volume(0.00126, 0.484, hiccups, 0)
    begun = list(writes(one, 0.5, np.random.default_rng(1)))
    assert lost(watch(one, begun, OBJECTIVES)) < 2.3


def test_a_plain_count_fails_at_five_of_ten_and_at_a_write_that_hangs_for_as_long() -> None:
    for what, level in ((Disk.SLOW, 0.2), (Disk.STALLED, 0.0)):
        one = volume(what, 600.0, level)
        begun = list(writes(one, 0.5, np.random.default_rng(1)))
        assert 1004.0 < failing(plain(one, begun))[0] < 1006.0

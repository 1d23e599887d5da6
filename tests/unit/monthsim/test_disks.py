import itertools

import numpy as np
import pytest

from bellwether.core.settings.detection import StorageLatency
from bellwether.core.signals import Reading
from monthsim.disks import Volume, plain, watch, writes
from monthsim.episodes import Disk, DiskEffect
from monthsim.paths import News

SETTINGS = StorageLatency(window_samples=10, failure_threshold=5, timeout_seconds=5)


def volume(what: Disk, seconds: float, level: float = 0.0) -> Volume:
    return Volume(0.00126, 0.484, (DiskEffect(1000.0, 1000.0 + seconds, what, (0,), (level,)),), 0)


def news(one: Volume) -> list[News]:
    begun = list(writes(one, 0.5, SETTINGS, np.random.default_rng(1)))
    return watch(one, begun, SETTINGS)


def failing(found: list[News]) -> list[float]:
    return [n.time for n in found if n.signal.reading is Reading.FAILING]


def test_a_slow_disk_fails_at_the_fifth_slow_write_and_tells_how_slow_it_is() -> None:
    found = news(volume(Disk.SLOW, 3600.0, 0.2))
    assert failing(found)[0] == pytest.approx(1004.7, abs=0.1)
    assert found[-1].signal.reading is Reading.PASSING
    assert 0.1 < (found[0].signal.latency_seconds or 0.0) < 0.4


def test_a_hiccup_of_three_seconds_is_no_failure() -> None:
    assert failing(news(volume(Disk.SLOW, 3.0, 0.2))) == []


def test_a_write_that_never_ends_fails_at_its_timeout() -> None:
    assert failing(news(volume(Disk.STALLED, 600.0)))[0] == pytest.approx(1005.5, abs=0.1)


def test_a_bursty_disk_is_no_failure() -> None:
    assert failing(news(volume(Disk.BURSTY, 3600.0, 0.1))) == []


def test_a_wave_that_leaves_writes_fast_is_passed_over() -> None:
    assert volume(Disk.WAVE, 900.0, 2.0).quiet()
    assert not volume(Disk.WAVE, 900.0, 30.0).quiet()


def test_what_is_passed_over_would_have_been_no_news() -> None:
    one = volume(Disk.WAVE, 900.0, 3.0)
    assert one.quiet()
    quieter = Volume(one.usual_seconds, one.sigma, (*one.effects, *volume(Disk.STALLED, 0.0).effects), 0)
    assert not quieter.quiet()
    assert news(quieter) == []


def test_no_write_begins_while_another_hangs() -> None:
    begun = list(writes(volume(Disk.STALLED, 60.0), 0.5, SETTINGS, np.random.default_rng(1)))
    assert all(t + s <= u + 1e-9 for (t, s), (u, _) in itertools.pairwise(begun))
    assert max(s for _, s in begun) == pytest.approx(59.5, abs=0.1)


def test_hiccups_that_lie_days_apart_do_not_add_up() -> None:
    settings = StorageLatency(window_samples=50, failure_threshold=10)
    hiccups = tuple(DiskEffect(t, t + 7.0, Disk.SLOW, (0,), (0.2,)) for t in (1000.0, 90_000.0, 180_000.0))
    one = Volume(0.00126, 0.484, hiccups, 0)
    begun = list(writes(one, 0.5, settings, np.random.default_rng(1)))
    assert failing(watch(one, begun, settings)) == []


def test_a_plain_count_fails_at_five_of_ten_and_at_a_write_that_hangs_for_as_long() -> None:
    for what, level in ((Disk.SLOW, 0.2), (Disk.STALLED, 0.0)):
        one = volume(what, 600.0, level)
        begun = list(writes(one, 0.5, SETTINGS, np.random.default_rng(1)))
        assert 1004.0 < failing(plain(one, begun))[0] < 1006.0

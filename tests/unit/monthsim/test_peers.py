import numpy as np
import pytest

from monthsim import disks, peers
from monthsim.assumptions import Assumptions
from monthsim.episodes import Disk, DiskEffect, Episode, Kind, Month
from monthsim.reconciles import Demotion


def month(*episodes: Episode, brokers: int = 12) -> Month:
    phases = np.full((4, brokers), 0.5)
    return Month(brokers, episodes, (0.00126,) * brokers, phases, (0.02, 0.05, 0.1), Assumptions())


def on_disk(
    what: Disk, seconds: float, brokers: tuple[int, ...], level: float = 0.0, bytes_factor: float = 1.0
) -> Episode:
    effect = DiskEffect(3000.0, 3000.0 + seconds, what, brokers, (level,) * len(brokers))
    return Episode(Kind.DISK_SLOW, 3000.0, 3000.0 + seconds, brokers, disks=(effect,), bytes_factor=bytes_factor)


def by_second(one: Month) -> dict[str, list[Demotion]]:
    rng = np.random.default_rng(1)
    volumes = {
        b: disks.Volume(
            one.usual_seconds[b], 0.484, tuple(d for e in one.episodes for d in e.disks if b in d.brokers), b
        )
        for b in range(one.brokers)
    }
    writes = {b: tuple(disks.writes(v, 0.5, rng)) for b, v in volumes.items()}
    return peers.second_by_second(one, peers.seconds_of(one, writes, rng))


def test_the_median_of_the_others_is_that_of_the_others() -> None:
    values = np.random.default_rng(1).uniform(0.0, 1.0, (7, 20))
    found = peers._median_of_others(values)
    for broker in range(7):
        assert found[broker] == pytest.approx(np.median(np.delete(values, broker, axis=0), axis=0))


def test_a_slow_disk_is_found_by_history_and_peers_and_not_by_one_second() -> None:
    found = by_second(month(on_disk(Disk.SLOW, 7200.0, (4,), 0.3)))
    assert [d.broker for d in found["own history"]][:1] == [4]
    assert [d.broker for d in found["peers"]][:1] == [4]
    assert found["absolute"] == found["all three"] == []
    assert 3004.0 < found["peers"][0].time < 3008.0


def test_a_hanging_disk_shows_its_age_to_all_of_them() -> None:
    found = by_second(month(on_disk(Disk.STALLED, 7200.0, (4,))))
    assert all([d.broker for d in demotions] == [4] for demotions in found.values())


def test_a_wave_misleads_history_and_not_peers() -> None:
    found = by_second(month(on_disk(Disk.WAVE, 900.0, tuple(range(12)), 12.0, bytes_factor=3.0)))
    assert len({d.broker for d in found["own history"]}) == 12
    assert found["peers"] == []


def test_slow_syncs_mislead_those_that_look_at_flush_times() -> None:
    slow = month(on_disk(Disk.SYNCS, 7200.0, (4,), 2.0))
    found = by_second(slow)
    assert [d.broker for d in found["all three"]][:1] == [4]
    assert found["own history"] == found["peers"] == found["absolute"] == []
    assert [d.broker for d in peers.cruise_control(slow, np.random.default_rng(1))] == [4]


def test_cruise_control_takes_five_rounds_for_a_hanging_disk() -> None:
    found = peers.cruise_control(month(on_disk(Disk.STALLED, 7200.0, (4,))), np.random.default_rng(1))
    assert [d.broker for d in found] == [4]
    assert 4 * 300.0 <= found[0].time - 3000.0 <= 5 * 300.0


def test_cruise_control_never_demotes_below_ten_brokers() -> None:
    hanging = month(on_disk(Disk.STALLED, 7200.0, (4,)), brokers=6)
    assert peers.cruise_control(hanging, np.random.default_rng(1)) == []


def test_cruise_control_does_not_find_disk_of_half_second() -> None:
    slow = month(on_disk(Disk.SLOW, 7200.0, (4,), 0.4))
    assert peers.cruise_control(slow, np.random.default_rng(1)) == []

"""A broker's way back: which partitions a wave lets it lead."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.restoration_waves import wave_position
from testkit.values.builders import after, returning

KEYS = [PartitionKey(f"topic-{number % 40}", number // 40) for number in range(4000)]


@pytest.mark.parametrize("share", [0, 1, 10, 50, 99, 100])
def test_a_wave_lets_go_about_its_share_of_the_partitions(share: int):
    wave = returning(share=share)
    let_go = sum(not wave.withholds(key) for key in KEYS)
    assert let_go == pytest.approx(share * len(KEYS) / 100, abs=0.03 * len(KEYS))


def test_nothing_returns_at_0_and_everything_at_100():
    assert all(returning(share=0).withholds(key) for key in KEYS)
    assert not any(returning(share=100).withholds(key) for key in KEYS)


def test_what_one_wave_lets_go_no_later_one_withholds():
    withheld = [{key for key in KEYS if returning(share=share).withholds(key)} for share in (0, 10, 11, 50, 100)]
    assert all(later < before for before, later in pairwise(withheld))


def test_the_waves_of_every_broker_let_go_the_same_partitions():
    assert [returning(1).withholds(key) for key in KEYS] == [returning(2).withholds(key) for key in KEYS]


@pytest.mark.parametrize(
    ("leaders", "share", "released"),
    [(1, 10, 1), (2, 50, 1), (3, 50, 2), (4, 10, 1), (4, 50, 2), (6, 50, 3), (21, 10, 2), (21, 50, 11), (150, 10, 15)],
)
def test_wave_of_few_leaders_holds_its_share_to_nearest_partition(leaders: int, share: int, released: int):
    for topic in range(30):
        keys = [PartitionKey(f"topic-{topic}", number) for number in range(leaders)]
        wave = returning(share=0).with_share(share, after(1), keys)
        assert sum(not wave.withholds(key) for key in keys) == released


@pytest.mark.parametrize("left", [0, 1, 2, 5])
def test_no_later_wave_withholds_what_was_released_whatever_vanishes_meanwhile(left: int):
    keys = KEYS[:8]
    wave = returning(share=0).with_share(50, after(1), keys)
    later = wave.with_share(60, after(2), keys[:left])
    assert not any(later.withholds(key) for key in keys if not wave.withholds(key))


def test_wave_without_any_leader_holds_share_of_what_may_come():
    wave = returning(share=0).with_share(50, after(1), [])
    assert [wave.withholds(key) for key in KEYS] == [returning(share=50).withholds(key) for key in KEYS]


def test_partition_has_same_turn_in_every_process_and_version():
    assert [int(wave_position(PartitionKey("AAAAAAAAAAAAAAAAAAAAAQ", number))) for number in range(6)] == [
        54,
        51,
        93,
        63,
        55,
        38,
    ]


def test_a_known_turn_is_asked_like_the_partition_itself():
    wave = returning(share=37)
    assert [wave.withholds_position(wave_position(key)) for key in KEYS] == [wave.withholds(key) for key in KEYS]

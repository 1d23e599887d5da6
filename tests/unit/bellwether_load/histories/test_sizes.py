from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bellwether_load.histories.samples import between
from bellwether_load.histories.sizes import medians, produced
from testkit.loads.load_histories import History, Sample, deleted, led, rates, samples, steady


def bytes_of(history: History) -> list[float]:
    """Bytes of each interval of a single partition."""
    found, known = produced(between(samples(history), 600))
    assert known.tolist() == [True]
    return found.tolist()


def known(*histories: History) -> list[bool]:
    return produced(between(samples(*histories), 600))[1].tolist()


def test_a_log_that_grows_tells_the_bytes():
    assert bytes_of(steady(4, messages=100, each=10)) == [1000.0] * 3


def test_messages_that_grow_larger_are_counted_at_their_size():
    history = [Sample(0, 0, 0), Sample(60, 100, 1000), Sample(120, 200, 2000), Sample(180, 300, 3500)]
    assert bytes_of(history) == [1000.0, 1000.0, 1500.0]


def test_where_segments_were_deleted_it_is_messages_times_their_usual_size():
    assert bytes_of(deleted(steady(6), 3, size=2500)) == [1000.0] * 5


def test_a_deletion_that_hides_behind_growth_is_seen_by_the_little_that_is_left():
    # 1000 bytes came and 800 went.
    assert bytes_of(deleted(steady(6), 3, size=800)) == [1000.0] * 5


def test_a_compaction_is_no_loss_of_load():
    history = steady(12)
    for minute in (3, 6, 9):
        history = deleted(history, minute, size=1900)
    assert bytes_of(history) == [1000.0] * 11


@pytest.mark.parametrize("larger", [10**9, -10, 0, 700])
def test_a_new_leaders_other_size_counts_for_nothing(larger: int):
    assert bytes_of(led(steady(6), 3, leader=2, larger=larger)) == [1000.0] * 5


def test_leaders_that_go_to_and_fro_count_for_nothing():
    history = steady(8)
    for minute, leader in ((2, 2), (4, 1), (6, 2)):
        history = led(history, minute, leader, larger=10**6 * leader)
    assert bytes_of(history) == [1000.0] * 7


def test_where_sizes_are_missing_messages_tell():
    history = [replace(s, size=None if s.at >= 240 else s.size) for s in steady(8)]
    assert bytes_of(history) == [1000.0] * 7


def test_no_messages_are_no_bytes_even_if_the_log_grew():
    # The leader has bytes that its followers have not, so the end that clients see does not move for a minute.
    history = [replace(s, end=400 if s.at == 300 else s.end) for s in steady(8)]
    assert bytes_of(history) == [1000.0] * 4 + [0.0, 2000.0, 1000.0]


def test_a_single_monstrous_step_does_not_set_the_usual_size():
    history = deleted(steady(10), 4, size=-(10**9))
    found = bytes_of(deleted(history, 8, size=5000))
    assert found[3] == 10**9 + 1000
    assert found[:3] + found[4:] == [1000.0] * 8


def test_the_usual_size_is_that_of_most_messages_not_of_most_minutes():
    # Quiet minutes of large messages, busy ones of small messages; then a segment goes in a busy one.
    ends = np.cumsum([0, *([1] * 6), *([1000] * 4)])
    sizes = np.cumsum([0, *([500] * 6), *([10_000] * 4)])
    sizes[-1] -= 50_000
    history = [Sample(60 * m, int(end), int(size)) for m, (end, size) in enumerate(zip(ends, sizes, strict=True))]
    assert bytes_of(history) == [500.0] * 6 + [10_000.0] * 4


def test_without_any_growth_bytes_are_unknown_if_there_were_messages():
    shrinking = [Sample(60 * m, 100 * m, 10_000 - m) for m in range(5)]
    unsized = [replace(s, size=None) for s in steady(5)]
    assert known(shrinking, unsized, steady(5)) == [False, False, True]


def test_an_idle_partition_has_a_known_load_of_nothing_whatever_its_size():
    idle = [Sample(60 * m, 5, None) for m in range(5)]
    assert bytes_of(idle) == [0.0] * 4
    assert bytes_of(rates([0] * 4)) == [0.0] * 4
    compacted_while_idle = [Sample(60 * m, 5, 1000 - 100 * m) for m in range(5)]
    assert bytes_of(compacted_while_idle) == [0.0] * 4


def test_partitions_do_not_lend_each_other_sizes():
    found, _ = produced(between(samples(steady(4, each=10), deleted(steady(4, each=70), 2, size=10**6)), 600))
    assert found.tolist() == [1000.0] * 3 + [7000.0] * 3


def test_no_partitions_have_no_bytes():
    found, sized = produced(between(samples(), 600))
    assert (len(found), len(sized)) == (0, 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_median_is_where_half_of_the_weight_is_reached(seed: int):
    dice = np.random.default_rng(seed)
    groups = [(dice.integers(0, 9, n) / 4, dice.integers(1, 9, n)) for n in dice.choice([0, 1, 2, 5, 90], 20)]
    found = medians(
        *(np.concatenate(of) for of in zip(*groups, strict=True)), np.cumsum([0, *(len(v) for v, _ in groups)])
    )
    # The same of each value, as often as it weighs.
    expected = [np.sort(np.repeat(v, w))[(w.sum() + 1) // 2 - 1] if len(v) else np.nan for v, w in groups]
    np.testing.assert_array_equal(found, expected)


def test_weights_add_up_exactly_where_they_are_large():
    assert medians(np.array([1.0, 2.0]), np.array([2**55, 2**55 + 2]), np.array([0, 2])).tolist() == [2.0]

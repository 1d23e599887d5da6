import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether_load.sampling.consumption_estimate import spread


def partitions(topic: str, count: int, topic_id: str = "") -> list[Partition]:
    return [Partition(topic, topic_id or topic, index, (1,), (1,), 1) for index in range(count)]


def before(topic: str, *ends: int) -> dict[PartitionKey, int]:
    return {PartitionKey(topic, index): end for index, end in enumerate(ends)}


def test_a_topics_bytes_are_dealt_as_its_new_records_are() -> None:
    found = spread({"t": 1024.0}, partitions("t", 3), [103, 205, 300], before("t", 100, 200, 300))
    assert found == pytest.approx([384, 640, 0], rel=2e-3)


def test_each_topic_has_its_own() -> None:
    both = partitions("t", 1) + partitions("u", 1)
    found = spread({"t": 8.0, "u": 2.0}, both, [1, 100], before("t", 0) | before("u", 0))
    assert found == [8.0, 2.0]


def test_what_a_broker_sends_is_dealt_to_the_partitions_that_it_leads() -> None:
    led = [Partition("t", "t", index, (1, 2), (1, 2), leader) for index, leader in enumerate((1, 1, 2, None))]
    topics = {("t", 1): 900.0, ("t", 2): 50.0, ("t", 3): 7.0}
    found = spread(topics, led, [10, 20, 30, 0], before("t", 0, 0, 0, 0))
    assert found == [pytest.approx(300, rel=2e-3), pytest.approx(600, rel=2e-3), 50.0, None]


def test_a_leader_of_which_nothing_is_said_has_unknown_consumption() -> None:
    assert spread({("t", 2): 5.0}, partitions("t", 1), [1], before("t", 0)) == [None]


def test_a_topic_that_prometheus_does_not_name_is_unknown() -> None:
    assert spread({"u": 5.0}, partitions("t", 2), [1, 1], before("t", 0, 0)) == [None, None]


def test_while_nothing_is_known_of_the_round_before_nothing_is_said() -> None:
    assert spread({"t": 5.0}, partitions("t", 2), [1, 1], {}) == [None, None]


def test_a_missing_partition_leaves_only_its_topic_unknown() -> None:
    both = partitions("t", 2) + partitions("u", 1)
    found = spread({"t": 8.0, "u": 2.0}, both, [None, 5, 7], before("t", 0, 0) | before("u", 0))
    assert found == [None, None, 2.0]


def test_a_truncated_log_or_recreated_topic_is_unknown() -> None:
    assert spread({"t": 8.0}, partitions("t", 1), [3], before("t", 5)) == [None]
    assert spread({"t": 8.0}, partitions("t", 1, topic_id="new"), [3], before("t", 1)) == [None]


def test_a_topic_without_readers_and_records_is_known_to_be_idle() -> None:
    assert spread({"t": 0.0}, partitions("t", 2), [5, 5], before("t", 5, 5)) == [0.0, 0.0]


def test_readers_of_what_came_long_ago_are_not_dealt_out() -> None:
    assert spread({"t": 9.0}, partitions("t", 2), [5, 5], before("t", 5, 5)) == [None, None]


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0])
def test_a_figure_that_cannot_be_is_unknown(nonsense: float) -> None:
    assert spread({"t": nonsense}, partitions("t", 1), [5], before("t", 1)) == [None]


@given(st.floats(0, 1e12), st.lists(st.integers(0, 10**9), min_size=1, max_size=30))
def test_what_is_dealt_adds_up_to_what_there_was(total: float, came: list[int]) -> None:
    found = spread({"t": total}, partitions("t", len(came)), came, before("t", *[0] * len(came)))
    if None not in found:
        assert sum(value for value in found if value is not None) == pytest.approx(total, rel=2e-3, abs=1e-6)
        assert all(value is not None and 0 <= value <= total * 1.002 for value in found)

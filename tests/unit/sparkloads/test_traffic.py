from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparkloads.traffic import MIDNIGHT, PART, WITNESSES, Cluster, Seen


def day(cluster: Cluster, rows: slice) -> dict[str, Any]:
    hours = [cluster.hour(number, rows) for number in range(24)]
    names = Seen.__dataclass_fields__
    return {name: np.concatenate([getattr(hour, name) for hour in hours], axis=1) for name in names}


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    return day(Cluster(PART, 3), slice(0, PART))


def test_the_same_seed_gives_the_same_samples(seen: dict[str, Any]):
    again = day(Cluster(PART, 3), slice(0, PART))
    assert all(np.array_equal(seen[name], again[name]) for name in seen)
    assert not np.array_equal(seen["end"], day(Cluster(PART, 4), slice(0, PART))["end"])


def test_partitions_are_in_order_of_topic_and_number():
    cluster = Cluster(5000, 1)
    names = list(zip((cluster.topics[t] for t in cluster.topic), cluster.partition.tolist(), strict=True))
    assert names == sorted(names)
    assert len(set(names)) == 5000
    assert {len(one) for one in cluster.topic_ids} == {22}


def test_parts_are_all_partitions_once():
    parts = list(Cluster(2 * PART + 5, 1).parts())
    assert [(p.start, p.stop) for p in parts] == [(0, PART), (PART, 2 * PART), (2 * PART, 2 * PART + 5)]


def test_there_is_a_sample_in_each_minute_of_the_day(seen: dict[str, Any]):
    assert seen["at"].shape == (PART, 1440)
    assert (seen["at"] == MIDNIGHT + 60 * np.arange(1440)).all()


def test_ends_never_go_back_and_some_are_unanswered(seen: dict[str, Any]):
    assert 0.0001 < (seen["end"] < 0).mean() < 0.02
    for row in seen["end"]:
        assert (np.diff(row[row >= 0]) >= 0).all()


def test_logs_shrink_leaders_change_and_sizes_with_them(seen: dict[str, Any]):
    answered = (seen["size"][:, 1:] >= 0) & (seen["size"][:, :-1] >= 0)
    same = (np.diff(seen["epoch"]) == 0) & answered
    shrank = (np.diff(seen["size"]) < 0) & same
    assert shrank.sum() > 50
    assert ((np.diff(seen["epoch"]) != 0) == (np.diff(seen["leader"]) != 0)).all()
    assert 0.1 < (np.diff(seen["epoch"]) != 0).any(axis=1).mean() < 0.9


def test_rates_are_heavy_tailed_and_swing(seen: dict[str, Any]):
    cluster = Cluster(2000, 5)
    busiest = np.sort(cluster._rate)[::-1]
    assert busiest[:100].sum() > 0.3 * busiest.sum()


def test_the_true_rates_are_those_of_the_first_partitions():
    cluster = Cluster(PART, 3)
    day(cluster, slice(0, PART))
    true = np.concatenate(cluster.true_bytes, axis=1)
    assert true.shape == (WITNESSES, 1440)
    assert (true >= 0).all()

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given

from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.recording.traces.cluster_section import cluster_section, partition_row, read_cluster, read_partition
from bellwether.recording.traces.merge_patch import difference, patched
from bellwether.recording.traces.trace_lines import UnreadableTrace
from testkit.values import strategies


def plain(cluster: Cluster) -> Cluster:
    """The cluster without what a trace does not keep: addresses, epochs, and the order within an ISR."""
    return Cluster(
        cluster.cluster_id,
        {b.id: Broker(b.id, b.rack, fenced=b.fenced) for b in cluster.brokers.values()},
        tuple(
            replace(p, isr=tuple(r for r in p.replicas if r in p.isr), leader_epoch=-1)
            for p in sorted(cluster.partitions, key=lambda p: (p.topic, p.index))
        ),
        removed=cluster.removed,
    )


@given(strategies.clusters())
def test_a_cluster_is_read_back(cluster: Cluster):
    assert read_cluster(json.loads(json.dumps(cluster_section(cluster)))) == plain(cluster)


def test_removed_brokers_are_read_back():
    seen = Cluster("k", {1: Broker(1)}, (Partition("orders", "id", 0, (1, 9), (1,), 1),), removed=frozenset({9}))
    assert read_cluster(cluster_section(seen)) == seen


@given(strategies.clusters(), strategies.clusters())
def test_a_cluster_is_read_back_from_what_changed(before: Cluster, after: Cluster):
    first, second = cluster_section(before), cluster_section(after)
    news = json.loads(json.dumps(difference(first, second)))
    assert read_cluster(patched(first, news)) == plain(after)


def test_a_broker_that_serves_unlisted_does_so_in_the_replay():
    seen = Cluster("c", {1: Broker(1)}, (Partition("orders", "id", 0, (1, 4), (1,), 1),), serving=frozenset({4}))
    assert read_cluster(json.loads(json.dumps(cluster_section(seen)))).unlisted == {4}


def test_a_partition_at_its_best_is_a_few_bytes():
    assert partition_row(Partition("orders", "id", 0, (1, 2, 3), (3, 1, 2), 1)) == "1,2,3"
    assert partition_row(Partition("orders", "id", 0, (1, 2, 3), (3, 2), 2)) == "1,2,3;2,3;2"
    assert partition_row(Partition("orders", "id", 0, (1, 2), (), None, elr=(2,))) == "1,2;-;-;2"
    unnamed = Partition("orders", "id", 0, (1, 2), (1, 2), None, leader_unknown=True, offline=(2,))
    assert partition_row(unnamed) == "1,2;;?;;;;2"
    assert read_partition("1,2;;?;;;;2", "orders", "id", 0, internal=False) == unnamed


@pytest.mark.parametrize("row", ["", "a", "1,2;x", "1;1;y", ";1"])
def test_a_row_that_is_none_is_refused(row: str):
    with pytest.raises(ValueError, match=r"no replicas|invalid literal"):
        read_partition(row, "orders", "id", 0, internal=False)


@pytest.mark.parametrize(
    "section", [{}, {"id": "c"}, {"id": "c", "brokers": {"x": {}}}, {"id": "c", "brokers": {}, "topics": {"i": {}}}]
)
def test_a_damaged_cluster_is_refused(section: dict[str, object]):
    with pytest.raises(UnreadableTrace, match="the cluster in the trace is damaged"):
        read_cluster(section)


def test_without_partitions_each_named_broker_gets_one_to_lead():
    partitions = (Partition("orders", "id", 0, (1, 2, 4), (1, 2), 1),)
    cluster = Cluster("c", {1: Broker(1, "a"), 2: Broker(2, "b"), 3: Broker(3, "c", fenced=True)}, partitions)
    section = cluster_section(cluster, partitions=False)
    assert "orders" not in json.dumps(section)
    found = read_cluster(section)
    assert (found.named, found.live) == (cluster.named, cluster.live)
    assert found.leaders() == {1: 3, 2: 1, 3: 0, 4: 0}

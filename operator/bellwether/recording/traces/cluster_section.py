"""Encode and decode cluster metadata as a section of a trace, compact enough for 200,000 partitions.

In: ``core.model.cluster`` values. Out: brokers with rack and fencing, and a short text a partition, by topic id and
index: ``replicas;isr;leader;elr;adding;removing;offline``, each left out where it is what one expects.
``1,2,3`` is a partition that broker 1 leads and whose replicas are all in the ISR. Host names are not kept. Called by
the recorder and by replays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellwether.core.model.cluster import Broker, Cluster, Partition
from bellwether.recording.traces.merge_patch import Document, Json
from bellwether.recording.traces.trace_sections import reading

NO_BROKER = "-"
UNKNOWN_BROKER = "?"


def cluster_section(cluster: Cluster, partitions: bool = True) -> dict[str, Json]:
    """The cluster; without ``partitions`` only which brokers its replica lists name."""
    section: dict[str, Json] = {
        "id": cluster.cluster_id,
        "brokers": {str(b.id): _broker_row(b) for b in cluster.brokers.values()},
    }
    for name, ids in (("removed", cluster.removed), ("serving", cluster.serving)):
        if ids:
            section[name] = sorted(ids)
    if not partitions:
        return {**section, "named": sorted(cluster.named)}
    topics: dict[str, dict[str, Json]] = {}
    for partition in cluster.partitions:
        topic = topics.get(partition.topic_id)
        if topic is None:
            topic = topics[partition.topic_id] = {"name": partition.topic, "partitions": {}}
            if partition.internal:
                topic["internal"] = True
        topic["partitions"][str(partition.index)] = partition_row(partition)
    return {**section, "topics": topics}


def read_cluster(section: Document) -> Cluster:
    """The recorded cluster. Raises UnreadableTrace.

    Where the trace has no partitions, each broker that replica lists named gets one to lead, which all others follow:
    enough for the judgement, and nothing that a plan could be made of.
    """
    found: Cluster = reading("the cluster", lambda: _read_cluster(section))
    return found


def partition_row(partition: Partition) -> str:
    """One partition as a short text."""
    ids = partition.replicas
    isr = tuple(r for r in ids if r in partition.isr)
    leader = partition.leader
    led = UNKNOWN_BROKER if partition.leader_unknown else NO_BROKER if leader is None else str(leader)
    fields = [
        _list(ids),
        "" if isr == ids else _list(isr) or NO_BROKER,
        "" if leader == ids[0] else led,
        _list(partition.elr),
        _list(partition.adding),
        _list(partition.removing),
        _list(partition.offline),
    ]
    return ";".join(fields).rstrip(";")


def read_partition(row: str, topic: str, topic_id: str, index: int, internal: bool) -> Partition:
    """The inverse of ``partition_row``. Raises ValueError."""
    replicas, isr, leader, elr, adding, removing, offline = (*row.split(";"), *[""] * 6)[:7]
    ids = _ids(replicas)
    if not ids:
        raise ValueError(f"partition {topic}-{index} has no replicas")
    return Partition(
        topic=topic,
        topic_id=topic_id,
        index=index,
        replicas=ids,
        isr=() if isr == NO_BROKER else _ids(isr) or ids,
        leader=None if leader in (NO_BROKER, UNKNOWN_BROKER) else int(leader) if leader else ids[0],
        elr=_ids(elr),
        adding=_ids(adding),
        removing=_ids(removing),
        internal=internal,
        leader_unknown=leader == UNKNOWN_BROKER,
        offline=_ids(offline),
    )


def _read_cluster(section: Document) -> Cluster:
    brokers = {int(broker): _read_broker(int(broker), row) for broker, row in section["brokers"].items()}
    if "topics" in section:
        partitions = tuple(
            read_partition(row, str(topic["name"]), topic_id, int(index), bool(topic.get("internal", False)))
            for topic_id, topic in section["topics"].items()
            for index, row in topic["partitions"].items()
        )
        partitions = tuple(sorted(partitions, key=lambda p: (p.topic, p.index)))
    else:
        partitions = _stand_ins(brokers, [int(b) for b in section.get("named", brokers)])
    removed, serving = (frozenset(map(int, section.get(name, ()))) for name in ("removed", "serving"))
    found = dict(sorted(brokers.items()))
    return Cluster(str(section["id"]), found, partitions, removed=removed, serving=serving)


def _stand_ins(brokers: Mapping[int, Broker], named: list[int]) -> tuple[Partition, ...]:
    live = {b.id for b in brokers.values() if not b.fenced}
    ids = sorted(named)
    partitions = []
    for index, broker in enumerate(ids):
        order = (broker, *(b for b in ids if b != broker))
        isr = tuple(b for b in order if b in live)
        partitions.append(Partition("left-out", "left-out", index, order, isr, isr[0] if isr else None))
    return tuple(partitions)


def _broker_row(broker: Broker) -> dict[str, Json]:
    row: dict[str, Json] = {}
    if broker.rack is not None:
        row["rack"] = broker.rack
    if broker.fenced:
        row["fenced"] = True
    return row


def _read_broker(broker: int, row: Mapping[str, Any]) -> Broker:
    rack = row.get("rack")
    return Broker(broker, str(rack) if rack is not None else None, fenced=bool(row.get("fenced", False)))


def _list(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def _ids(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()

"""Cluster descriptions: brokers with racks and topics with replicas, as YAML values, for simulations and lint.

In: values such as ``{brokers: {1: a, 2: b}, topics: {orders: 12}}``. Out: a ``MemoryCluster``, or ValueError with the
field, the value and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellwether.simulation.memory_cluster import MemoryCluster

BROKER_LIMIT = 1000
PARTITION_LIMIT = 100_000
_FIELDS = ("brokers", "topics", "replicationFactor", "minInsyncReplicas")


def cluster_of(values: Any) -> MemoryCluster:
    """The cluster that these values describe. Raises ValueError."""
    if not isinstance(values, Mapping):
        raise ValueError("a cluster description is an object with brokers and topics")
    for name in values:
        if name not in _FIELDS:
            raise ValueError(f"{name}: no such field: a cluster description has {', '.join(_FIELDS)}")
    brokers, topics = _brokers(values.get("brokers")), values.get("topics") or {}
    if not isinstance(topics, Mapping):
        raise ValueError("topics: must be an object, such as {orders: 12}")
    found = {str(name): _partitions(str(name), given, brokers) for name, given in topics.items()}
    if sum(given if isinstance(given, int) else len(given) for given in found.values()) > PARTITION_LIMIT:
        raise ValueError(f"topics: more than {PARTITION_LIMIT} partitions, the limit: describe fewer")
    factor = min(_whole("replicationFactor", values.get("replicationFactor", 3), 32), len(brokers))
    min_isr = _whole("minInsyncReplicas", values.get("minInsyncReplicas", 1), 32)
    cluster = MemoryCluster(brokers)
    for topic, given in found.items():
        number, orders = (given, None) if isinstance(given, int) else (len(given), given)
        internal = topic.startswith("__")
        cluster.create_topic(topic, number, factor, assignment=orders, internal=internal, min_isr=min_isr)
    return cluster


def _brokers(given: Any) -> dict[int, str | None]:
    if isinstance(given, int) and not isinstance(given, bool):
        return dict.fromkeys(range(1, _whole("brokers", given, BROKER_LIMIT) + 1))
    if not isinstance(given, Mapping) or not given:
        raise ValueError("brokers: must be a number, or an object of ids and racks such as {1: eu-a, 2: eu-b}")
    if len(given) > BROKER_LIMIT:
        raise ValueError(f"brokers: {len(given)} brokers: at most {BROKER_LIMIT} are possible")
    found: dict[int, str | None] = {}
    for broker, rack in given.items():
        if not str(broker).isdecimal():
            raise ValueError(f"brokers: {broker} is not the id of a broker: write a number")
        if rack is not None and not isinstance(rack, str):
            raise ValueError(f"brokers.{broker}: {rack} is not the name of a rack: put it in quotes")
        found[int(broker)] = rack
    return found


def _partitions(topic: str, given: Any, brokers: Mapping[int, object]) -> int | tuple[tuple[int, ...], ...]:
    if isinstance(given, int) and not isinstance(given, bool):
        return _whole(f"topics.{topic}", given, PARTITION_LIMIT)
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ValueError(f"topics.{topic}: must be a number of partitions, or a list of replicas such as [[1, 2, 3]]")
    for index, replicas in enumerate(given):
        if not isinstance(replicas, Sequence) or not replicas or len(set(map(str, replicas))) < len(replicas):
            raise ValueError(f"topics.{topic}[{index}]: must be a list of different broker ids, such as [1, 2, 3]")
        for broker in replicas:
            if broker not in brokers:
                raise ValueError(f"topics.{topic}[{index}]: there is no broker {broker} in brokers")
    return tuple(tuple(replicas) for replicas in given)


def _whole(name: str, given: Any, most: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= most:
        raise ValueError(f"{name}: {given!r} must be a number from 1 to {most}")
    return given

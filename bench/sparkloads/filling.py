"""A store with hours of samples, as the sampler writes them, days of rollups that are like one, and a problem.

In: a made-up cluster and an empty directory. Out: files in it; how many rows and bytes there are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether.core.settings.objective import Objective
from bellwether_load.plan.problem import BrokerInput, ProblemHeader
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.problem_files import write_columns
from bellwether_load.store.rollups.rollup_files import ABOUT_KEY, SCHEMA, list_rollups, write_rollup
from bellwether_load.store.samples import sample_files
from sparkloads.traffic import BROKERS, MIDNIGHT, MINUTES, Cluster, Seen
from sparkplans.instances import RACKS
from testkit.loads.sample_rounds import read_table

CLUSTER_ID = "bWFkZS11cC1jbHVzdGVyLQ"
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Filled:
    """What a store holds."""

    rows: int
    bytes: int


def fill(store: Store, cluster: Cluster, hours: int) -> Filled:
    """A file for each minute of so many hours."""
    written = 0
    for number in range(hours):
        parts = [cluster.hour(number, rows) for rows in cluster.parts()]
        for minute in range(MINUTES):
            at = datetime.fromtimestamp(MIDNIGHT + 60 * (number * MINUTES + minute), UTC)
            written += sample_files.write_table(store, CLUSTER_ID, at, _round(cluster, parts, minute))
    return Filled(len(cluster) * hours * MINUTES, written)


def repeat_days(store: Store, days: int) -> Filled:
    """Rollups of so many days in all, each like the first one."""
    files = list_rollups(store)
    rows, size = 0, 0
    for file in files:
        table: Any = read_table(store, file.path)
        about = json.loads((table.schema.metadata or {})[ABOUT_KEY])
        for day in range(days):
            hour = file.hour + day * _DAY
            moved = table.set_column(3, "hour", pa.repeat(pa.scalar(hour, SCHEMA.field("hour").type), len(table)))
            size += write_rollup(store, CLUSTER_ID, hour, [moved.cast(SCHEMA)], about)
            rows += len(table)
    return Filled(rows, size)


def write_problem(store: Store, name: str, cluster: Cluster) -> None:
    """The problem of planning the leaders of all partitions, each with three replicas on equal brokers."""
    brokers = tuple(BrokerInput(number, RACKS[number % 3], 100) for number in range(BROKERS))
    made_at = datetime.fromtimestamp(MIDNIGHT, UTC)
    header = ProblemHeader(CLUSTER_ID, "bench/loads", made_at, Objective(), brokers)
    count = len(cluster)
    replicas = (np.arange(count)[:, None] * 7 + np.arange(3)) % BROKERS
    bounds = pa.array(np.arange(0, 3 * count + 1, 3, dtype=np.int32))
    lists = pa.ListArray.from_arrays(bounds, pa.array(replicas.ravel().astype(np.int32)))
    columns = {
        "topic": pa.array(cluster.topics).take(pa.array(cluster.topic)),
        "topic_id": pa.array(cluster.topic_ids).take(pa.array(cluster.topic)),
        "partition": pa.array(cluster.partition.astype(np.int32)),
        "replicas": lists,
        "isr": lists,
        "leader": pa.array(replicas[:, 0].astype(np.int32)),
        "held": pa.array([""] * count, pa.string()),
    }
    write_columns(store, name, header, pa.table(columns))


def _round(cluster: Cluster, parts: Sequence[Seen], minute: int) -> Any:
    at, leader, epoch, end, size = (
        np.concatenate([getattr(part, name)[:, minute] for part in parts])
        for name in ("at", "leader", "epoch", "end", "size")
    )
    codes = pa.array(cluster.topic.astype(np.int32))
    columns = [
        pa.array(at).cast(sample_files.SCHEMA.field("at").type),
        pa.DictionaryArray.from_arrays(codes, pa.array(cluster.topics)),
        pa.DictionaryArray.from_arrays(codes, pa.array(cluster.topic_ids)),
        pa.array(cluster.partition.astype(np.int32)),
        pa.array(leader.astype(np.int32)),
        pa.array(epoch.astype(np.int32)),
        pa.array(end, mask=end < 0),
        pa.array(size, mask=size < 0),
        *(pa.nulls(len(at), pa.float32()),) * 2,
    ]
    return pa.Table.from_arrays(columns, schema=sample_files.SCHEMA)

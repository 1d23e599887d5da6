"""Read the measured loads of a run from a store: the cost of leading each partition, packed.

In: a store, the name of a problem and of the loads that were measured for it, the policy's objective. Out:
``core.model.loads.Loads``, or a StoreError that names the file. Rows are streamed; the result takes a few megabytes for
hundreds of thousands of partitions. Called by ``plan_store``.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.loads import Loads
from bellwether.core.settings.objective import Objective
from bellwether_load.plan.measured_loads import LoadAccumulator
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import batches, integers, texts, tuples
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.plan_verification import load_table
from bellwether_load.store.store_errors import StoreDamaged
from bellwether_load.verify.load_table import Unusable

_SCHEMA = pa.schema([problem_files.SCHEMA.field(name) for name in ("topic_id", "partition", "replicas")])


def read_loads(
    store: Store, name: str, terms: ProblemHeader, objective: Objective, capacities: Mapping[int, int]
) -> Loads:
    """Loads that were measured for a problem with these ``terms``, weighted by ``objective``.

    A partition without a load row is omitted. A load that no plan can use (not a number, negative, duplicate) raises
    StoreDamaged, and none is used.
    """
    table = load_table(store.below(f"{plan_files.LOADS}/{name}"), objective.statistic.lower())
    path = f"{problem_files.FOLDER}/{name}/{problem_files.PARTITIONS}"
    found = LoadAccumulator(objective, capacities)
    for batch in batches(store, path, _SCHEMA):
        topic_ids, numbers, replicas = texts(batch.column(0)), integers(batch.column(1)), tuples(batch.column(2))
        for topic_id, number, members in zip(topic_ids, numbers, replicas, strict=True):
            try:
                rates = table.of(topic_id, number)
                if rates is not None:
                    found.add(PartitionKey(topic_id, number), members, rates[0], rates[1] or 0)
            except Unusable as error:
                where = store.where(f"{plan_files.LOADS}/{name}")
                raise StoreDamaged(f"{where}: partition {number} of topic id {topic_id}: {error}") from None
            except ValueError as error:
                raise StoreDamaged(f"{store.where(path)}: topic id {topic_id}: {error}") from None
    return found.loads(terms.made_at)

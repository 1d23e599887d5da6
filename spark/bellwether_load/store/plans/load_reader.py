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
from bellwether.core.settings.objective import Objective, Statistic
from bellwether_load.plan.measured_loads import LoadAccumulator
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.store.columns import batches, rows
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import load_files, load_rows
from bellwether_load.store.store_errors import StoreDamaged
from bellwether_load.verify.checks import Faults
from bellwether_load.verify.load_rows import LOADS, Load, LoadRows
from bellwether_load.verify.row_streams import Key

_SCHEMA = pa.schema([problem_files.SCHEMA.field(name) for name in ("topic", "topic_id", "partition", "replicas")])


class StoredLoads:
    """One statistic of the loads in a folder. Raises StoreError; StoreDamaged for a load that no plan can rest on."""

    def __init__(self, store: Store, statistic: Statistic) -> None:
        self._where = str(store)
        self._faults = Faults()
        self._rows = LoadRows(load_rows(store, load_files(store), statistic), self._faults, statistic)

    def of(self, key: Key) -> Load | None:
        """The load of a partition, if it has one. Keys come in order."""
        found = self._rows.of(key)
        if self._faults.any(LOADS):
            raise StoreDamaged(f"{self._where}: {self._faults.of(LOADS)[0]}")
        return found


def read_loads(
    store: Store, name: str, terms: ProblemHeader, objective: Objective, capacities: Mapping[int, int]
) -> Loads:
    """Loads that were measured for a problem with these ``terms``, weighted by ``objective``.

    A partition without a load row is omitted. A load that no plan can use (not a number, negative, duplicate) raises
    StoreDamaged, and none is used.
    """
    stored = StoredLoads(store.below(f"{plan_files.LOADS}/{name}"), objective.statistic)
    path = f"{problem_files.FOLDER}/{name}/{problem_files.PARTITIONS}"
    found = LoadAccumulator(objective, capacities)
    for batch in batches(store, path, _SCHEMA):
        for *key, members in rows(batch):
            load = stored.of((key[0], key[1], key[2]))
            try:
                if load is not None:
                    found.add(PartitionKey(key[1], key[2]), members, load.produce, load.consume)
            except ValueError as error:
                raise StoreDamaged(f"{store.where(path)}: topic id {key[1]}: {error}") from None
    return found.loads(terms.made_at)

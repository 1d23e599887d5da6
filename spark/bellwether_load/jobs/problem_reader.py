"""Read the loads of a problem by hour of the week for the plan job. In: a store opened at the folder of the loads."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from bellwether.core.settings.objective import Objective
from bellwether_load.balancing.hourly_loads import HourlyLoads, Part, loads_by_hour
from bellwether_load.plan.partition_rows import Rows
from bellwether_load.store.columns import batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_hours import REQUESTS, hour_blocks, known_hours, load_files
from bellwether_load.store.store_errors import StoreDamaged


def read_hours(loads: Store, rows: Rows, costs: Objective) -> HourlyLoads | None:
    """The loads by hour of the week; None where they have no hours. Raises StoreError, and so do the passes."""
    counted = costs.request_bytes > 0
    hours = known_hours(loads, files := load_files(loads))

    def parts() -> Iterator[Part]:
        start = 0
        for produce, consume, requests, _ in hour_blocks(loads, files, len(hours), requests=counted):
            places = rows.rates.place[start : start + len(produce)]
            start, known = start + len(places), places >= 0
            at, rates = places[known], [rate[known] for rate in (produce, consume, requests) if rate is not None]
            for of, power in zip(rates, (45, 45, 30), strict=False):
                if (wrong := ((of < 0) | (of > 2**power)).any(axis=1)).any():
                    said = f"its rates by hour must be {of.shape[1]} numbers from 0 to 2**{power}"
                    raise StoreDamaged(f"{loads}: {rows.table.name(int(at[wrong.argmax()]))}: {said}")
            yield loads_by_hour(rows.replicas, rows.brokers, costs, at, *rates)

    return HourlyLoads(hours, rows.leader, parts, 1 + counted) if hours else None


def without_requests(loads: Store, rows: Rows) -> int:
    """How many of the partitions with loads have no measured requests. Raises StoreError."""
    schema = pa.schema([REQUESTS])
    found = [batch.column(0).is_null() for path in load_files(loads) for batch in batches(loads, path, schema)]
    return int((pa.concat_arrays(found).to_numpy(zero_copy_only=False) & (rows.rates.place >= 0)).sum())

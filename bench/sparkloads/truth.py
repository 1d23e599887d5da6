"""How far measured loads are from what was really sent, for the partitions whose true rates were kept.

In: the folder of the loads, the cluster. Out: the worst relative errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from sparkloads.traffic import Cluster

# Below this a single message more or less is a visible share.
LEAST = 1000.0


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative, never negative; the worst of all partitions with at least ``LEAST`` bytes/s. 0 where there is none."""

    median: float
    p95: float


def worst_errors(folder: Path, cluster: Cluster) -> Errors:
    """Compare loads with the true bytes of each minute. Raises LookupError for a partition without a load."""
    columns = ["topic", "partition", "produce_median", "produce_p95"]
    rows = pq.read_table(folder, columns=columns).to_pylist()
    found = {(row["topic"], row["partition"]): row for row in rows}
    true = np.concatenate(cluster.true_bytes, axis=1)
    errors = {"produce_median": 0.0, "produce_p95": 0.0}
    for number, rates in enumerate(true):
        row = found[cluster.topics[cluster.topic[number]], int(cluster.partition[number])]
        for column, share in (("produce_median", 0.5), ("produce_p95", 0.95)):
            level = float(np.quantile(rates, share, method="inverted_cdf"))
            if level >= LEAST:
                errors[column] = max(errors[column], abs(row[column] / level - 1))
    return Errors(errors["produce_median"], errors["produce_p95"])

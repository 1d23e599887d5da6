"""Orders that other tools set while the policy does not act (Observe mode, or suspended).

Such an order is another tool's intent, but nothing follows from it yet: it is remembered in memory until the policy
acts again, and forgotten when our own order is back, as after a demotion by hand that was undone. Pure: records in,
records out. Called by ``gather`` before recovery and by ``reconcile`` after it.
"""

from __future__ import annotations

from collections.abc import Mapping

from bellwether.core.model.cluster import Cluster, PartitionKey
from bellwether.core.model.undo_record import UndoEntry, UndoRecord

OverwrittenOrders = Mapping[PartitionKey, UndoEntry]
"""The entries as recovery found them, by partition."""


def with_overwritten(record: UndoRecord, overwritten: OverwrittenOrders, cluster: Cluster) -> UndoRecord:
    """The record to recover from: with the orders of other tools, except where our own order is back."""
    kept = {}
    for key, entry in overwritten.items():
        seen, stored = cluster.by_key.get(key), record.entries.get(key)
        if stored is not None and (seen is None or seen.replicas != stored.written):
            kept[key] = entry
    return record.with_entries(kept)


def set_aside(stored: UndoRecord, recovered: UndoRecord) -> tuple[UndoRecord, OverwrittenOrders]:
    """The record to keep, and the orders of other tools that are remembered in memory.

    Everything else that recovery found is kept: also an order of another tool once the replica set has changed, because
    the former baseline is of no use then.
    """
    aside = {}
    for key, entry in recovered.entries.items():
        old = stored.entries.get(key)
        if old is None or old is entry or set(old.baseline) != set(entry.baseline):
            continue
        if (old.baseline, old.written) != (entry.baseline, entry.written):
            aside[key] = entry
    return recovered.with_entries({key: stored.entries[key] for key in aside}), aside

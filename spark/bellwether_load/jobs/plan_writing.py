"""Write a plan to the store: tasks write the moves of the pieces that they have, and the summary comes last."""

from __future__ import annotations

import pyarrow as pa

from bellwether_load.engines.frames import Batches
from bellwether_load.jobs.making import Made
from bellwether_load.planning.choices import Refused
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files
from bellwether_load.store.store_errors import StoreError
from bellwether_load.transforms.packing import tables


def write_plan(uri: str, made: Made) -> str:
    """Write a plan under its digest; its path in the store. Raises StoreError, and Refused for a task's."""
    store, digest = Store.open(uri), made.plan.digest

    def write(batches: Batches) -> Batches:
        for piece, table in tables(batches):
            if table.num_rows:
                try:
                    path = plan_files.write_moves(Store.open(uri), digest, piece, table)
                except StoreError as error:
                    raise Refused(str(error)) from None  # the one error whose text comes back from a task
                yield pa.RecordBatch.from_pydict({"path": [path]})

    batches = made.moves.pieces.map(write, "path string").batches()
    paths = [path for batch in batches for path in batch.column("path").to_pylist()]
    return plan_files.finish(store, made.plan, paths)

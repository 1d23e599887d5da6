"""Rebalance plan files in a store: ``plans/<digest>/plan.json`` and ``moves/part-00000.parquet``.

In: a plan and its moves. Out: the same, moves one by one, and the list of plans in a store. Called by the operator, the
CLI and the plan page. The JSON is written last: a plan that has it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pyarrow as pa

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import PLAN
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.columns import batches, checked, rows, table_of_batches
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

FOLDER = "plans"
LOADS = "loads"
"""Folder of the measured loads, which the loads job writes."""
SUMS = "plan.json"
MOVES = "moves"
"""Folder of the moves."""

SCHEMA = pa.schema(
    [
        *problem_files.PARTITION_FIELDS,
        pa.field("order", problem_files.BROKERS, nullable=False),
        pa.field("from_leader", pa.int32(), nullable=False),
        pa.field("to_leader", pa.int32(), nullable=False),
        pa.field("load", pa.int64(), nullable=False),
    ]
)


def write_plan(store: Store, plan: RebalancePlan, moves: Any) -> str:
    """Write a plan under its digest; its path in the store. ``moves``: an Arrow table with the columns of ``SCHEMA``,
    in order."""
    folder = f"{FOLDER}/{plan.digest}"
    table = pa.Table.from_batches([checked(moves.combine_chunks(), SCHEMA, f"plan {plan.digest}")])
    store.write_table(f"{folder}/{MOVES}/part-00000.parquet", table, compression="zstd", row_group_size=262_144)
    store.write_bytes(f"{folder}/{SUMS}", json.dumps(PLAN.to_json(plan), indent=1).encode())
    return folder


def read_table(plan: Store) -> Any:
    """The moves of a plan as a table. ``plan``: a store opened at its folder."""
    parts = [stored.path for stored in plan.list(MOVES)]
    if not parts:
        raise StoreMissing(f"{plan.where(MOVES)}: there are no moves of the plan: request a new one")
    return table_of_batches((batch for path in parts for batch in batches(plan, path, SCHEMA)), SCHEMA)


def read_plan(store: Store, digest: str) -> RebalancePlan:
    """Read the summary of a plan. StoreDamaged names the field that cannot be read."""
    path = f"{FOLDER}/{digest}/{SUMS}"
    plan = problem_files.read_document(store, path, PLAN)
    if plan.digest != digest:
        raise StoreDamaged(f"{store.where(path)}: digest is {plan.digest!r}: the file belongs to another plan")
    return plan


def read_moves(store: Store, digest: str) -> Iterator[RebalanceMove]:
    """A plan's moves, one by one, in order."""
    return each_move(read_table(store.below(f"{FOLDER}/{digest}")))


def each_move(table: Any) -> Iterator[RebalanceMove]:
    """The moves of a table."""
    return (RebalanceMove(*row) for batch in table.to_batches() for row in rows(batch))


def source(store: Store, plan: RebalancePlan) -> str | None:
    """Name of the problem that a plan is for, and of its loads; None where that is not in the store any more."""
    newest_first = reversed(problem_files.all_terms(store).items())
    return next((name for name, terms in newest_first if poses(terms, plan)), None)


def poses(terms: ProblemHeader, plan: RebalancePlan) -> bool:
    """Whether a plan is for the problem with these terms."""
    return (terms.cluster_id, terms.policy, terms.made_at) == (plan.cluster_id, plan.policy, plan.made_at)


def each_plan(store: Store) -> Iterator[RebalancePlan]:
    """All complete plans of the store, one in memory at a time; unreadable ones are ignored."""
    for stored in store.list(FOLDER):
        _, digest, *rest = stored.path.split("/")
        if rest == [SUMS]:
            with suppress(StoreDamaged, StoreMissing):
                yield read_plan(store, digest)


def by_age(plan: RebalancePlan) -> tuple[datetime, str]:
    """Orders plans, the oldest problem first."""
    return plan.made_at, plan.digest


def plans(store: Store) -> tuple[RebalancePlan, ...]:
    """The same, the oldest problem first."""
    return tuple(sorted(each_plan(store), key=by_age))

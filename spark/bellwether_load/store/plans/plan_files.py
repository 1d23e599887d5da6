"""Rebalance plan files in a store: ``plans/<digest>/plan.json`` and ``moves/part-NNNNN.parquet``.

In: a plan and its moves. Out: the same, moves one by one, and the list of plans in a store. Called by the operator, the
CLI and the plan page. The JSON is written last: a plan that has it is complete.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa

from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import PLAN
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.columns import batches, checked, integers, table_of, texts, tuples
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing

FOLDER = "plans"
LOADS = "loads"
"""Folder of the measured loads, which the loads job writes."""
SUMS = "plan.json"
MOVES = "moves"
"""Folder of the moves, in parts."""

SCHEMA = pa.schema(
    [
        *problem_files.PARTITION_FIELDS,
        pa.field("order", problem_files.BROKERS, nullable=False),
        pa.field("from_leader", pa.int32(), nullable=False),
        pa.field("to_leader", pa.int32(), nullable=False),
        pa.field("load", pa.int64(), nullable=False),
    ]
)


def write_plan(store: Store, plan: RebalancePlan, moves: Iterable[RebalanceMove]) -> str:
    """Write a plan under its digest; its path in the store."""
    table = table_of(moves, SCHEMA).sort_by(problem_files.ORDER)
    return finish(store, plan, [write_moves(store, plan.digest, 0, table)])


def write_moves(store: Store, digest: str, part: int, moves: Any) -> str:
    """Write a part of a plan's moves, an Arrow table with the columns of ``SCHEMA`` in order; its path in the store.

    The parts, too, are in order.
    """
    path = f"{FOLDER}/{digest}/{MOVES}/part-{part:05}.parquet"
    table = pa.Table.from_batches([checked(moves.combine_chunks(), SCHEMA, f"plan {digest}")])
    store.write_table(path, table, compression="zstd", row_group_size=262_144)
    return path


def finish(store: Store, plan: RebalancePlan, parts: Collection[str]) -> str:
    """Write the summary of a plan whose moves are in these parts, and delete all others; its path in the store."""
    folder = f"{FOLDER}/{plan.digest}"
    kept = set(parts) or {write_moves(store, plan.digest, 0, SCHEMA.empty_table())}
    for stored in store.list(f"{folder}/{MOVES}"):
        if stored.path not in kept:
            store.delete(stored.path)
    store.write_bytes(f"{folder}/{SUMS}", json.dumps(PLAN.to_json(plan), indent=1).encode())
    return folder


def move_batches(plan: Store) -> Iterator[Any]:
    """The moves of a plan in batches, in order. ``plan``: a store opened at its folder."""
    parts = [stored.path for stored in plan.list(MOVES)]
    if not parts:
        raise StoreMissing(f"{plan.where(MOVES)}: there are no moves of the plan: request a new one")
    for path in parts:
        yield from batches(plan, path, SCHEMA)


def read_plan(store: Store, digest: str) -> RebalancePlan:
    """Read the summary of a plan. StoreDamaged names the field that cannot be read."""
    path = f"{FOLDER}/{digest}/{SUMS}"
    plan = problem_files.read_document(store, path, PLAN)
    if plan.digest != digest:
        raise StoreDamaged(f"{store.where(path)}: digest is {plan.digest!r}: the file belongs to another plan")
    return plan


def read_moves(store: Store, digest: str) -> Iterator[RebalanceMove]:
    """A plan's moves, one by one, in order."""
    for batch in move_batches(store.below(f"{FOLDER}/{digest}")):
        topics, ids = (texts(batch.column(c)) for c in ("topic", "topic_id"))
        numbers, froms, tos, loads = (
            integers(batch.column(c)) for c in ("partition", "from_leader", "to_leader", "load")
        )
        replicas, orders = (tuples(batch.column(c)) for c in ("replicas", "order"))
        yield from map(RebalanceMove, topics, ids, numbers, replicas, orders, froms, tos, loads)


def sources(store: Store, plan: RebalancePlan) -> Iterator[tuple[str, str]]:
    """Names of problems and of loads that a plan may have been made from; of several, only digests tell which."""
    posed = []
    for stored in store.list(problem_files.FOLDER):
        parts = stored.path.split("/")
        if len(parts) == 3 and parts[-1] == problem_files.TERMS and _poses(store, parts[1], plan):
            posed.append(parts[1])
    loads = sorted({stored.path.split("/")[1] for stored in store.list(LOADS)})
    for problem in posed:
        yield from ((problem, name) for name in ([problem] if problem in loads else loads))


def _poses(store: Store, name: str, plan: RebalancePlan) -> bool:
    try:
        terms = problem_files.read_terms(store, name)
    except (StoreDamaged, StoreMissing):
        return False
    mine = (plan.cluster_id, plan.policy, plan.made_at, plan.objective)
    return (terms.cluster_id, terms.policy, terms.made_at, terms.objective) == mine


def plans(store: Store) -> tuple[RebalancePlan, ...]:
    """All complete plans of the store, the oldest problem first; unreadable ones are ignored."""
    found = []
    for stored in store.list(FOLDER):
        parts = stored.path.split("/")
        if len(parts) != 3 or parts[-1] != SUMS:
            continue
        try:
            found.append(read_plan(store, parts[1]))
        except (StoreDamaged, StoreMissing):
            continue
    return tuple(sorted(found, key=lambda plan: (plan.made_at, plan.digest)))

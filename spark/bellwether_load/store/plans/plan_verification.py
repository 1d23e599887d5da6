"""Verify a plan from three folders of a store: read problem, loads and plan, and pass them to ``plan_verifier``.

In: a store opened at each folder. Out: the verifier's report, or a StoreError if a file cannot be read. Partitions and
moves are streamed; only the loads are in memory. Called by ``bellwether verify-plan`` and by the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import pyarrow as pa

from bellwether_load.plan.documents import PLAN, PROBLEM, header_line
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.columns import ahead, batches, floats, integers, texts, tuples
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import plan_files, problem_files
from bellwether_load.store.plans.load_hours import hour_rows, known_hours, load_files, read_account
from bellwether_load.store.store_errors import StoreError
from bellwether_load.verify.load_table import LoadTable
from bellwether_load.verify.move_stream import MoveRow
from bellwether_load.verify.partition_sums import PartitionRow
from bellwether_load.verify.plan_verifier import PROBLEM_DIGEST, Report, verify

MOST_SOURCES = 20
"""Pairs of a problem and loads that are tried to find those of a plan."""


def recheck(
    problem: Store,
    loads: Store,
    plan: Store,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    summary: RebalancePlan | None = None,
    input_digest: str = "",
) -> Report:
    """Verify a plan. ``progress`` is called with what is being read, the number of rows read, and their total.

    ``summary``: the plan's summary if the caller has read it, so that what it uses is what was verified.
    ``input_digest``: of the problem that the operator wrote; it is compared if given, in the pass that verifies.
    """
    tell = progress or (lambda *_: None)
    posed = problem_files.read_document(problem, problem_files.TERMS, PROBLEM)
    claimed = summary or problem_files.read_document(plan, plan_files.SUMS, PLAN)
    with problem.parquet(problem_files.PARTITIONS) as file:
        total = int(file.metadata.num_rows)
    table = load_table(loads, posed.objective.statistic.lower(), partial(tell, "loads"))
    files = load_files(loads)
    hours = known_hours(loads, files)
    return verify(
        posed,
        header_line(posed),
        _partitions(problem),
        table,
        claimed,
        _moves(plan),
        lambda done: tell("partitions", done, total),
        input_digest,
        hours,
        hour_rows(loads, files) if hours else (),
        read_account(loads),
    )


def verified_from(
    store: Store, plan: RebalancePlan, progress: Callable[[str, int, int], None] | None = None
) -> tuple[str, str, Report] | None:
    """Names of the problem and the loads that a plan of the store was made from, and the report of its verification.

    None if they are not in the store any more, or cannot be read.
    """
    for problem, loads in islice(plan_files.sources(store, plan), MOST_SOURCES):
        try:
            report = recheck(
                store.below(f"{problem_files.FOLDER}/{problem}"),
                store.below(f"{plan_files.LOADS}/{loads}"),
                store.below(f"{plan_files.FOLDER}/{plan.digest}"),
                progress,
                summary=plan,
            )
        except StoreError:
            continue
        if not report.faults_of(PROBLEM_DIGEST):
            return problem, loads, report
    return None


def load_table(store: Store, statistic: str, progress: Callable[[int, int], None] | None = None) -> LoadTable:
    """One statistic (``median``, ``p95``, ``peak``) of every partition with loads."""
    columns = (f"produce_{statistic}", f"consume_{statistic}")
    schema = pa.schema(
        [
            pa.field("topic_id", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field(columns[0], pa.float64()),
            pa.field(columns[1], pa.float64()),
        ]
    )
    found = [batch for path in load_files(store) for batch in batches(store, path, schema)]
    whole = pa.Table.from_batches(found, schema=schema)
    del found
    ordered = whole.sort_by([("topic_id", "ascending"), ("partition", "ascending")])
    del whole
    table, done = LoadTable(columns=columns), 0
    for batch in ordered.to_batches(max_chunksize=65_536):
        topic_ids, numbers = texts(batch.column(0)), integers(batch.column(1))
        table.extend(zip(topic_ids, numbers, floats(batch.column(2)), floats(batch.column(3)), strict=True))
        done += len(topic_ids)
        if progress is not None:
            progress(done, ordered.num_rows)
    return table


def _partitions(store: Store) -> Iterator[PartitionRow]:
    for batch in ahead(batches(store, problem_files.PARTITIONS, problem_files.SCHEMA)):
        topic, topic_id, number, replicas, isr, leader, held = batch.columns
        yield from zip(
            texts(topic),
            texts(topic_id),
            integers(number),
            tuples(replicas),
            tuples(isr),
            integers(leader),
            texts(held),
            strict=True,
        )


def _moves(store: Store) -> Iterator[MoveRow]:
    for batch in plan_files.move_batches(store):
        topic, topic_id, number, replicas, order, before, after, load = batch.columns
        yield from zip(
            texts(topic),
            texts(topic_id),
            integers(number),
            tuples(replicas),
            tuples(order),
            integers(before),
            integers(after),
            integers(load),
            strict=True,
        )

"""Plan for clusters of rising size on one Spark session, recheck each plan, and compare with plain baselines."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from bellwether.adapters.store.filesystems import Store
from bellwether.adapters.store.plans.plan_files import write_columns
from bellwether.adapters.store.plans.plan_verification import recheck
from bellwether_load.jobs.making import plan_of
from bellwether_load.jobs.plan import SETTINGS
from bellwether_load.jobs.sessions import session
from sparkplans.baselines import by_count, greedy_by_load
from sparkplans.instances import Size, instance, write
from sparkplans.memory import PeakMemory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = (Size(200, 6), Size(2_000, 12), Size(20_000, 60), Size(200_000, 300), Size(2_000_000, 1_000))
MEMORY = "3g"
COLUMNS = (
    "partitions", "brokers", "s", "MB", "before", "by count", "greedy", "plan", "aim", "moves", "moved / least",
    "greedy / least", "proved",
)  # fmt: skip
console = Console(width=150)


@dataclass(frozen=True)
class Row:
    """One size. Loads are in bytes/s; ``over_*`` say how far the busiest broker is above the certified bound.

    ``aim`` is 0.1 % and the largest load of a partition over the bound. ``growth``: by what power of the number of
    partitions the seconds grew since the size before.
    """

    partitions: int
    brokers: int
    seconds: float
    growth: float | None
    peak_megabytes: float
    rounds: int
    bound: float
    gap: float
    aim: float
    moves: int
    moved: float
    moved_lower_bound: float
    rechecked: bool
    recheck_seconds: float
    over_before: float
    over_by_count: float
    moved_by_count: float
    seconds_by_count: float
    over_greedy: float
    moved_greedy: float
    seconds_greedy: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 when every plan was proved within its aim."""
    parser = argparse.ArgumentParser(prog="sparkplans", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1].partitions, help="leave larger clusters out")
    parser.add_argument("--seed", type=int, default=20261, help="of the clusters (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder for the figures (%(default)s)")
    asked = parser.parse_args(arguments)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(prefix="sparkplans-") as folder,
        session("bench", master="local[2]", memory=MEMORY, settings=SETTINGS) as spark,
    ):
        _row(spark, folder, SIZES[0], asked.seed, None)  # Spark compiles and starts its workers at the first plan
        for size in (s for s in SIZES if s.partitions <= asked.most):
            console.print(f"{size.partitions:,} partitions on {size.brokers:,} brokers ...")
            rows.append(_row(spark, folder, size, asked.seed, rows[-1] if rows else None))
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = {"seed": asked.seed, "cores": 2, "driver_heap": MEMORY, "sizes": [asdict(r) for r in rows]}
    (asked.reports / "spark.json").write_text(json.dumps(report, indent=1) + "\n")
    console.print(_table(rows))
    console.print(f"figures: {asked.reports / 'spark.json'}")
    return 0 if all(r.rechecked and r.gap <= r.aim for r in rows) else 1


def _row(spark: SparkSession, folder: str, size: Size, seed: int, before: Row | None) -> Row:
    found = instance(size, seed)
    store, name = Store.open(folder), f"p{size.partitions}"
    write(store, name, found)
    with PeakMemory() as memory:
        started = time.perf_counter()
        made = plan_of(spark, folder, name, name)
        write_columns(store, made.plan, made.moves)
        seconds = time.perf_counter() - started
    began = time.perf_counter()
    problem, loads = (Store.open(f"{folder}/{path}/{name}") for path in ("problems", "loads"))
    proof = recheck(problem, loads, Store.open(f"{folder}/plans/{made.plan.digest}"))
    proving = time.perf_counter() - began
    bound = made.plan.certificate.bound
    count, greedy = by_count(found), greedy_by_load(found)
    # With a capacity of 100, hundredths of a byte/s over capacity are bytes/s.
    over = [result.busiest / 100 / bound - 1 for result in (count, greedy)]
    growth = None
    if before is not None:
        growth = math.log(seconds / before.seconds) / math.log(size.partitions / before.partitions)
    return Row(
        partitions=size.partitions,
        brokers=size.brokers,
        seconds=seconds,
        growth=growth,
        peak_megabytes=memory.megabytes,
        rounds=made.rounds,
        bound=bound,
        gap=made.plan.certificate.gap or 0.0,
        aim=0.001 + made.plan.certificate.largest_item / bound,
        moves=made.plan.moved.partitions,
        moved=made.plan.moved.load / 100,
        moved_lower_bound=made.plan.moved.lower_bound / 100,
        rechecked=proof.passed,
        recheck_seconds=proving,
        over_before=made.plan.before.max / bound - 1,
        over_by_count=over[0],
        moved_by_count=count.moved / 100,
        seconds_by_count=count.seconds,
        over_greedy=over[1],
        moved_greedy=greedy.moved / 100,
        seconds_greedy=greedy.seconds,
    )


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title="Plans, with how far the busiest broker stays above the certified bound")
    for head in COLUMNS:
        table.add_column(head, justify="right")
    for r in rows:
        least = r.moved_lower_bound or 1.0
        table.add_row(
            f"{r.partitions:,}", f"{r.brokers:,}", f"{r.seconds:.1f}", f"{r.peak_megabytes:,.0f}",
            *(f"{share:.2%}" for share in (r.over_before, r.over_by_count, r.over_greedy)),
            f"{r.gap:.3%}", f"{r.aim:.1%}", f"{r.moves:,}", f"{r.moved / least:.2f}", f"{r.moved_greedy / least:.2f}",
            f"in {r.recheck_seconds:.1f} s" if r.rechecked else "NO",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    raise SystemExit(main())

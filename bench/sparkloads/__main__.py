"""Measure made-up days of samples of rising size on one Spark session, and hold the loads against the true rates."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bellwether_load.engines.frames import Engine
from bellwether_load.engines.spark import SparkEngine
from bellwether_load.histories.rules import Rules
from bellwether_load.jobs.loads import SETTINGS, run
from bellwether_load.jobs.sample_selection import Period, choose
from bellwether_load.jobs.sessions import session
from bellwether_load.store.filesystems import Store
from sparkloads.filling import fill_day, fill_hours
from sparkloads.traffic import Cluster
from sparkloads.truth import worst_errors
from sparkplans.costs import cost_of_family

HEAP = "2g"
GOAL_SECONDS, GOAL_BYTES, GOAL_ERROR = 300, 8, 0.1
COLUMNS = (
    "partitions", "samples", "files", "bytes/sample", "s", "CPU s", "samples/s", "growth", "MB",
    "median off by", "p95 off by",
)  # fmt: skip
console = Console(width=150)


@dataclass(frozen=True)
class Case:
    """A cluster's day, in one file as of yesterday or in a file an hour as of today."""

    partitions: int
    hourly: bool = False


CASES = (Case(200), Case(2_000), Case(20_000, hourly=True), Case(20_000), Case(200_000))


@dataclass(frozen=True)
class Row:
    """One case. ``cpu_seconds``: of all processes; they tell more of the work than seconds where others work, too.

    ``growth``: by what power of the samples they grew since the next smaller case of its kind. ``median_error``,
    ``p95_error``: the worst, relative, of partitions with at least a kilobyte/s, of those whose true rates were kept.
    """

    partitions: int
    hourly: bool
    samples: int
    files: int
    bytes_per_sample: float
    filling_seconds: float
    seconds: float
    cpu_seconds: float
    growth: float | None
    peak_megabytes: float
    loads: int
    median_error: float
    p95_error: float

    @property
    def good(self) -> bool:
        """Whether it is within what was aimed at."""
        quick = self.seconds <= GOAL_SECONDS and self.bytes_per_sample <= GOAL_BYTES
        return quick and self.loads == self.partitions and max(self.median_error, self.p95_error) <= GOAL_ERROR


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 when every case was within its goals."""
    parser = argparse.ArgumentParser(prog="sparkloads", description=__doc__)
    parser.add_argument("--most", type=int, default=CASES[-1].partitions, help="leave larger clusters out")
    parser.add_argument("--seed", type=int, default=20262, help="of the clusters (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder for the figures (%(default)s)")
    asked = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="sparkloads-") as folder:
        settings = {**SETTINGS, "spark.local.dir": folder}
        with session("bench", master="local[2]", memory=HEAP, settings=settings) as spark:
            engine = SparkEngine(spark)
            # Spark compiles and starts its workers at the first job.
            _row(engine, Path(folder), CASES[0], asked.seed, ())
            for case in (c for c in CASES if c.partitions <= asked.most):
                console.print(f"{case.partitions:,} partitions for a day ...")
                rows.append(_row(engine, Path(folder), case, asked.seed, rows))
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = {"seed": asked.seed, "cores": 2, "driver_heap": HEAP, "sizes": [asdict(row) for row in rows]}
    (asked.reports / "loads.json").write_text(json.dumps(report, indent=1) + "\n")
    console.print(_table(rows))
    console.print(f"figures: {asked.reports / 'loads.json'}")
    return 0 if all(row.good for row in rows) else 1


def _row(engine: Engine, folder: Path, case: Case, seed: int, before: Sequence[Row]) -> Row:
    with tempfile.TemporaryDirectory(dir=folder, prefix="store-") as store:
        cluster = Cluster(case.partitions, seed)
        began = time.perf_counter()
        filled = (fill_hours if case.hourly else fill_day)(Path(store), cluster)
        filling = time.perf_counter() - began
        counts: list[int] = []

        def measure() -> None:
            choice = choose(Store.open(store), Period(), datetime.fromtimestamp(time.time(), UTC).date())
            counts.append(run(engine, store, "bench", choice, Rules(), console.print)[1])

        cost = cost_of_family(measure)
        errors = worst_errors(Path(store) / "loads" / "bench", cluster)
    smaller = [row for row in before if not row.hourly and not case.hourly]
    growth = None
    if smaller:
        growth = math.log(cost.cpu_seconds / smaller[-1].cpu_seconds) / math.log(filled.rows / smaller[-1].samples)
    return Row(
        partitions=case.partitions,
        hourly=case.hourly,
        samples=filled.rows,
        files=filled.files,
        bytes_per_sample=filled.bytes / filled.rows,
        filling_seconds=filling,
        seconds=cost.seconds,
        cpu_seconds=cost.cpu_seconds,
        growth=growth,
        peak_megabytes=cost.peak_megabytes,
        loads=counts[0],
        median_error=errors.median,
        p95_error=errors.p95,
    )


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title=f"A day of samples (goals: {GOAL_SECONDS} s, {GOAL_BYTES} bytes a sample, linear)")
    for head in COLUMNS:
        table.add_column(head, justify="right")
    for r in rows:
        table.add_row(
            f"{r.partitions:,}", f"{r.samples:,}", f"{r.files}", f"{r.bytes_per_sample:.2f}", f"{r.seconds:.1f}",
            f"{r.cpu_seconds:.1f}", f"{r.samples / r.seconds:,.0f}", "" if r.growth is None else f"{r.growth:.2f}",
            f"{r.peak_megabytes:,.0f}", f"{r.median_error:.1%}", f"{r.p95_error:.1%}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    raise SystemExit(main())

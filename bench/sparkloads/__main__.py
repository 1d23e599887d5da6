"""Roll up made-up hours of samples, compute their loads and a plan, and loads from days of rollups, on both engines.

The loads of the sampled hours are held against the true rates. CPU seconds are of all processes: they tell more of the
work than seconds, where others work, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bellwether_load.jobs.engines import Engine, ProcessEngine
from bellwether_load.jobs.loads import DAYS, run
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.samples.sample_files import list_rounds
from sparkloads.filling import fill, repeat_days, write_problem
from sparkloads.traffic import MIDNIGHT, Cluster
from sparkloads.truth import worst_errors
from sparkplans.costs import Cost, cost_of_command, cost_of_family

GOAL_ERROR = 0.125
"""Of a sketch's 2.2 % and of what cannot be seen of a log that shrinks and grows at once, see docs/load."""
ENGINES = ("process", "spark")
console = Console(width=150)


@dataclass(frozen=True)
class Row:
    """One cluster on one engine: from its hours of samples to a plan (``rollups``, ``hours_loads``, ``plan``), then
    ``loads`` from its days of rollups."""

    partitions: int
    engine: str
    hours: int
    days: int
    sample_bytes: float
    row_bytes: float
    rollups: Cost
    hours_loads: Cost
    plan: Cost
    loads: Cost
    median_error: float
    p95_error: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 when every case was within its goals."""
    parser = argparse.ArgumentParser(prog="sparkloads", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="*", default=[2_000, 20_000, 200_000])
    parser.add_argument("--hours", type=int, default=24, help="of samples (%(default)s)")
    parser.add_argument("--days", type=int, default=14, help="of rollups (%(default)s)")
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=ENGINES)
    parser.add_argument("--seed", type=int, default=20262, help="of the clusters (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder for the figures (%(default)s)")
    asked = parser.parse_args(arguments)
    rows: list[Row] = []
    for partitions in asked.partitions:
        with tempfile.TemporaryDirectory(prefix="sparkloads-") as folder:
            cluster = Cluster(partitions, asked.seed)
            console.print(f"{partitions:,} partitions, {asked.hours} hours ...")
            filled = fill(Store.open(folder), cluster, asked.hours)
            for kind in asked.engines:
                with _engine(kind) as engine:
                    rows.append(_row(engine, kind, Path(folder), cluster, asked, filled.bytes / filled.rows))
    asked.reports.mkdir(parents=True, exist_ok=True)
    (asked.reports / "loads.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    console.print(_table(rows))
    return 0 if all(max(row.median_error, row.p95_error) <= GOAL_ERROR for row in rows) else 1


@contextmanager
def _engine(kind: str) -> Iterator[Engine]:
    if kind == "process":
        yield ProcessEngine()
        return
    from bellwether_load.jobs.engines import SparkEngine  # noqa: PLC0415
    from bellwether_load.jobs.sessions import session  # noqa: PLC0415

    with session("bench", master="local[2]", memory="1g") as spark:
        engine = SparkEngine(spark)
        engine.run(abs, [1, 2])  # Spark compiles and starts its workers at the first job.
        yield engine


def _row(
    engine: Engine, kind: str, folder: Path, cluster: Cluster, asked: argparse.Namespace, sample_bytes: float
) -> Row:
    store, uri = Store.open(str(folder)), str(folder)
    store.delete_directory("rollups")
    due = due_hours(store, list_rounds(store))
    rollups = cost_of_family(lambda: _discard(engine.run(partial(roll_hour, uri), due)))
    now = datetime.fromtimestamp(MIDNIGHT + 86_400 * asked.days, UTC)
    hours_loads = cost_of_family(_measure(engine, uri, now))
    write_problem(store, "bench", cluster)
    command = [
        sys.executable,
        "-m",
        "bellwether_load",
        "plan",
        "--store",
        uri,
        "--problem",
        "bench",
        "--loads",
        "bench",
    ]
    with tempfile.TemporaryFile() as said:
        plan = cost_of_command(command, said)
    errors = worst_errors(folder / "loads" / "bench", cluster)
    repeated = repeat_days(store, asked.days)
    loads = cost_of_family(_measure(engine, uri, now))
    return Row(
        len(cluster), kind, asked.hours, asked.days, sample_bytes, repeated.bytes / repeated.rows,
        rollups, hours_loads, plan, loads, errors.median, errors.p95,
    )  # fmt: skip


def _measure(engine: Engine, uri: str, now: datetime) -> Callable[[], None]:
    return lambda: _discard(run(engine, uri, "bench", DAYS, now, console.print))


def _discard(_: object) -> None:
    """Only what it costs counts."""


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title="From hours of samples to a plan in CPU seconds, and loads from days of rollups")
    for head in (
        "partitions", "engine", "bytes/sample", "bytes/row", "hours", "rollups", "MB", "loads", "plan", "all", "days",
        "loads", "MB", "median off by", "p95 off by",
    ):  # fmt: skip
        table.add_column(head, justify="right")
    for r in rows:
        whole = r.rollups.cpu_seconds + r.hours_loads.cpu_seconds + r.plan.cpu_seconds
        table.add_row(
            f"{r.partitions:,}", r.engine, f"{r.sample_bytes:.1f}", f"{r.row_bytes:.1f}", f"{r.hours}",
            f"{r.rollups.cpu_seconds:.1f}", f"{r.rollups.peak_megabytes:,.0f}", f"{r.hours_loads.cpu_seconds:.1f}",
            f"{r.plan.cpu_seconds:.1f}", f"{whole:.1f}", f"{r.days}", f"{r.loads.cpu_seconds:.1f}",
            f"{r.loads.peak_megabytes:,.0f}", f"{r.median_error:.1%}", f"{r.p95_error:.1%}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    raise SystemExit(main())

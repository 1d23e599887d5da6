"""Plan for clusters of rising size in one process and on Spark, verify each plan, and compare with simple rivals.

Each size is an even and an uneven cluster. In one process the whole command is measured, on Spark one plan on a session
that has started. On a Spark cluster of two worker processes the command is measured for larger clusters, its driver's
memory apart. Writes ``spark.json``: a row for each cluster and engine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from bellwether_load.store.plans.plan_verification import recheck
from realparts.sparkcluster import SparkCluster
from sparkplans.costs import Cost, cost_of_command, cost_of_family
from sparkplans.instances import Case, Instance, instance, write
from sparkplans.rivals import by_count, fewest_changes, greedy
from sparkplans.spark_plans import HEAP, plan_on_spark

if TYPE_CHECKING:
    from bellwether_load.plan.rebalance_plan import RebalancePlan

SIZES = ((2_000, 12), (20_000, 60), (200_000, 300), (2_000_000, 1_000))
CAPS = {2_000: 100, 20_000: 500, 200_000: 3_000}
"""A limit of moves that is too low for the best plan."""
LARGE = ((2_500_000, 10_000), (20_000_000, 10_000))
"""More partitions than are balanced in the driver."""
DRIVER_HEAP, EXECUTOR_HEAP, WORKER_MEMORY = "1g", "3g", "4g"
GOALS = {"gap": 0.005, "cpu_seconds": 40.0, "megabytes": 1_500.0, "hours_seconds": 300.0, "verify_seconds": 60.0}
COLUMNS = (
    "partitions", "brokers", "kind", "cap", "hours", "who", "above bound", "changed", "/ least", "moved / least",
    "CPU s", "s", "MB", "driver MB", "verified",
)  # fmt: skip
console = Console(width=150)


@dataclass(frozen=True)
class Row:
    """One cluster and engine; rivals have no proof, and are measured in CPU seconds only.

    ``bound``: verified, of the busiest broker, in bytes/s at a capacity of 100. ``gap``: how far the busiest broker is
    above it; with hours the busiest broker-hour above the bound by hour. ``moved_load`` is in bytes/s; each ``*_bound``
    is the least that any plan of this quality needs.
    """

    kind: str
    partitions: int
    brokers: int
    max_moves: int | None
    hours: int
    engine: str
    bound: float
    gap: float
    moved_load: float
    moved_load_bound: float
    changed_leaders: int
    changed_leaders_bound: int
    cpu_seconds: float
    seconds: float | None = None
    peak_megabytes: float | None = None
    verified: bool | None = None
    verify_seconds: float | None = None
    driver_megabytes: float | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 when every plan was verified."""
    parser = argparse.ArgumentParser(prog="sparkplans", description=__doc__)
    parser.add_argument("--most", type=int, default=LARGE[-1][0], help="leave larger clusters out (%(default)s)")
    parser.add_argument("--seed", type=int, default=20261, help="of the clusters (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder for the figures (%(default)s)")
    parser.add_argument("--engines", default="process,spark,cluster", help="which to measure (%(default)s)")
    asked = parser.parse_args(arguments)
    rows: list[Row] = []
    for row in _rows(asked.most, asked.seed, asked.engines.split(",")):
        rows.append(row)
        _write(asked.reports, asked.seed, rows)
    console.print(_table(rows))
    console.print(f"figures: {asked.reports / 'spark.json'}")
    return 0 if all(r.verified in (True, None) for r in rows) else 1


def _rows(most: int, seed: int, engines: Sequence[str]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="sparkplans-") as folder:
        found = [instance(case, seed) for case in _cases(most)]
        for one in found:
            write(Store.open(folder), one)
        if "process" in engines:
            for one in found:
                console.print(f"in one process: {_words(one.case)} ...")
                row = _in_one_process(folder, one)
                yield row
                yield from _rivals(one, row.bound)
        if "spark" in engines:
            for one in found:
                console.print(f"on Spark: {_words(one.case)} ...")
                yield _on_spark(folder, one, found[0].case.name)
        found.clear()
        if "cluster" in engines:
            for partitions, brokers in LARGE:
                if partitions <= most:
                    yield _on_a_cluster(folder, instance(Case(partitions, brokers), seed))


def _write(reports: Path, seed: int, rows: Sequence[Row]) -> None:
    """All rows until now: an interrupted run keeps them."""
    reports.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"seed": seed, "cores": os.cpu_count(), "heap": list(HEAP.values()), "goals": GOALS}
    report |= {"driver_heap": DRIVER_HEAP, "executor_heap": EXECUTOR_HEAP, "executors": 2}
    report["rows"] = [asdict(row) for row in rows]
    (reports / "spark.json").write_text(json.dumps(report, indent=1) + "\n")


def _cases(most: int) -> Iterator[Case]:
    for partitions, brokers in SIZES:
        if partitions <= most:
            yield Case(partitions, brokers)
            yield Case(partitions, brokers, "uneven")
            if partitions in CAPS:
                yield Case(partitions, brokers, "uneven", max_moves=CAPS[partitions])
            yield Case(partitions, brokers, hours=168)


def _words(case: Case) -> str:
    cap = f", at most {case.max_moves:,} moves" if case.max_moves else ""
    hours = f", {case.hours} hours" if case.hours else ""
    return f"{case.partitions:,} partitions on {case.brokers:,} {case.kind} brokers{cap}{hours}"


def _in_one_process(folder: str, found: Instance) -> Row:
    name = found.case.name
    command = [sys.executable, "-m", "bellwether_load", "plan", "--engine", "process", "--store", folder]
    with tempfile.TemporaryFile() as said:
        cost = cost_of_command([*command, "--problem", name, "--loads", name], said)
        said.seek(0)
        digest = said.read().decode().split()[-1]
    return _row(folder, found, "process", digest, cost)


def _on_spark(folder: str, found: Instance, small: str) -> Row:
    """In a process of its own, which holds no more than the job does."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        digest, cost = process.submit(plan_on_spark, folder, found.case, small).result()
    return _row(folder, found, "spark", digest, cost)


def _on_a_cluster(folder: str, found: Instance) -> Row:
    """The command is the driver; a worker has one executor, and that has one core."""
    console.print(f"on a Spark cluster: {_words(found.case)} ...")
    write(Store.open(folder), found)
    name, home = found.case.name, Path(folder, "spark")
    home.mkdir(exist_ok=True)
    (home / "spark-defaults.conf").write_text(f"spark.executor.memory {EXECUTOR_HEAP}\nspark.local.dir {home}\n")
    command = [sys.executable, "-m", "bellwether_load", "plan", "--store", folder, "--problem", name, "--loads", name]
    environment = {**os.environ, "SPARK_CONF_DIR": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    driver: list[Cost] = []
    with SparkCluster(home, memory=WORKER_MEMORY) as cluster, tempfile.TemporaryFile() as said:
        command += ["--master", cluster.master, "--memory", DRIVER_HEAP]
        cost = cost_of_family(lambda: driver.append(cost_of_command(command, said, environment)))
        said.seek(0)
        digest = said.read().decode().split()[-1]
    return _row(folder, found, "cluster", digest, cost, driver[0].peak_megabytes)


def _row(
    folder: str, found: Instance, engine: str, digest: str, cost: Cost, driver_megabytes: float | None = None
) -> Row:
    case, plan = found.case, read_plan(Store.open(folder), digest)
    began = time.perf_counter()
    problem, loads = (Store.open(f"{folder}/{path}/{case.name}") for path in ("problems", "loads"))
    proof = recheck(problem, loads, Store.open(f"{folder}/plans/{digest}"))
    return Row(
        **asdict(case),
        engine=engine,
        bound=plan.certificate.bound,
        gap=_gap(plan),
        moved_load=plan.moved.load / 100,
        moved_load_bound=plan.moved.lower_bound / 100,
        changed_leaders=plan.moved.partitions,
        changed_leaders_bound=fewest_changes(found, plan.after.max),
        **asdict(cost),
        verified=proof.passed,
        verify_seconds=time.perf_counter() - began,
        driver_megabytes=driver_megabytes,
    )


def _gap(plan: RebalancePlan) -> float:
    hourly = plan.certificate.hourly
    if hourly is not None and plan.forecast is not None:
        return hourly.gap(plan.forecast.after.load) or 0.0
    return plan.certificate.gap or 0.0


def _rivals(found: Instance, bound: float) -> Iterator[Row]:
    """They know no hours and, but for the greedy, no cap."""
    rivals = {"greedy": greedy} if found.case.max_moves else {"greedy": greedy, "by count": by_count}
    for name, rival in rivals.items() if not found.case.hours else ():
        result = rival(found)
        yield Row(
            **asdict(found.case),
            engine=name,
            bound=bound,
            gap=result.busiest / bound - 1,
            moved_load=result.moved / 100,
            moved_load_bound=0.0,
            changed_leaders=result.changed,
            changed_leaders_bound=fewest_changes(found, result.busiest),
            cpu_seconds=result.cpu_seconds,
        )


def _table(rows: Sequence[Row]) -> Table:
    table = Table(title="Plans, and how far their busiest broker (or broker-hour) is above the verified bound")
    for head in COLUMNS:
        table.add_column(head, justify="left" if head in ("kind", "who") else "right")
    for r in rows:
        table.add_row(
            f"{r.partitions:,}", f"{r.brokers:,}", r.kind, f"{r.max_moves:,}" if r.max_moves else "",
            f"{r.hours or ''}", r.engine, f"{r.gap:.3%}", f"{r.changed_leaders:,}",
            f"{r.changed_leaders / r.changed_leaders_bound:.2f}" if r.changed_leaders_bound else "",
            f"{r.moved_load / r.moved_load_bound:.2f}" if r.moved_load_bound else "",
            f"{r.cpu_seconds:.1f}", "" if r.seconds is None else f"{r.seconds:.1f}",
            "" if r.peak_megabytes is None else f"{r.peak_megabytes:,.0f}",
            "" if r.driver_megabytes is None else f"{r.driver_megabytes:,.0f}",
            "" if r.verified is None else f"in {r.verify_seconds:.1f} s" if r.verified else "NO",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    raise SystemExit(main())

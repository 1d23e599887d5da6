"""Plan for clusters of rising size, verify each plan, and compare with simple rivals.

Each size is an even and an uneven cluster. The whole command is measured. Writes ``spark.json``: a row for each cluster
and way to plan.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from bellwether_load.store.plans.plan_verification import recheck
from sparkplans.costs import Cost, cost_of_command
from sparkplans.instances import Case, Instance, instance, write
from sparkplans.rivals import by_count, fewest_changes, greedy

if TYPE_CHECKING:
    from bellwether_load.plan.rebalance_plan import RebalancePlan

SIZES = ((2_000, 12), (20_000, 60), (200_000, 300), (2_000_000, 1_000), (3_000_000, 1_000))
CAPS = {2_000: 100, 20_000: 500, 200_000: 3_000}
"""A limit of moves that is too low for the best plan."""
WITH_REQUESTS = 200_000
"""Partitions of the plan that balances requests, too."""
GOALS = {"gap": 0.005, "cpu_seconds": 40.0, "megabytes": 1_500.0, "hours_seconds": 300.0, "verify_seconds": 60.0}
COLUMNS = (
    "partitions", "brokers", "kind", "cap", "hours", "who", "above bound", "changed", "/ least", "moved / least",
    "CPU s", "s", "MB", "verified", "broker lost", "rack lost",
)  # fmt: skip
console = Console(width=190)


@dataclass(frozen=True)
class Row:
    """One cluster and way to plan; rivals have no proof, and are measured in CPU seconds only.

    ``bound``: verified, of the busiest broker, in bytes/s at a capacity of 100. ``gap``: how far the busiest broker is
    above it; with hours the busiest broker-hour above the bound by hour. ``moved_load`` is in bytes/s; each ``*_bound``
    is the least that any plan of this quality needs. ``losses`` by kind: the worst before and after as a multiple of
    the busiest broker after, and how far the latter is above its bound. ``reordered``: orders that change, not leaders.
    """

    kind: str
    partitions: int
    brokers: int
    max_moves: int | None
    hours: int
    request_bytes: int
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
    reordered: int | None = None
    losses: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 when every plan was verified."""
    parser = argparse.ArgumentParser(prog="sparkplans", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1][0], help="leave larger clusters out (%(default)s)")
    parser.add_argument("--seed", type=int, default=20261, help="of the clusters (%(default)s)")
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="folder for the figures (%(default)s)")
    parser.add_argument("--large", type=int, metavar="N", help="N partitions and a tenth of them alone, without rivals")
    parser.add_argument("--exact", type=int, metavar="N", help="N small clusters next to exact optima instead")
    asked = parser.parse_args(arguments)
    if asked.exact:
        return _exact(asked.exact, asked.seed)
    rows: list[Row] = []
    cases = _large(asked.large) if asked.large else _cases(asked.most)
    for row in _rows(cases, asked.seed, rivals=not asked.large):
        rows.append(row)
        _write(asked.reports, asked.seed, rows)
    console.print(_table(rows), f"figures: {asked.reports / 'spark.json'}")
    return 0 if all(r.verified in (True, None) for r in rows) else 1


def _exact(count: int, seed: int) -> int:
    from sparkplans.exact import compared, larger_table, losses_of_larger, table  # noqa: PLC0415 - scipy takes a second

    found = list(compared(range(count), seed))
    console.print(table(found))
    console.print(larger_table(list(losses_of_larger(seed))))
    return 0 if all(row.verified and not row.false for row in found) else 1


def _rows(cases: Iterable[Case], seed: int, *, rivals: bool) -> Iterator[Row]:
    """Without rivals each plan is verified while the next one is made, by another core."""
    with tempfile.TemporaryDirectory(prefix="sparkplans-") as folder, ThreadPoolExecutor(1) as verifier:
        verified = []
        for case in cases:
            console.print(f"{_words(case)} ...")
            one = instance(case, seed)
            write(Store.open(folder), one)
            verified.append(verifier.submit(_row, folder, one, *_planned(folder, case)))
            while verified and (rivals or verified[0].done()):
                yield (row := verified.pop(0).result())
                yield from _rivals(one, row.bound) if rivals else ()
        yield from (row.result() for row in verified)


def _large(largest: int) -> Iterator[Case]:
    """Statistic, hours and a cap for so many partitions and a tenth of them."""
    for partitions, brokers in SIZES:
        if partitions in (largest // 10, largest):
            yield from (Case(partitions, brokers, hours=hours) for hours in (0, 168))
            if partitions in CAPS:
                yield Case(partitions, brokers, "uneven", max_moves=CAPS[partitions])


def _write(reports: Path, seed: int, rows: Sequence[Row]) -> None:
    """All rows until now: an interrupted run keeps them."""
    reports.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"seed": seed, "cores": os.cpu_count(), "goals": GOALS}
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
            if partitions == WITH_REQUESTS:
                yield Case(partitions, brokers, hours=168, request_bytes=5_000)


def _words(case: Case) -> str:
    cap = f", at most {case.max_moves:,} moves" if case.max_moves else ""
    hours = f", {case.hours} hours{' with requests' * bool(case.request_bytes)}" if case.hours else ""
    return f"{case.partitions:,} partitions on {case.brokers:,} {case.kind} brokers{cap}{hours}"


def _planned(folder: str, case: Case) -> tuple[str, Cost]:
    """The digest of the plan, and what making it cost."""
    command = [sys.executable, "-m", "bellwether_load", "plan", "--store", folder]
    with tempfile.TemporaryFile() as said:
        cost = cost_of_command([*command, "--problem", case.name, "--loads", case.name], said)
        said.seek(0)
        return said.read().decode().split()[-1], cost


def _row(folder: str, found: Instance, digest: str, cost: Cost) -> Row:
    case, plan = found.case, read_plan(Store.open(folder), digest)
    began = time.perf_counter()
    problem, loads = (Store.open(f"{folder}/{path}/{case.name}") for path in ("problems", "loads"))
    proof = recheck(problem, loads, Store.open(f"{folder}/plans/{digest}"))
    return Row(
        **asdict(case),
        engine="plan",
        bound=plan.certificate.bound,
        gap=_gap(plan),
        moved_load=plan.moved.load / 100,
        moved_load_bound=plan.moved.lower_bound / 100,
        changed_leaders=plan.moved.partitions,
        changed_leaders_bound=fewest_changes(found, plan.after.max),
        **asdict(cost),
        verified=proof.passed,
        verify_seconds=time.perf_counter() - began,
        reordered=plan.moved.reordered,
        losses={
            loss.kind: (loss.before.load / plan.after.max, loss.after.load / plan.after.max, loss.gap or 0.0)
            for loss in (plan.losses.kinds if plan.losses else ())
        },
    )


def _gap(plan: RebalancePlan) -> float:
    hourly = plan.certificate.hourly
    if hourly is not None and plan.forecast is not None:
        return hourly.gap(plan.forecast.highest(plan.objective.request_bytes)[1]) or 0.0
    return plan.gap or 0.0


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
            f"{r.hours or ''}{' + requests' * bool(r.request_bytes)}", r.engine, f"{r.gap:.3%}",
            f"{r.changed_leaders:,}",
            f"{r.changed_leaders / r.changed_leaders_bound:.2f}" if r.changed_leaders_bound else "",
            f"{r.moved_load / r.moved_load_bound:.2f}" if r.moved_load_bound else "",
            f"{r.cpu_seconds:.1f}", "" if r.seconds is None else f"{r.seconds:.1f}",
            "" if r.peak_megabytes is None else f"{r.peak_megabytes:,.0f}",
            "" if r.verified is None else f"in {r.verify_seconds:.1f} s" if r.verified else "NO",
            *("" if kind not in r.losses else _lost(*r.losses[kind]) for kind in ("broker", "rack")),
        )  # fmt: skip
    return table


def _lost(before: float, after: float, gap: float) -> str:
    return f"{before:.2f}x, {after:.2f}x (+{gap:.1%})"


if __name__ == "__main__":
    raise SystemExit(main())

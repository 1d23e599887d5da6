"""``python -m plancosts``: what reconciles and their plans cost on a large cluster.

Writes ``reports/plan.json`` and prints a table; seconds are CPU time. Exit status: 0 when every plan took less than
``--goal``, 1 otherwise; it fails as well when anything is sent to a cluster that has settled.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bellwether.gc_tuning import collect_seldom
from plancosts.steps import Step, many_brokers, steps

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m plancosts", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1000, help="brokers (%(default)s)")
    parser.add_argument("--partitions", type=int, default=200_000, help="partitions (%(default)s)")
    parser.add_argument("--no-racks", action="store_true", help="leave out the steps with preferred racks")
    parser.add_argument("--goal", type=float, default=2.0, help="seconds that a plan may take (%(default)s)")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    collect_seldom()  # as the operator does
    with many_brokers(asked.brokers, asked.partitions) as site:
        found = list(steps(site, racks=not asked.no_racks))
    sizes = {"brokers": asked.brokers, "partitions": asked.partitions, "goal_seconds": asked.goal}
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = asked.reports / "plan.json"
    report.write_text(json.dumps({**sizes, "steps": [asdict(s) for s in found], "machine": machine}, indent=2) + "\n")
    show(found)
    print(f"written to {report}")
    return 0 if well(found, asked.goal) else 1


def well(found: list[Step], goal: float) -> bool:
    """Whether plans come in time, the one too that moves nearly everything."""
    return all(s.plan_seconds < goal for s in found)


def show(found: list[Step]) -> None:
    """The same as a table."""
    table = Table("step", "moves", "plan s", "changing s", "quiet s", "reconciles", "mutations", "held", "peak MB")
    for s in found:
        times = (f"{seconds:.2f}" for seconds in (s.plan_seconds, s.changing_seconds, s.quiet_seconds))
        counts = str(s.turns), f"{s.mutations:,}", str(s.held), f"{s.peak_megabytes:,.0f}"
        table.add_row(s.name, f"{s.moves:,}", *times, *counts)
    Console(width=120).print(table)


if __name__ == "__main__":
    raise SystemExit(main())

"""``python -m plancosts``: how long a plan takes on a large cluster, and whether anything is sent that need not be.

Writes ``reports/plan.json`` and prints a table; seconds are those of the processor. Exit status: 0 when a cluster at
rest was asked for nothing, and every plan took less than ``--goal``; 1 otherwise.
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
from plancosts.steps import Step, steps

ROOT = Path(__file__).resolve().parents[3]


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m plancosts", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1000, help="brokers (%(default)s)")
    parser.add_argument("--partitions", type=int, default=200_000, help="partitions (%(default)s)")
    parser.add_argument("--goal", type=float, default=2.0, help="seconds that a plan may take (%(default)s)")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    collect_seldom()  # as the operator does
    found = list(steps(asked.brokers, asked.partitions))
    sizes = {"brokers": asked.brokers, "partitions": asked.partitions, "goal_seconds": asked.goal}
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = asked.reports / "plan.json"
    report.write_text(json.dumps({**sizes, "steps": [asdict(s) for s in found], "machine": machine}, indent=2) + "\n")
    show(found)
    print(f"written to {report}")
    return 0 if well(found, asked.goal) else 1


def well(found: list[Step], goal: float) -> bool:
    """Whether rest is rest, and plans come in time, the first one too, which moves nearly everything."""
    rest = all(s.mutations == 0 and s.moves == 0 for s in found if s.name.startswith("at rest"))
    return rest and all(s.plan_seconds < goal for s in found)


def show(found: list[Step]) -> None:
    """The same as a table."""
    table = Table("step", "moves", "plan s", "last turn s", "turns", "mutations", "held")
    for s in found:
        plan, turn = f"{s.plan_seconds:.2f}", f"{s.turn_seconds:.2f}"
        table.add_row(s.name, f"{s.moves:,}", plan, turn, str(s.turns), f"{s.mutations:,}", str(s.held))
    Console().print(table)


if __name__ == "__main__":
    raise SystemExit(main())

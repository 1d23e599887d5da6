"""``python -m mutants``: change the core and ``execute`` in small ways, and count which tests notice.

A seeded sample of all mutations, as many as fit into ``--minutes``. Writes ``reports/mutants.json`` and prints a table
and the survivors. Exit status: 1 when the tests fail without a mutation; else 0, as a survivor may be equivalent.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mutants.mutations import count, mutation
from mutants.runs import ROOT, SOURCE, WIDER, Found, MutatedCopy, modules

Row = dict[str, str | int]


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no mutant later than this (%(default)s)")
    parser.add_argument("--most", type=int, default=1000, help="mutants at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (%(default)s)")
    parser.add_argument("--unit-only", action="store_true", help="do not run the properties, which take longest")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    end = time.monotonic() + asked.minutes * 60
    every = [(module, number) for module in modules() for number in range(count((SOURCE / module).read_text()))]
    sample = random.Random(asked.seed).sample(every, min(asked.most, len(every)))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = MutatedCopy(Path(folder))
        if not copy.passes(WIDER):
            print("the tests fail without a mutation: make them pass first")
            return 1
        for module, number in sample:
            if time.monotonic() > end:
                break
            rows.append(judged(copy, module, number, properties=not asked.unit_only))
            print(f"{len(rows)}: {rows[-1]['module']}:{rows[-1]['line']} {rows[-1]['found']}", flush=True)
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = asked.reports / "mutants.json"
    report.write_text(json.dumps({"mutations": len(every), "seed": asked.seed, "mutants": rows}, indent=2) + "\n")
    show(rows, len(every))
    print(f"written to {report}")
    return 0


def judged(copy: MutatedCopy, module: Path, number: int, *, properties: bool) -> Row:
    """One mutant, and which tests noticed it."""
    made = mutation((SOURCE / module).read_text(), number)
    found = copy.judge(module, made.text, properties=properties)
    return {"module": str(module), "line": made.line, "before": made.before, "after": made.after, "found": str(found)}


def show(rows: list[Row], of: int) -> None:
    """The counts by package, and every survivor."""
    table = Table("package", "mutants", *Found)
    counts = Counter((str(Path(str(row["module"])).parent), row["found"]) for row in rows)
    for package in sorted({package for package, _ in counts}):
        found = [counts[package, str(one)] for one in Found]
        table.add_row(package, str(sum(found)), *map(str, found))
    console = Console()
    console.print(table)
    survivors = [row for row in rows if row["found"] == Found.NOTHING]
    console.print(f"{len(rows)} of {of} mutants, {len(survivors)} survived")
    for row in survivors:
        console.print(f"{row['module']}:{row['line']}: {row['before']}  ->  {row['after']}", markup=False)


if __name__ == "__main__":
    raise SystemExit(main())

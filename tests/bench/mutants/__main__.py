"""``python -m mutants``: change the deciding modules in small ways, and count which tests notice.

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.table import Table

from mutants.mutations import count, mutation
from mutants.runs import DECIDING, ROOT, SOURCE, Found, MutatedCopy, modules, stages

Row = dict[str, str | int]


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("within", nargs="*", default=DECIDING, help="modules or folders of the package (%(default)s)")
    parser.add_argument("--minutes", type=float, default=20.0, help="start no mutant later than this (%(default)s)")
    parser.add_argument("--most", type=int, default=1000, help="mutants at most (%(default)s)")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first ones of the sample (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (%(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="mutants that are tested at once (%(default)s)")
    parser.add_argument("--unit-only", action="store_true", help="run neither scenarios nor properties")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    begun = time.monotonic()
    every = [(module, n) for module in modules(asked.within) for n in range(count((SOURCE / module).read_text()))]
    sample = random.Random(asked.seed).sample(every, len(every))[asked.skip :][: asked.most]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.processes) as pool:
        copies = SimpleQueue[MutatedCopy]()
        for number in range(asked.processes):
            copies.put(MutatedCopy(Path(folder) / str(number)))
        everything = [test for _, tests in stages(sample[0][0]) for test in tests]
        copy = copies.get()
        if not copy.passes(everything):
            print("the tests fail without a mutation: make them pass first")
            return 1
        copies.put(copy)

        def judge_next(one: tuple[Path, int]) -> None:
            if time.monotonic() - begun > asked.minutes * 60:
                return
            copy = copies.get()
            rows.append(judge(copy, *one, unit_only=asked.unit_only))
            copies.put(copy)
            print(f"{len(rows)}: {rows[-1]['module']}:{rows[-1]['line']} {rows[-1]['found']}", flush=True)

        list(pool.map(judge_next, sample))
    minutes = round((time.monotonic() - begun) / 60, 1)
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = asked.reports / "mutants.json"
    figures = {"mutations": len(every), "seed": asked.seed, "minutes": minutes, "mutants": rows}
    report.write_text(json.dumps(figures, indent=2) + "\n")
    show(rows, len(every), minutes)
    print(f"written to {report}")
    return 0


def judge(copy: MutatedCopy, module: Path, number: int, *, unit_only: bool) -> Row:
    """One mutant, and which tests noticed it."""
    made = mutation((SOURCE / module).read_text(), number)
    found = copy.judge(module, made.text, unit_only=unit_only)
    return {"module": str(module), "line": made.line, "before": made.before, "after": made.after, "found": str(found)}


def show(rows: list[Row], of: int, minutes: float) -> None:
    """The counts by package, and every survivor."""
    table = Table("package", "mutants", *Found)
    counts = Counter((str(Path(str(row["module"])).parent), row["found"]) for row in rows)
    for package in sorted({package for package, _ in counts}):
        found = [counts[package, str(one)] for one in Found]
        table.add_row(package, str(sum(found)), *map(str, found))
    console = Console()
    console.print(table)
    survivors = [row for row in rows if row["found"] == Found.NOTHING]
    console.print(f"{len(rows)} of {of} mutants in {minutes} minutes, {len(survivors)} survived")
    for row in survivors:
        console.print(f"{row['module']}:{row['line']}: {row['before']}  ->  {row['after']}", markup=False)


if __name__ == "__main__":
    raise SystemExit(main())

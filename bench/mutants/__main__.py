"""``python -m mutants``: change the deciding modules in small ways, and count which tests notice.

A seeded sample of all mutations, as many as fit into ``--minutes``. Writes ``reports/mutants.json`` and prints a table
and the survivors. Exit status: 1 when the tests fail without a mutation; else 0, as a survivor may be equivalent.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from mutants.forks import Forks
from mutants.mutations import Mutation, count, mutation
from mutants.runs import DECIDING, ROOT, SOURCE, Found, MutatedCopy, modules, paths_of_tests, stage

Row = dict[str, str | int]


def main() -> int:
    """Run once; see the module for the exit status."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("within", nargs="*", default=DECIDING, help="modules or folders of the package (%(default)s)")
    parser.add_argument("--minutes", type=float, default=20.0, help="start no mutant later than this (%(default)s)")
    parser.add_argument("--most", type=int, default=10_000, help="mutants at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample (%(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="mutants that are tested at once (%(default)s)")
    parser.add_argument("--unit-only", action="store_true", help="run no properties")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", help="folder for the figures (%(default)s)")
    asked = parser.parse_args()
    begun = time.monotonic()
    every = [(module, n) for module in modules(asked.within) for n in range(count((SOURCE / module).read_text()))]
    sample = random.Random(asked.seed).sample(every, len(every))[: asked.most]
    chosen = paths_of_tests(properties=not asked.unit_only)
    with tempfile.TemporaryDirectory() as folder:
        run = MutationRun(sample, chosen, begun + asked.minutes * 60, asked.processes, MutatedCopy(Path(folder)))
        os.chdir(ROOT)
        options = ("-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--hypothesis-profile=few")
        pytest.main([*options, *chosen], plugins=[run])
    if run.problem:
        print(f"{run.problem} fails without a mutation: make it pass first")
        return 1
    minutes = round((time.monotonic() - begun) / 60, 1)
    asked.reports.mkdir(parents=True, exist_ok=True)
    report = asked.reports / "mutants.json"
    figures = {"mutations": len(every), "seed": asked.seed, "minutes": minutes, "mutants": run.rows}
    report.write_text(json.dumps(figures, indent=2) + "\n")
    show(run.rows, len(every), minutes)
    print(f"written to {report}")
    return 0


class MutationRun:
    """A plugin of pytest: tests every mutant of the sample in place of running the tests once."""

    def __init__(
        self, sample: Sequence[tuple[Path, int]], chosen: Sequence[str], end: float, processes: int, copy: MutatedCopy
    ) -> None:
        self._sample, self._chosen, self._end, self._processes, self._copy = sample, chosen, end, processes, copy
        self._begun: dict[int, tuple[Path, Mutation]] = {}
        self.rows: list[Row] = []
        self.problem = "the collection of the tests"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn what the tests enter, then test one mutant after the other."""
        forks = Forks(session.items)
        self.problem = forks.learn()
        for module, number in () if self.problem else self._sample:
            if time.monotonic() > self._end:
                break
            made = mutation((SOURCE / module).read_text(), number)
            if made.function is None:
                self._add(module, made, self._copy.judge(module, made.text, self._chosen))
                continue
            while len(self._begun) >= self._processes:
                self._take_result(forks)
            self._begun[forks.begin(module, made)] = (module, made)
        while self._begun:
            self._take_result(forks)
        return True

    def _take_result(self, forks: Forks) -> None:
        pid, test = forks.next_result()
        module, made = self._begun.pop(pid)
        found = Found.TIME if test is None else stage(test, module) if test else Found.NOTHING
        self._add(module, made, found)

    def _add(self, module: Path, made: Mutation, found: Found) -> None:
        self.rows.append(
            {"module": str(module), "line": made.line, "before": made.before, "after": made.after, "found": str(found)}
        )
        print(f"{len(self.rows)}: {module}:{made.line} {found}", flush=True)


def show(rows: Sequence[Row], of: int, minutes: float) -> None:
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

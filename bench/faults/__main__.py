"""``python -m faults``: set one stage after another, play every scenario on it, report, and leave nothing running.

Exit status: 0 when every scenario that was run had the right verdict and no healthy broker was demoted, 1 otherwise,
130 after Ctrl-C.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import groupby
from types import FrameType
from typing import Any

from rich.console import Console

from faults import report, tables
from faults.playing import TROUBLES, Result, play
from faults.scenarios import SCENARIOS, Scenario
from faults.settings import ROOT, Settings, parse
from faults.stage import Layout, Stage
from realparts.apiserver import ApiServer

LOG_WIDTH = 150
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Run once; see the module for the exit status."""
    settings = parse(sys.argv[1:], [one.name for one in SCENARIOS])
    console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    if settings.list_only:
        console.print(tables.listing(SCENARIOS))
        return 0
    for number in SIGNALS:
        signal.signal(number, _interrupt)
    stack = ExitStack()
    try:
        return run(settings, console, stack)
    except KeyboardInterrupt:
        console.print("\ninterrupted", style="bold")
        return 130
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # cleaning up must not be interrupted
        console.print("stopping everything ...", style="dim")
        stack.close()


def run(settings: Settings, console: Console, stack: ExitStack) -> int:
    """Everything between start and end; what is started goes onto ``stack``."""
    planned = [one for one in SCENARIOS if not settings.only or one.name in settings.only]
    shutil.rmtree(settings.logs, ignore_errors=True)
    server = stack.enter_context(ApiServer())
    server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
    run_ = _Run(settings, stack.enter_context(tables.Screen(console, planned)), server)
    for layout, group in groupby(planned, key=lambda one: one.layout):
        run_.on(replace(layout, partitions=settings.partitions), list(group) * settings.repeat)
    rows = run_.rows
    wrong = [row for row in rows if not row["ok"]]
    console.print(tables.results(rows, f"{len(rows)} scenarios, {len(rows) - len(wrong)} right"))
    if settings.timed:
        console.print(tables.times(report.times(rows)))
    console.print(f"figures: {settings.report}; logs: {settings.logs}", highlight=False)
    return 1 if wrong or any(row["healthy_brokers_demoted"] for row in rows) else 0


class _Run:
    def __init__(self, settings: Settings, screen: tables.Screen, server: ApiServer) -> None:
        self._settings = settings
        self._screen = screen
        self._server = server
        self._commit = report.commit()
        self.rows: list[dict[str, Any]] = []

    def on(self, layout: Layout, scenarios: Sequence[Scenario]) -> None:
        """Play scenarios on one stage, on a new one after each that could not be repaired."""
        left = list(scenarios)
        while left:
            self._screen.step(f"setting the stage {layout.name!r}: {layout.brokers} brokers")
            try:
                with Stage(layout, self._server, self._settings.logs) as stage:
                    while left:
                        scenario = left.pop(0)
                        result = play(scenario, stage, partial(self._step, scenario.name))
                        self._take(result)
                        if not result.mended:
                            break
            except TROUBLES as problem:
                if not left:
                    raise
                self._take(Result(left.pop(0), "not played", (f"the stage could not be set: {problem}",)))

    def _step(self, name: str, text: str) -> None:
        self._screen.step(f"{name}: {text}")

    def _take(self, result: Result) -> None:
        self.rows.append(report.row(result, self._commit, self._settings.partitions))
        if self._settings.timed:
            report.write(self._settings.report, report.times(self.rows))
        else:
            names = [one.name for one in SCENARIOS]
            fresh = not self._settings.only and len(self.rows) == 1
            report.save(self._settings.report, self.rows, names, fresh=fresh)
        self._screen.add(self.rows[-1])


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

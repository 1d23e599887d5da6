"""What a person sees: a table of the scenarios, live on a terminal, line by line elsewhere, whole at the end.

In: what is run, and results as they come. Out: text. Called by ``__main__``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from faults.scenarios import Scenario


def listing(scenarios: Sequence[Scenario]) -> Table:
    """What there is."""
    table = Table(title=f"{len(scenarios)} scenarios", title_justify="left")
    for name in ("scenario", "stage", "what is done", "expected"):
        table.add_column(name, overflow="fold")
    for one in scenarios:
        table.add_row(one.name, one.layout.name, one.what, str(one.expected))
    return table


def results(rows: Sequence[dict[str, Any]], title: str) -> Table:
    """What came of each, from the report's rows."""
    table = Table(title=title, title_justify="left")
    for name in ("scenario", "expected", "verdict"):
        table.add_column(name, overflow="fold")
    for name in ("s to figure", "s to verdict", "s to 0 leaders", "healthy demoted"):
        table.add_column(name, justify="right")
    table.add_column("")
    for one in rows:
        table.add_row(
            one["scenario"],
            one["expected"],
            one["verdict"],
            _number(one.get("seconds_to_figure")),
            _number(one["seconds_to_verdict"]),
            _number(one["seconds_to_zero_leaders"]),
            str(one["healthy_brokers_demoted"]),
            Text("right", style="green") if one["ok"] else Text("WRONG", style="bold red"),
        )
    return table


def times(found: Sequence[dict[str, Any]]) -> Table:
    """First, later and worst times of each scenario that was repeated."""
    table = Table(title="seconds from the fault", title_justify="left")
    for name in ("scenario", "what is done"):
        table.add_column(name, overflow="fold")
    for name in (
        "partitions",
        "runs",
        "to verdict, first",
        "later",
        "worst",
        "to 0 leaders, first",
        "later",
        "worst",
        "load",
    ):
        table.add_column(name, justify="right")
    for one in found:
        seconds = [
            one[way][which] for way in ("to_verdict", "to_zero_leaders") for which in ("first", "later", "worst")
        ]
        figures = [f"{one['partitions']:,}", str(one["runs"]), *map(_number, seconds), str(one["load"])]
        table.add_row(one["scenario"], one["what"], *figures)
    return table


class Screen:
    """Shows a run as it goes on; a context manager."""

    def __init__(self, console: Console, planned: Sequence[Scenario]) -> None:
        self._console = console
        self._names = [one.name for one in planned]
        self._rows: list[dict[str, Any]] = []
        self._started = time.monotonic()
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def step(self, text: str) -> None:
        """What goes on now."""
        line = f"{time.monotonic() - self._started:6.0f} s  {text}"
        if self._live is None:
            self._console.print(line, highlight=False, soft_wrap=True, markup=False)
        else:
            title = f"{len(self._rows)} of {len(self._names)} played; {line.strip()}"
            self._live.update(results(self._rows, title), refresh=True)

    def add(self, row: dict[str, Any]) -> None:
        """One more result."""
        self._rows.append(row)
        self.step(f"{row['scenario']}: {'right' if row['ok'] else 'WRONG'}: {row['verdict']}")
        for sentence in row["wrong"]:
            self._console.print(f"          {sentence}", style="red", highlight=False, markup=False)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"

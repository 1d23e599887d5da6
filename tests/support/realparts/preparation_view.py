"""Shows how far a preparation is: one line for each event, and one where nothing happens for long.

In: a ``Preparation`` and a console. Out: lines on the console. Nothing is shown for what was there already.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console

from realparts.preparation import Preparation, Step

LOG_SECONDS = 30.0
TICK_SECONDS = 0.5
QUICK_SECONDS = 1.0
"""A step that is done within this was done before: it only looked."""
SURE_FROM = 0.1
"""The share of packages from which on the time that is left is estimated."""

_COUNTED = re.compile(r"^(\d+) of (\d+) packages$")


class PreparationView:
    """A context manager: shows until its exit."""

    def __init__(self, preparation: Preparation, console: Console, title: str) -> None:
        self._preparation = preparation
        self._console = console
        self._title = title
        self._ended = threading.Event()
        self._logging = threading.Thread(target=self._log, daemon=True)

    def __enter__(self) -> Self:
        self._logging.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._logging.join()
        for step in self._preparation.steps.values():
            if step.skipped:
                self._console.print(f"no {step.name}, so what needs it is skipped: {step.skipped}", highlight=False)

    def _log(self) -> None:
        reported: dict[str, str] = {}
        spoken = time.monotonic()
        last = False
        while not last:
            last = self._ended.wait(TICK_SECONDS)  # once more at the end, for what has ended by then
            now = time.monotonic()
            lines = events(self._preparation.steps.values(), reported, now)
            if not lines and now - spoken >= LOG_SECONDS and not last:
                lines = [headline(self._preparation, self._title, now)]
            for line in lines:
                spoken = now
                self._console.print(f"[{clock(now - self._preparation.began)}] {line}", highlight=False, markup=False)


def events(steps: Iterable[Step], reported: dict[str, str], now: float) -> list[str]:
    """What has begun and ended since the last call; ``reported`` keeps what was said."""
    lines = []
    for step in steps:
        if step.started is None or reported.get(step.name) == "ended":
            continue
        took = (step.ended or now) - step.started
        if step.name not in reported and took >= QUICK_SECONDS:
            reported[step.name] = "begun"
            lines.append(f"{step.name}: {step.doing or 'begun'}")
        if step.ended is not None:
            if step.name in reported:
                lines.append(f"{step.name}: ready after {took:.0f} s")
            reported[step.name] = "ended"
    return lines


def headline(preparation: Preparation, title: str, now: float) -> str:
    """Parts done of all, the time so far, and what takes longest with an estimate."""
    steps = preparation.steps.values()
    done = sum(step.ended is not None for step in steps)
    counted = [
        f"{step.name} {action(step, now)}" for step in steps if step.ended is None and _COUNTED.match(step.doing)
    ]
    return "; ".join([f"{title}: {done} of {len(steps)} done, {clock(now - preparation.began)}", *counted])


def action(step: Step, now: float) -> str:
    """What it does now, with the time that is left if that can be estimated."""
    counted = _COUNTED.match(step.doing)
    if counted is None or step.started is None:
        return step.doing
    compiled, total = int(counted[1]), int(counted[2])
    said = f"{compiled:,} of {total:,} packages compiled"
    if total * SURE_FROM <= compiled < total:
        left = (now - step.started) * (total - compiled) / compiled
        said += f", about {max(1, round(left / 60))} min left"
    return said


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

"""Waiting for what must come about, with limits that grow with the slowness of the machine.

In: a condition, and the seconds in which a machine like the reference reaches it. Out: what the condition returned, or
an error that quotes the condition, the time and the machine's speed. Called by tests and by the starters of real parts.

Speed is measured once, at first use, and again when a limit is reached: other work may have slowed the machine since.
``BELLWETHER_SLOWNESS=3`` sets it.
"""

from __future__ import annotations

import linecache
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

REFERENCE_SECONDS = 0.05
"""What the measured loop takes on one free core of the reference, a server of 2023 with CPython 3.11."""

LOOPS = 1_800_000
TRIES = 3
SLOWEST = 30.0
"""No machine is taken for slower than this: a test that never ends by itself has to end."""

_measured: float | None = None


class TooLate(AssertionError):
    """What was waited for did not come about within the limit."""


def slowness() -> float:
    """How many times slower than the reference this machine is; 1 or more. Measured at the first call."""
    return measure() if _measured is None else _measured


def measure() -> float:
    """Measure the slowness again. It is wall time, so that what else runs on the machine counts."""
    global _measured  # noqa: PLW0603 - one machine, one speed
    fixed = os.environ.get("BELLWETHER_SLOWNESS")
    found = float(fixed) if fixed else min(_loop() for _ in range(TRIES)) / REFERENCE_SECONDS
    _measured = min(max(found, 1.0), SLOWEST)
    return _measured


def _loop() -> float:
    began, total = time.monotonic(), 0
    for number in range(LOOPS):
        total += number
    return time.monotonic() - began


def limit(seconds: float) -> float:
    """Seconds of the reference as seconds of this machine: for timeouts of processes, threads and clients."""
    return seconds * slowness()


def ran(command: Sequence[str | Path], seconds: float = 600, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with what it wrote as text, whatever its exit status."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit(seconds), **more)


def until(
    condition: Callable[[], T],
    seconds: float = 30,
    what: str = "",
    *,
    so: Callable[[T], object] = bool,
    every: float = 0.02,
    alive: Callable[[], object] | None = None,
    seen: Callable[[], object] | None = None,
    ignoring: tuple[type[Exception], ...] = (),
) -> T:
    """Call ``condition`` until what it returns is true (or ``so`` of it is), and return that. Raises TooLate.

    ``seconds`` are those of the reference. ``what`` names the condition; by default its source does. An exception of
    ``ignoring`` counts as not yet; any other passes. It is too late at once when ``alive`` is false. ``seen`` says what
    there was instead; by default that is the last value or exception.
    """
    began, last = time.monotonic(), "nothing"
    while True:
        try:
            if so(found := condition()):
                return found
            last = repr(found)
        except ignoring as problem:
            last = repr(problem)
        passed = time.monotonic() - began
        ended = alive is not None and not alive()
        if ended or (passed > limit(seconds) and passed > seconds * measure()):
            break
        time.sleep(every)
    why = "what it depends on has ended" if ended else f"{seconds:g} s on the reference"
    raise TooLate(
        f"not within {passed:.1f} s ({why}; this machine is {slowness():.1f} times slower): "
        f"{what or _source(condition)}\n"
        f"seen last: {last if seen is None else seen()}"
    )


def done(_: object) -> bool:
    """For ``so``, where it is enough that the call raises nothing."""
    return True


def _source(condition: Callable[[], object]) -> str:
    code = getattr(condition, "__code__", None)
    return linecache.getline(code.co_filename, code.co_firstlineno).strip() if code else repr(condition)

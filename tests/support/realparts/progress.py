"""Reports what a slow step is doing. In: one line. Out: standard error at once, or the thread's own reporter.

Each thread may have its own reporter: ``preparation`` shows what its threads say in one view.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Reporter = Callable[[str], None]

_of_thread = threading.local()


def say(line: str) -> None:
    """Report one line at once, so that a build of minutes never looks like a hang."""
    reporter: Reporter = getattr(_of_thread, "reporter", _print)
    reporter(line)


@contextmanager
def reported_to(reporter: Reporter) -> Iterator[None]:
    """Send what this thread says to a reporter."""
    before: Reporter = getattr(_of_thread, "reporter", _print)
    _of_thread.reporter = reporter
    try:
        yield
    finally:
        _of_thread.reporter = before


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step, and say how many seconds it took once it is done (nothing more if it fails)."""
    say(f"{title} ...")
    started = time.monotonic()
    yield
    say(f"{title}: done in {time.monotonic() - started:.1f} s")


def _print(line: str) -> None:
    print(f"[real parts] {line}", file=sys.stderr, flush=True)

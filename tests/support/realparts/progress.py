"""Tells the person at the terminal what a slow step is doing. In: one line. Out: standard error, at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(line: str) -> None:
    """Print one line at once, so that a build of minutes never looks like a hang."""
    print(f"[real parts] {line}", file=sys.stderr, flush=True)


@contextmanager
def step(title: str) -> Iterator[None]:
    """Announce a step, and say how many seconds it took once it is done (nothing more if it fails)."""
    say(f"{title} ...")
    started = time.monotonic()
    yield
    say(f"{title}: done in {time.monotonic() - started:.1f} s")

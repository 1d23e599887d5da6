"""What goes on by itself while a fault lasts: a thing done again and again, a process that gets little of the machine.

In: an act, or processes. Out: context managers that end it, and leave every process running. Called by ``breaking``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from realparts.processes import ManagedProcess

SLICE_SECONDS = 0.1


@contextmanager
def repeated(act: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do something again and again; it gets the event that asks it to end, to wait with."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            act(stop)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(15)


@contextmanager
def starved(processes: Sequence[ManagedProcess], share: float) -> Iterator[None]:
    """Let processes run for a ``share`` of each tenth of a second, as a container's CPU limit does."""

    def one_slice(stop: threading.Event) -> None:
        for process in processes:
            process.pause()
        stop.wait(SLICE_SECONDS * (1 - share))
        for process in processes:
            process.resume()
        stop.wait(SLICE_SECONDS * share)

    try:
        with repeated(one_slice):
            yield
    finally:
        for process in processes:
            process.resume()

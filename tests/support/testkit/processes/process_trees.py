"""The processes below one, and whether they are gone: for tests of programs that must leave nothing running.

In: a process id. Out: processes, distinguished from later ones of the same id. Called by the end-to-end tests.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from waiting import TooLate, until

ENDING_SECONDS = 30.0
"""What ends with its parent needs a moment."""


class Process(NamedTuple):
    """One process, distinguished from a later one of the same id by when it began."""

    id: int
    began: str


def parent_and_process(entry: Path) -> tuple[int, Process] | None:
    """None for one that has ended, also while its status was not read: not every machine's first process asks soon."""
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    if fields[0] in "ZX":
        return None
    return int(fields[1]), Process(int(entry.name), fields[19])  # proc(5): fields 4 and 22


def children_of(process: int) -> set[Process]:
    """All processes below one, whatever groups and sessions they are in."""
    found = [found for e in Path("/proc").iterdir() if e.name.isdigit() and (found := parent_and_process(e))]
    below: set[Process] = set()
    ids = {process}
    while more := {child for parent, child in found if parent in ids and child.id not in ids}:
        below |= more
        ids |= {child.id for child in more}
    return below


def still_runs(process: Process) -> bool:
    found = parent_and_process(Path(f"/proc/{process.id}"))
    return found is not None and found[1] == process


def left_running(processes: Collection[Process]) -> set[Process]:
    """Those that still run after the moment that it takes them to end."""
    with suppress(TooLate):
        until(lambda: not any(map(still_runs, processes)), ENDING_SECONDS)
    return {process for process in processes if still_runs(process)}

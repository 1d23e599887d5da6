"""Freeze a process as a hypervisor does, so that no signal wakes it: the freezer of cgroup v1.

A quarantine agent releases a process that SIGSTOP has stopped without an order, so that is no freeze next to an agent.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

ROOT = Path("/sys/fs/cgroup/freezer")


def unavailable() -> str:
    """Why nothing can be frozen here; empty if it can."""
    return "" if os.access(ROOT / "cgroup.procs", os.W_OK) else "it takes root, and the freezer of cgroup v1"


class Freezer:
    """Freezes whichever process ``pid`` names at that moment. A context manager: thawed on leaving."""

    def __init__(self, pid: Callable[[], int]) -> None:
        self._pid = pid
        self._group = ROOT / f"bellwether-{os.getpid()}"

    def freeze(self) -> None:
        """Stop it until ``thaw``."""
        (self._group / "cgroup.procs").write_text(str(self._pid()))
        (self._group / "freezer.state").write_text("FROZEN")

    def thaw(self) -> None:
        """Let it go on."""
        (self._group / "freezer.state").write_text("THAWED")

    def __enter__(self) -> Freezer:
        self._group.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.thaw()
        for pid in (self._group / "cgroup.procs").read_text().split():
            (ROOT / "cgroup.procs").write_text(pid)
        self._group.rmdir()

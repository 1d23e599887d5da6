"""Namespaces for processes, mounts and network, and the one process whose end is theirs. Called by ``lifecycle``.

In: a command that becomes process 1 inside. Out: a way to run more commands inside, and to end it all: the kernel then
kills every process in there, and with the last one the mounts, interfaces and packet filters are gone too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from realparts import guardian
from waiting import until

END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Running ones, known by the host's process that holds them; ``ticks`` tells it from a later one of its id."""

    pid: int
    ticks: str

    @classmethod
    def start(cls, command: Sequence[str | Path], log: Path) -> Namespaces:
        """Start the command as process 1 of new ones; its output goes to the log. It outlives the caller."""
        separate = ["unshare", "--pid", "--mount", "--net", "--fork", "--kill-child", "--mount-proc"]
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*separate, "--propagation", "private", *(str(part) for part in command)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return cls(process.pid, guardian.start_ticks(process.pid) or "")

    @classmethod
    def read(cls, file: Path) -> Namespaces | None:
        """Those that a file tells of (see ``write``); None if there is no such file, or nothing sensible in it."""
        try:
            pid, ticks = file.read_text().split()
            return cls(int(pid), ticks)
        except (OSError, ValueError):
            return None

    def write(self, file: Path) -> None:
        """Note them down for later callers."""
        file.write_text(f"{self.pid} {self.ticks}\n")

    @property
    def alive(self) -> bool:
        """Whether they still exist. A holder that has ended counts as gone, though its parent has not asked how."""
        with contextlib.suppress(ChildProcessError):  # a child that has ended stays until its status is read
            os.waitpid(self.pid, os.WNOHANG)
        if guardian.start_ticks(self.pid) != self.ticks:
            return False
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def inside(self, *command: str | Path) -> list[str]:
        """The command line that runs a command in them, from the host's folder and with the host's files."""
        place = f"/proc/{self.pid}/ns"
        # The holder is outside the processes' namespace itself; only its children are in.
        enter = ["nsenter", f"--mount={place}/mnt", f"--net={place}/net", f"--pid={place}/pid_for_children"]
        return [*enter, "--", *(str(part) for part in command)]

    def end(self) -> None:
        """End everything inside at once, and wait until it is gone. Raises TooLate when it is not."""
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)  # its child is killed with it, and as process 1 takes all others along
        until(lambda: not self.alive, END_SECONDS, f"process {self.pid}, which holds the node, ends")

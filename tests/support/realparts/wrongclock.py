"""A wall clock that is wrong on request, for the processes started under it: a C shim and its control file.

In: a number of seconds. Out: environment variables to start a prober with. A clock may jump while the process runs, as
one does that is set by hand.
"""

from __future__ import annotations

import struct
from pathlib import Path

from realparts import shims

SOURCE = Path(__file__).parent / "wrongclock.c"


class WrongClock:
    """The wall clock of every process that was started with ``environment``; right at first."""

    def __init__(self, control: Path) -> None:
        control.parent.mkdir(parents=True, exist_ok=True)
        self._control = control.resolve()
        self.set(0)

    def set(self, seconds: int) -> None:
        """From now on the clock is so far ahead, or behind when below 0; 0 makes it right again."""
        # In place: the processes have this very file mapped.
        with self._control.open("r+b" if self._control.exists() else "w+b", buffering=0) as control:
            control.write(struct.pack("=q", seconds))

    def environment(self) -> dict[str, str]:
        """What a process must be started with to see it. Raises DownloadFailed without a C compiler."""
        return {
            shims.PRELOAD: str(shims.compiled(SOURCE)),
            "BELLWETHER_WRONGCLOCK_CONTROL": str(self._control),
        }

"""A network path that is broken for one process alone: a C shim that sends its connections elsewhere, and its control.

In: which ports of 127.0.0.1 lead elsewhere for it, and where to. Out: environment variables to
start a prober with. Others reach the same ports as ever: it is this vantage's own path that is broken.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from realparts import shims

SOURCE = Path(__file__).parent / "detour.c"
MOST_PORTS = 64


class Detour:
    """The paths of every process that was started with ``environment``; whole at first."""

    def __init__(self, control: Path) -> None:
        control.parent.mkdir(parents=True, exist_ok=True)
        self._control = control.resolve()
        self.clear()

    def send(self, ways: Mapping[int, int]) -> None:
        """From the next connection on, those to a port go to the port that it is mapped to. ValueError for too many."""
        if len(ways) > MOST_PORTS:
            raise ValueError(f"at most {MOST_PORTS} ports can lead elsewhere, not {len(ways)}")
        numbers = [number for way in ways.items() for number in way]
        numbers = [len(ways), *numbers, *[0] * (2 * MOST_PORTS - len(numbers))]
        # In place: the processes have this very file mapped.
        with self._control.open("r+b" if self._control.exists() else "w+b", buffering=0) as control:
            control.write(struct.pack(f"={len(numbers)}i", *numbers))

    def clear(self) -> None:
        """Make every path whole again."""
        self.send({})

    def environment(self) -> dict[str, str]:
        """What a process must be started with to take these paths. Raises DownloadFailed without a C compiler."""
        return {
            shims.PRELOAD: str(shims.compiled(SOURCE)),
            "BELLWETHER_DETOUR_CONTROL": str(self._control),
        }

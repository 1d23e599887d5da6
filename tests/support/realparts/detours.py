"""A network path that is broken for one process alone: a C shim that sends its connections elsewhere, and its control.

In: which ports of 127.0.0.1 are broken for it, and where connections to them end instead. Out: environment variables to
start a prober with. Others reach the same ports as ever: it is this vantage's own path that is broken.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
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

    def send(self, ports: Collection[int], astray: int) -> None:
        """From the next connection on, those to ``ports`` go to the port ``astray``. ValueError for too many ports."""
        if len(ports) > MOST_PORTS:
            raise ValueError(f"at most {MOST_PORTS} ports can be sent astray, not {len(ports)}")
        numbers = [astray, len(ports), *ports, *[0] * (MOST_PORTS - len(ports))]
        # In place: the processes have this very file mapped.
        with self._control.open("r+b" if self._control.exists() else "w+b", buffering=0) as control:
            control.write(struct.pack(f"={MOST_PORTS + 2}i", *numbers))

    def clear(self) -> None:
        """Make every path whole again."""
        self.send((), 0)

    def environment(self) -> dict[str, str]:
        """What a process must be started with to take these paths. Raises DownloadFailed without a C compiler."""
        return {
            shims.PRELOAD: str(shims.compiled(SOURCE)),
            "BELLWETHER_DETOUR_CONTROL": str(self._control),
        }

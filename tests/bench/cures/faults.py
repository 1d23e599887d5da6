"""The faults of ``bench-cures``: what each does to the sick broker, and what must be built beneath it.

In: a ``Stage``. Out: the fault has begun, or is over. Called by ``__main__``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from realparts.slowdisk import SlowDisk

if TYPE_CHECKING:
    from cures.stage import Stage


@dataclass(frozen=True, slots=True)
class Fault:
    """``payload`` in bytes a record, ``device`` whether the broker lies on a device that the kernel can throttle,
    ``directories`` how many log directories it has, of which the first one is slow.
    """

    name: str
    begin: Callable[[Stage], None]
    payload: int = 200
    device: bool = False
    directories: int = 1


def _writes(milliseconds: int) -> Callable[[Stage], None]:
    return lambda stage: stage.slow_disk.set(milliseconds)


def _device(bounded: int | None, **limits: int) -> Callable[[Stage], None]:
    def begin(stage: Stage) -> None:
        stage.device.bound(bounded)
        stage.device.throttle(limits)

    return begin


FAULTS = {
    fault.name: fault
    for fault in (
        Fault("unreachable", lambda stage: stage.proxy.cut(stage.sick.proxy_name)),
        Fault("blackholed", lambda stage: stage.swallow()),
        Fault("writes-20ms", _writes(20)),
        Fault("writes-80ms", _writes(80)),
        Fault("writes-200ms", _writes(200)),
        Fault("writes-500ms", _writes(500)),
        Fault("writes-stalled", _writes(SlowDisk.STALLED)),
        Fault("one-directory-80ms", _writes(80), directories=2),
        Fault("reads-500ms", lambda stage: stage.slow_disk.set(500, "read")),
        Fault("device-400kB", _device(8, write_bps=400_000), payload=10_000, device=True),
        Fault("device-20-writes", _device(None, write_iops=20), device=True),
        Fault("device-20-writes-bounded", _device(1, write_iops=20), device=True),
    )
}


def end(stage: Stage) -> None:
    """Undo whatever fault there is."""
    stage.unswallow()
    stage.proxy.mend(stage.sick.proxy_name)
    if stage.fault.device:
        stage.device.throttle({})
        stage.device.bound(None)
    else:
        stage.slow_disk.clear()

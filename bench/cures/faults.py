"""The faults of ``bench-cures``: what each does to the sick broker, and what must be built beneath it.

In: a ``Stage``. Out: the fault has begun, or is over. Called by ``__main__``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cures.freezer import Freezer
from cures.narrow_path import NarrowPath
from faults.busywork import repeated
from realparts.blackholes import Blackhole
from realparts.slowdisk import SlowDisk

if TYPE_CHECKING:
    from cures.stage import Stage


@dataclass(frozen=True, slots=True)
class Fault:
    """``payload`` in bytes a record, ``device`` whether the broker lies on a device that the kernel can throttle,
    ``directories`` how many log directories it has, of which the first one is slow. ``freezes``: it takes the freezer,
    ``pair``: a way of the proxy between it and another broker.
    """

    name: str
    begin: Callable[[Stage], None]
    payload: int = 200
    device: bool = False
    directories: int = 1
    freezes: bool = False
    pair: bool = False


def _swallow(stage: Stage) -> None:
    """Drop every packet of a new connection to its external address."""
    stage.proxy.cut(stage.sick.proxy_name)
    stage.undo.enter_context(Blackhole(int(stage.sick.external.rpartition(":")[2])))


def _freezing(frozen_seconds: float, of_seconds: float) -> Callable[[Stage], None]:
    """Freeze its process again and again, each time for less than Kafka needs to fence it."""

    def begin(stage: Stage) -> None:
        freezer = stage.undo.enter_context(Freezer(lambda: stage.sick.process.pid))

        def freeze(stop: threading.Event) -> None:
            if stage.sick.process.alive:
                freezer.freeze()
            stop.wait(frozen_seconds)
            freezer.thaw()
            stop.wait(of_seconds - frozen_seconds)

        stage.undo.enter_context(repeated(freeze))

    return begin


def _narrow(bytes_per_second: float) -> Callable[[Stage], None]:
    """Give its external listener so little bandwidth, for all connections together."""

    def begin(stage: Stage) -> None:
        name = stage.sick.proxy_name
        target = int(stage.proxy.upstream(name).rpartition(":")[2])
        path = stage.undo.enter_context(NarrowPath(target, bytes_per_second))
        stage.proxy.lead(name, f"127.0.0.1:{path.port}")

    return begin


def _part(stage: Stage) -> None:
    """Cut it and another broker off from each other; everyone else reaches both."""
    for way in stage.kafka.ways_between:
        stage.undo.callback(stage.proxy.mend, way)
        stage.proxy.cut(way)


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
        Fault("blackholed", _swallow),
        Fault("narrow-50kB", _narrow(50_000), payload=10_000),
        Fault("frozen-5-of-9", _freezing(5, 9), freezes=True),
        Fault("frozen-6-of-11", _freezing(6, 11), freezes=True),
        Fault("pair-apart", _part, pair=True),
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
    stage.undo.close()
    stage.proxy.mend(stage.sick.proxy_name)
    if stage.fault.device:
        stage.device.throttle({})
        stage.device.bound(None)
    else:
        stage.slow_disk.clear()

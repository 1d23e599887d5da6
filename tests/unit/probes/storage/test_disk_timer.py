"""A disk operation on a thread of its own: its samples, and for how long one has not ended."""

from __future__ import annotations

import threading

from bellwether.adapters.clocks import SystemClock
from bellwether.probes.storage.disk_timer import DiskTimer
from bellwether.probes.storage.write_latency import Sample
from waiting import limit, until


def test_hanging_operation_is_visible_and_gives_its_sample_later() -> None:
    go_on, hanging = threading.Event(), threading.Event()

    def operate() -> Sample:
        hanging.set()
        go_on.wait(limit(60))
        return Sample(0.5)

    timer = DiskTimer("disk", operate, lambda _sample: 0.01, SystemClock())
    assert timer.hanging_seconds() == 0.0
    timer.start()
    assert hanging.wait(limit(30))
    until(lambda: timer.hanging_seconds() > 0)
    assert timer.ended(0.01) is None
    go_on.set()
    sample = timer.ended(limit(30))
    assert sample is not None
    assert sample.seconds == 0.5
    assert timer.alive()
    timer.stop(limit(10))
    assert not timer.alive()

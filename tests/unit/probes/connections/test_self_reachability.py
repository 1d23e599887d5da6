from __future__ import annotations

import threading
import time

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import SelfReachability
from bellwether.core.signals import Reading, Signal
from bellwether.probes.connections.connection_activity import ConnectionSample
from bellwether.probes.connections.self_reachability import SelfReachabilityProbe, measure_once
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.messages import assert_wording
from waiting import until


class Quick(SelfReachability):
    period_seconds = 0.01  # type: ignore[assignment]
    idle_after_seconds = 0.1  # type: ignore[assignment]


class Patient(Quick):
    idle_after_seconds = 3600


QUICK = Quick()
HEARD = ConnectionSample(connections=1, last_received_seconds=0.0)


class Table:
    kind = "scripted"

    def __init__(self, sample: ConnectionSample) -> None:
        self.shows = sample
        self.closed = threading.Event()

    def listen(self, seconds: float) -> None:
        time.sleep(seconds)

    def sample(self) -> ConnectionSample:
        return self.shows

    def close(self) -> None:
        self.closed.set()


class Bench:
    def __init__(self) -> None:
        self.table = Table(HEARD)
        self.posts: list[Signal] = []
        self.metrics = ProbeMetrics()
        self.probe = SelfReachabilityProbe(
            1, "broker-1", 9094, self.table, QUICK, self.posts.append, SystemClock(), self.metrics
        )
        self.probe.start()

    def readings(self) -> list[Reading]:
        return [post.reading for post in self.posts]


def test_each_change_is_posted_once_and_looks_between_are_not() -> None:
    bench = Bench()
    until(lambda: bench.readings() == [Reading.PASSING])
    bench.table.shows = ConnectionSample(connections=1)
    until(lambda: bench.readings() == [Reading.PASSING, Reading.FAILING])
    assert_wording(bench.posts[-1].message)
    bench.table.shows = HEARD
    until(lambda: len(bench.posts) == 3)
    time.sleep(0.1)
    assert bench.readings() == [Reading.PASSING, Reading.FAILING, Reading.PASSING]
    assert bench.metrics.registry.get_sample_value("bellwether_probe_outside_connections", {"broker": "1"}) == 1
    bench.probe.stop()
    assert bench.table.closed.is_set()
    assert not bench.probe.alive()


def test_the_present_reading_is_posted_again_on_request() -> None:
    bench = Bench()
    until(lambda: len(bench.posts) == 1)
    bench.probe.repeat()
    until(lambda: len(bench.posts) == 2)
    bench.probe.stop()


def test_another_patience_counts_from_the_next_look_on() -> None:
    bench = Bench()
    until(lambda: bench.readings() == [Reading.PASSING])
    bench.probe.configure(Patient())
    bench.table.shows = ConnectionSample(connections=1)
    time.sleep(0.3)
    assert bench.readings() == [Reading.PASSING]
    bench.probe.configure(QUICK)
    until(lambda: bench.readings()[-1] is Reading.FAILING)
    bench.probe.stop()


def test_one_measurement_ends_with_first_word_or_with_patience() -> None:
    assert measure_once(Table(HEARD), QUICK, SystemClock())[1] is Reading.PASSING
    assert measure_once(Table(ConnectionSample()), QUICK, SystemClock())[1] is Reading.FAILING
    assert measure_once(Table(ConnectionSample(blind="only new ones")), QUICK, SystemClock())[1] is Reading.UNKNOWN
    assert measure_once(Table(ConnectionSample(listening=False)), QUICK, SystemClock())[1] is Reading.UNKNOWN
    assert measure_once(Table(ConnectionSample(problem="refused")), QUICK, SystemClock())[1] is Reading.UNKNOWN

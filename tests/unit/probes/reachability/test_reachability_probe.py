from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import Reachability
from bellwether.core.signals import Reading, Signal
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.broker_watch import BrokerAddress
from bellwether.probes.reachability.reachability_probe import ReachabilityProbe
from bellwether.probes.reachability.round_scheduler import Rounds, ScheduledRound, WorkerPool, WorkItem
from bellwether.simulation.memory_world import ManualClock
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from waiting import until


class Fast(Reachability):
    period_seconds = 0.05  # type: ignore[assignment]
    timeout_seconds = 1


class Unhurried(Reachability):
    timeout_seconds = 1


FAST = Fast()


class Network:
    """Brokers that answer, refuse, or say nothing until asked no more; ``moved`` changes what they advertise."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.silent: set[str] = set()
        self.trouble = False
        self.moved: dict[int, str] = {}
        self.asked: set[str] = set()
        self.asks = 0
        self.swallowed: list[str] = []
        self.over = threading.Event()

    def ask(self, address: str, broker_id: int, _timeout_seconds: float, _padding: int = 0) -> ProbeAnswer:
        self.asked.add(address)
        self.asks += 1
        if self.trouble:
            raise Transient("too many open files")
        if address in self.silent:
            self.swallowed.append(address)
            self.over.wait()  # it blocks the waiting thread until the test is over: looking up a name obeys no timeout
        if address in self.refused:
            return ProbeAnswer(False, 0.001, "Connect", f"{address}: refused")
        return ProbeAnswer(True, 0.002, advertised={"EXTERNAL": self.moved.get(broker_id, f"out-{broker_id}:1")})


class People:
    """The roster."""

    def __init__(self, *brokers: int) -> None:
        self.brokers = brokers
        self.away = False

    def targets(self) -> Mapping[int, BrokerAddress]:
        if self.away:
            raise Terminal("refused")
        return {b: BrokerAddress(f"in-{b}:1") for b in self.brokers}


class Bench:
    def __init__(self, clock: Clock | None = None, settings: Reachability = FAST) -> None:
        self.network = Network()
        self.roster = People(1, 2, 3)
        self.posts: list[Signal] = []
        self.forgotten: list[int] = []
        self.probe = ReachabilityProbe(
            "here",
            self.network,
            settings,
            self.posts.append,
            self.forgotten.append,
            clock or SystemClock(),
            ProbeMetrics(),
        )

    def last(self) -> dict[int, tuple[Reading, Reading]]:
        return {s.broker: (s.reading, s.control) for s in self.posts}


WELL = (Reading.PASSING, Reading.PASSING)
OUTSIDE_BAD = (Reading.FAILING, Reading.PASSING)


@pytest.fixture
def bench(quick_harm: None) -> Iterator[Bench]:
    bench = Bench()
    bench.probe.refresh(bench.roster)
    until(lambda: bench.last() == dict.fromkeys((1, 2, 3), WELL))
    yield bench
    bench.network.over.set()
    bench.probe.stop()


def test_each_broker_is_posted_once_while_nothing_changes(bench: Bench) -> None:
    asks = bench.network.asks
    until(lambda: bench.network.asks > asks + 60)
    assert len(bench.posts) == 3


def test_the_external_address_is_learned_from_the_broker_and_followed(bench: Bench) -> None:
    assert "out-2:1" in bench.network.asked
    bench.network.moved[2] = "elsewhere-2:1"
    until(lambda: "elsewhere-2:1" in bench.network.asked)
    bench.network.refused.add("elsewhere-2:1")
    until(lambda: bench.last()[2] == OUTSIDE_BAD)


def test_a_silent_broker_is_failing_and_delays_no_other(bench: Bench) -> None:
    bench.network.silent.add("out-1:1")
    bench.network.refused.add("out-2:1")
    until(lambda: bench.last()[2] == OUTSIDE_BAD)
    until(lambda: bench.last()[1] == OUTSIDE_BAD)
    assert bench.last()[3] == WELL


def test_a_repaired_broker_passes_again(bench: Bench) -> None:
    bench.network.refused.add("out-2:1")
    until(lambda: bench.last()[2] == OUTSIDE_BAD)
    bench.network.refused.clear()
    until(lambda: bench.last()[2] == WELL)


def test_the_vantages_own_trouble_is_never_passing(bench: Bench) -> None:
    bench.network.trouble = True
    until(lambda: all(reading is Reading.UNKNOWN for reading, _ in bench.last().values()))


def test_dead_broker_is_kept_only_with_health_object(bench: Bench) -> None:
    bench.roster.brokers = (1, 2)
    bench.probe.refresh(bench.roster)
    bench.probe.refresh(bench.roster, frozenset({1, 2, 3}))
    assert set(bench.probe.states()) == {1, 2, 3}
    bench.probe.refresh(bench.roster, frozenset({1, 2}))
    assert set(bench.probe.states()) == {1, 2}
    assert bench.forgotten == [3]


def test_a_new_broker_is_followed(bench: Bench) -> None:
    bench.roster.brokers = (1, 2, 3, 4)
    bench.probe.refresh(bench.roster, frozenset())
    until(lambda: bench.last().get(4) == WELL)


def test_a_roster_that_cannot_be_read_changes_nothing(bench: Bench) -> None:
    bench.roster.away = True
    bench.probe.refresh(bench.roster, frozenset())
    assert set(bench.probe.states()) == {1, 2, 3}
    assert bench.probe.alive()


def test_a_new_voice_tells_everything_again(bench: Bench) -> None:
    bench.probe.repeat()
    until(lambda: len(bench.posts) == 6)


class Stepped(Rounds):
    """Rounds on a logical clock and without a thread: they are looked at when the test says so."""

    def _start(self) -> None:
        self.waiting: dict[int, ScheduledRound] = {}


class SteppedBench(Bench):
    """Time passes in ``step``, in ticks; before the next one every question that has begun is answered or held."""

    def __init__(self, *brokers: int) -> None:
        self.clock = ManualClock()
        super().__init__(self.clock, Unhurried())
        self.roster.brokers = brokers
        self.questions = Recorded(self.clock)
        self.rounds = Stepped(self.questions, self.clock)
        self.probe._questions, self.probe._rounds = self.questions, self.rounds
        self.probe.refresh(self.roster)

    def step(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.1)):
            self.clock.advance(0.1)
            self.questions.tend()
            until(self._at_rest, every=0)
            self.rounds.run_due(self.rounds.waiting)

    def _at_rest(self) -> bool:
        begun = [question for question in self.questions.put_ones if question.began is not None]
        held = sum(not question.done for question in begun)
        lanes = self.questions._lanes - self.questions._held
        return held == len(self.network.swallowed) and (not lanes or len(begun) == len(self.questions.put_ones))


class Recorded(WorkerPool):
    """Questions that remember what was put."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.put_ones: list[WorkItem[Any]] = []

    def put(self, question: WorkItem[Any]) -> None:
        self.put_ones.append(question)
        super().put(question)


@pytest.mark.slow
def test_three_hundred_silent_brokers_delay_no_other() -> None:
    bench = SteppedBench(*range(1, 361))
    bench.network.silent = {f"out-{n}:1" for n in range(1, 301)}
    bench.step(8)
    assert bench.last() == {n: OUTSIDE_BAD if n <= 300 else WELL for n in range(1, 361)}
    bench.network.refused.add("out-350:1")
    bench.step(2.5)
    assert bench.last()[350] == OUTSIDE_BAD
    bench.network.over.set()


def test_an_unsent_request_is_not_a_brokers_failure() -> None:
    """A process that cannot keep up asks less often; it does not call the brokers silent that it did not ask."""
    bench = SteppedBench(1, 2, 3)
    bench.questions._lanes = 0
    bench.step(60)
    assert bench.posts == []
    assert not bench.probe.alive()
    bench.questions._lanes = 4
    bench.step(8)
    assert bench.last() == dict.fromkeys((1, 2, 3), WELL)


def test_process_short_of_cpu_does_not_call_broker_silent(bench: Bench) -> None:
    bench.network.silent.add("out-1:1")
    bench.probe._rounds.__class__ = type(
        "Starved", (Rounds,), {"late_seconds": property(lambda _: time.monotonic() * 1000)}
    )
    until(lambda: bench.last()[1][0] is Reading.UNKNOWN)
    assert "too little CPU" in bench.posts[-1].message
    assert bench.last()[2] == WELL

from __future__ import annotations

import threading
from datetime import UTC, datetime

from bellwether.adapters.clocks import SystemClock
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.ports.clock import jittered
from bellwether.ports.errors import Transient
from bellwether.probes.outbox import Outbox
from waiting import limit, until


def signal(broker: int, message: str = "", source: str = "s") -> Signal:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return Signal(broker, SignalType.STORAGE_LATENCY, source, Reading.PASSING, now, message=message)


class Receiver:
    def __init__(self) -> None:
        self.written: list[tuple[int, str]] = []
        self.forgotten: list[tuple[int, str]] = []
        self.refused: set[int] = set()
        self.refusals = 0
        self.slow = threading.Event()
        self.writing = threading.Event()
        self.go_on = threading.Event()

    def write(self, signal: Signal) -> None:
        if self.slow.is_set():
            self.writing.set()
            self.go_on.wait(limit(30))
        if signal.broker in self.refused:
            self.refusals += 1
            raise Transient("away")
        self.written.append((signal.broker, signal.message))

    def forget(self, broker: int, source: str) -> None:
        self.forgotten.append((broker, source))


def made(receiver: Receiver) -> Outbox:
    outbox = Outbox(receiver, SystemClock(), first_pause_seconds=0.05, longest_pause_seconds=0.1)
    outbox.start()
    return outbox


def test_only_last_word_is_written_when_receiver_is_back() -> None:
    receiver = Receiver()
    receiver.refused.add(1)
    outbox = made(receiver)
    for text in ("a", "b", "c"):
        outbox.post(signal(1, text))
    posted = receiver.refusals
    until(lambda: receiver.refusals > posted + 1)  # the last of them began after the last word had come
    receiver.refused.clear()
    until(lambda: receiver.written == [(1, "c")])
    outbox.post(signal(2, "x"))
    until(lambda: len(receiver.written) > 1)
    outbox.stop()
    assert receiver.written == [(1, "c"), (2, "x")]


def test_one_brokers_trouble_holds_back_no_other_brokers_news() -> None:
    receiver = Receiver()
    receiver.refused.add(1)
    outbox = made(receiver)
    outbox.post(signal(1))
    outbox.post(signal(2))
    until(lambda: receiver.written == [(2, "")])
    outbox.stop()


def test_a_word_that_came_during_a_failing_write_wins() -> None:
    receiver = Receiver()
    receiver.refused.add(1)
    receiver.slow.set()
    outbox = made(receiver)
    outbox.post(signal(1, "old"))
    until(receiver.writing.is_set)
    outbox.post(signal(1, "new"))
    receiver.slow.clear()
    receiver.go_on.set()
    until(lambda: receiver.refusals > 0)
    receiver.refused.clear()
    until(lambda: bool(receiver.written))
    assert receiver.written == [(1, "new")]
    outbox.stop()


def test_forgetting_replaces_undelivered_word_and_stopping_delivers_what_is_left() -> None:
    receiver = Receiver()
    outbox = Outbox(receiver, SystemClock())
    outbox.post(signal(1))
    outbox.forget(1, "s")
    outbox.post(signal(2))
    outbox.start()
    outbox.stop()
    assert (receiver.forgotten, receiver.written) == ([(1, "s")], [(2, "")])


def test_probers_that_failed_together_do_not_come_back_together() -> None:
    receiver, pauses = Receiver(), []

    def spread(seconds: float) -> float:
        pauses.append(seconds)
        return jittered(seconds)

    receiver.refused.add(1)
    outbox = Outbox(receiver, SystemClock(), first_pause_seconds=0.01, longest_pause_seconds=0.02, spread=spread)
    outbox.start()
    outbox.post(signal(1))
    until(lambda: pauses[:3] == [0.01, 0.02, 0.02])
    outbox.stop()


def test_a_cleared_outbox_tells_nothing() -> None:
    receiver = Receiver()
    outbox = Outbox(receiver, SystemClock())
    outbox.post(signal(1))
    outbox.clear()
    outbox.start()
    outbox.stop()
    assert receiver.written == []


def test_every_source_of_prober_has_last_word_of_its_own() -> None:
    receiver = Receiver()
    outbox = Outbox(receiver, SystemClock())
    outbox.post(signal(1, "old", "a"))
    outbox.post(signal(1, "kept", "b"))
    outbox.post(signal(1, "new", "a"))
    outbox.forget(1, "c")
    outbox.start()
    outbox.stop()
    assert sorted(receiver.written) == [(1, "kept"), (1, "new")]
    assert receiver.forgotten == [(1, "c")]

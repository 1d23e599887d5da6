"""A quarantine agent at its post: reads orders, holds and releases, gives its word, and releases at its own end."""

from __future__ import annotations

import errno
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.quarantine.agent import HoldOrder, OrderRead, ProcessState
from bellwether.core.settings.policy import Quarantine, QuarantineMode
from bellwether.core.signals import QUARANTINE_AGENT, Reading, Signal
from bellwether.ports.errors import Terminal, Transient
from bellwether.quarantine.agent_loop import TICK_SECONDS, QuarantineAgent
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import START, ManualClock
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemoryOrders, MemoryProcess
from waiting import until


@dataclass
class Post:
    """A quarantine agent in the pod of broker 1 of three, on a clock that a test moves."""

    clock: ManualClock = field(default_factory=ManualClock)
    orders: MemoryOrders = field(default_factory=MemoryOrders)
    said: list[Signal] = field(default_factory=list)
    leads: bool = True
    ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.process = MemoryProcess(MemoryCluster(), 1)
        self.agent = QuarantineAgent(
            1,
            "broker-1",
            self.process,
            self.orders,
            self.said.append,
            self.clock,
            leads=lambda: self.leads,
            ending=self.ending,
        )

    def run(self, seconds: float, *, renewing: bool = True) -> None:
        """Let time pass, with an operator that renews what it ordered, or one that does not."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self.clock.advance(TICK_SECONDS)
            if renewing and self.orders.command is not None and self.clock.monotonic() % 3 == 0:
                self.orders.command = replace(self.orders.command, renewal=self.clock.now())
            self.agent.reconcile()

    def order(self, number: int = 1) -> None:
        """The operator gives an order."""
        self.orders.command = HoldOrder(1, number, self.clock.now(), 600)

    def held(self) -> Post:
        """Up to the hold."""
        self.run(2)
        self.order()
        self.run(6)
        assert self.process.stopped
        return self


def test_it_obeys_an_order_and_its_end_and_says_so() -> None:
    post = Post().held()
    post.orders.command = None
    post.run(2)
    assert not post.process.stopped
    assert [s.reading for s in post.said] == [Reading.PASSING, Reading.FAILING, Reading.PASSING]
    assert [s.value for s in post.said] == [0.0, 1.0, 1.0]
    assert {s.type for s in post.said} == {QUARANTINE_AGENT}
    assert_wording(post.said[-1].message)


@pytest.mark.parametrize("away", [True, False], ids=["the API is away", "the operator is silent"])
def test_it_releases_when_it_loses_its_orders(away: bool) -> None:
    post = Post().held()
    post.orders.away = away
    post.run(EXPIRES_AFTER_SECONDS - 6, renewing=False)
    assert post.process.stopped
    post.run(8, renewing=False)
    assert not post.process.stopped


def test_a_restarted_agent_releases_the_broker_held_before() -> None:
    post = Post().held()
    post.process.keeper = False
    post.process.die()
    assert post.process.stopped, "no process was left to release it"
    again = QuarantineAgent(1, "broker-1", post.process, post.orders, post.said.append, post.clock)
    again.reconcile()
    assert not post.process.stopped
    post.clock.advance(3)
    post.order()
    for _ in range(20):
        post.clock.advance(1)
        again.reconcile()
    assert not post.process.stopped, "the order was not given to it"


def test_it_releases_at_its_own_end() -> None:
    post = Post().held()
    post.agent.stop()
    assert not post.process.stopped


def test_it_releases_when_its_policy_quarantines_no_more() -> None:
    post = Post().held()
    post.agent.configure(Quarantine(mode=QuarantineMode.OFF))
    post.run(1)
    assert not post.process.stopped
    post.order(2)
    post.run(10)
    assert not post.process.stopped


def test_it_releases_when_its_keeper_is_gone() -> None:
    post = Post().held()
    post.process.keeper = False
    post.run(1)
    assert not post.process.stopped


def test_a_failed_hold_is_reported_and_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post()
    tried = []

    def refuse() -> None:
        tried.append(post.clock.monotonic())
        raise Transient("cannot stop process 7: Operation not permitted")

    monkeypatch.setattr(post.process, "hold", refuse)
    post.run(2)
    post.order()
    post.run(20)
    assert len(tried) == 1
    assert post.said[-1].reading is Reading.PASSING
    assert "Operation not permitted" in post.said[-1].message


def test_its_signal_is_posted_on_news_and_on_request() -> None:
    post = Post()
    post.run(30)
    assert len(post.said) == 1
    assert post.said[0].since == START + timedelta(seconds=TICK_SECONDS)
    post.agent.repeat()
    post.run(1)
    assert len(post.said) == 2
    assert post.said[1].since - START < timedelta(seconds=32)


def test_thread_of_its_own_keeps_watch_and_releases_in_end() -> None:
    post = Post()
    post.process.stopped = True
    post.agent.start()
    until(lambda: not post.process.stopped)
    assert post.agent.alive()
    post.agent.stop()
    assert not post.agent.alive()


def test_a_defect_leaves_no_broker_held(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post().held()

    def broken() -> None:
        raise KeyError("a defect")

    monkeypatch.setattr(post.process, "state", broken)
    post.agent.start()
    until(lambda: not post.process.stopped)
    post.agent.stop()


def test_its_signal_is_exported_as_a_metric_on_each_change():
    post, metrics = Post(), ProbeMetrics()
    post.agent = QuarantineAgent(1, "broker-1", post.process, post.orders, post.said.append, post.clock, metrics)

    def signal() -> float | None:
        return metrics.registry.get_sample_value("bellwether_probe_reading", {"broker": "1"})

    post.run(2)
    assert signal() == 1
    post.held()
    assert signal() == 0
    post.orders.command = None
    post.run(2)
    assert signal() == 1


def test_unexpectedly_failing_release_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    post, tried = Post().held(), []
    release, state = post.process.release, post.process.state

    def scarce() -> None:
        tried.append(post.clock.monotonic())
        if len(tried) < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        release()

    def unseen() -> ProcessState:
        if not tried:
            raise OSError(errno.EMFILE, "Too many open files")
        return state()

    monkeypatch.setattr(post.process, "release", scarce)
    monkeypatch.setattr(post.process, "state", unseen)
    post.agent.start()
    until(lambda: not post.process.stopped)
    assert post.agent.alive()
    post.agent.stop()


def test_an_agent_on_standby_holds_no_broker() -> None:
    post = Post(leads=False)
    post.run(2)
    post.order()
    post.run(20)
    assert not post.process.stopped, "another quarantine agent reports of this broker: no status would show this hold"
    post.leads = True
    post.run(20)
    assert not post.process.stopped, "the order was another's to obey"
    post.order(2)
    post.run(8)
    assert post.process.stopped


def test_an_agent_whose_signals_are_lost_releases_its_broker() -> None:
    post = Post().held()
    post.leads = False
    post.run(EXPIRES_AFTER_SECONDS - 6)
    assert post.process.stopped, "a Lease that is renewed a moment late ends nothing"
    post.run(8)
    assert not post.process.stopped


def test_no_order_holds_for_longer_than_the_ceiling() -> None:
    post = Post()
    post.agent = QuarantineAgent(
        1, "broker-1", post.process, post.orders, post.said.append, post.clock, max_hold_seconds=30
    )
    post.held()
    post.run(20)
    assert post.process.stopped
    post.run(10)
    assert not post.process.stopped
    assert_wording(post.said[-1].message)


def test_agent_that_may_not_read_its_order_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post()
    post.run(2)

    def refused() -> OrderRead:
        raise Terminal("lacks the verb 'get' on leases")

    monkeypatch.setattr(post.orders, "read", refused)
    post.run(2)
    assert post.said[-1].reading == Reading.UNKNOWN
    assert_wording(post.said[-1].message)
    monkeypatch.undo()
    post.orders.away = True
    post.run(2)
    assert post.said[-1].reading is Reading.UNKNOWN, "nothing new is known"
    post.orders.away = False
    post.run(2)
    assert post.said[-1].reading is Reading.PASSING


def test_an_agent_that_may_not_signal_reports_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    post = Post()
    monkeypatch.setattr(post.process, "barred", True)
    monkeypatch.setattr(post.process, "remedy", lambda: "set runAsUser: 1000")
    post.run(2)
    wanted = "no permission to signal the broker's process: set runAsUser: 1000"
    assert (post.said[-1].reading, post.said[-1].message) == (Reading.UNKNOWN, wanted)


def test_ending_agent_releases_first_and_begins_no_hold() -> None:
    post = Post().held()
    post.ending.set()
    post.orders.away = True
    post.run(TICK_SECONDS)
    assert not post.process.stopped, "while others still tidy up, in as long a time as the API takes"
    post.orders.away = False
    post.order(2)
    post.run(20)
    assert not post.process.stopped

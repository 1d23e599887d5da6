"""What a agent does, turn by turn: holds only on orders that are being renewed, releases whenever it is not sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, MAX_HOLD_SECONDS, RENEW_SECONDS
from bellwether.core.quarantine.agent import (
    AgentAction,
    AgentState,
    HoldOrder,
    OrderRead,
    ProcessState,
    hold_failed,
    release_if_held,
    step,
)
from bellwether.core.signals import Reading
from bellwether.simulation.memory_world import START
from testkit.messages import assert_wording


def order(
    number: int = 1,
    renewal: int = 0,
    epoch: int = 1,
    limit: float = 600.0,
    duration: float = EXPIRES_AFTER_SECONDS,
) -> HoldOrder:
    """An order as it was renewed for the so-manieth time."""
    return HoldOrder(epoch, number, START + timedelta(seconds=renewal), limit, duration)


@dataclass
class Post:
    """A quarantine agent at work, and a process in its pod that does what it is asked."""

    watch: AgentState = field(default_factory=AgentState)
    process: ProcessState = ProcessState.RUNNING
    at: float = 1000.0
    ceiling: float = MAX_HOLD_SECONDS

    def reconcile(
        self, *reads: HoldOrder | OrderRead | None, seconds: float = 1.0, guarded: bool = True
    ) -> AgentAction:
        """Turns, one a second; what came of the last."""
        act = AgentAction.NOTHING
        for read in reads:
            self.at += seconds
            heard = OrderRead(read) if isinstance(read, HoldOrder) else read
            self.watch, act = step(self.watch, heard, self.process, self.at, self.ceiling, guarded=guarded)
            if act is AgentAction.HOLD:
                self.process = ProcessState.STOPPED
            if act is AgentAction.RELEASE:
                self.process = ProcessState.RUNNING
        return act

    def held(self, limit: float = 600.0) -> Post:
        """Up to the hold by order 1."""
        assert self.reconcile(OrderRead(), order(renewal=3, limit=limit)) is AgentAction.HOLD
        return self


def test_it_holds_once_an_order_appears_between_two_reads():
    post = Post()
    assert post.reconcile(OrderRead(), order()) is AgentAction.HOLD
    assert (post.watch.reading, post.watch.number) == (Reading.FAILING, 1)
    assert_wording(post.watch.message)
    assert post.reconcile(order(renewal=6)) is AgentAction.NOTHING, "once is enough"


def test_order_that_it_finds_after_gap_must_be_renewed():
    post = Post()
    post.reconcile(OrderRead(), None, None, None)
    assert post.reconcile(order(), order(), order()) is AgentAction.NOTHING, "who gave it may be dead by now"
    assert post.reconcile(order(renewal=3)) is AgentAction.HOLD


def test_an_order_from_before_the_agent_started_is_not_obeyed():
    post = Post()
    assert post.reconcile(order(), order(renewal=3), order(renewal=6)) is AgentAction.NOTHING
    assert (post.watch.reading, post.watch.number) == (Reading.PASSING, 1)
    assert_wording(post.watch.message)
    assert post.reconcile(order(2)) is AgentAction.HOLD, "the next one is its own"


def test_agent_starting_at_held_broker_releases_before_reading_orders():
    post = Post(process=ProcessState.STOPPED)
    assert post.reconcile(None) is AgentAction.RELEASE
    assert post.reconcile(None, order(), order(renewal=3)) is AgentAction.NOTHING, "the order was its forerunner's"
    assert post.watch.reading is Reading.PASSING


def test_broker_found_held_again_keeps_reason_of_last_order():
    post = Post().held()
    assert post.reconcile(OrderRead()) is AgentAction.RELEASE
    why, post.process = post.watch.message, ProcessState.STOPPED
    assert post.reconcile(OrderRead()) is AgentAction.RELEASE
    assert post.watch.message == why
    unknown = Post(process=ProcessState.STOPPED)
    assert unknown.reconcile(OrderRead()) is AgentAction.RELEASE
    assert_wording(unknown.watch.message)


@pytest.mark.parametrize(
    ("reads", "why"),
    [
        pytest.param([OrderRead()], "its order was withdrawn", id="no order any more"),
        pytest.param([order(2, 9)], "its order was withdrawn", id="another order"),
        pytest.param([order(1, 9, epoch=2)], "its order was withdrawn", id="another epoch's order of that number"),
        pytest.param([None] * 13, "no renewal of its order was seen for 12 s", id="the API is silent"),
        pytest.param([order(renewal=3)] * 13, "no renewal of its order was seen for 12 s", id="the operator is"),
    ],
)
def test_it_releases_when_it_loses_its_orders(reads: list[HoldOrder | OrderRead | None], why: str):
    post = Post().held()
    assert post.reconcile(*reads[:-1]) is AgentAction.NOTHING
    assert post.reconcile(reads[-1]) is AgentAction.RELEASE
    assert post.watch.message.endswith(f"released: {why}")
    assert (post.watch.reading, post.watch.number) == (Reading.PASSING, 1)


def test_renewals_keep_it_held_until_limit_that_it_counts_itself():
    post = Post().held(limit=60)
    renewals = [order(renewal=6 + i, limit=60) for i in range(59)]
    assert post.reconcile(*renewals) is AgentAction.NOTHING
    assert post.reconcile(order(renewal=99, limit=60)) is AgentAction.RELEASE
    assert "the limit" in post.watch.message


def test_no_order_holds_for_longer_than_the_agents_own_ceiling():
    post = Post(ceiling=30)
    assert post.reconcile(OrderRead(), order(renewal=3, limit=1e9)) is AgentAction.HOLD
    renewals = [order(renewal=6 + i, limit=1e9) for i in range(29)]
    assert post.reconcile(*renewals) is AgentAction.NOTHING
    assert post.reconcile(order(renewal=99, limit=1e9)) is AgentAction.RELEASE
    assert_wording(post.watch.message)
    assert post.reconcile(order(renewal=102, limit=1e9)) is AgentAction.NOTHING, "that order is done with"


def test_order_claiming_to_last_without_renewals_expires():
    """Neither a renewal time in the future nor a long duration keeps a broker held: only renewals that are seen."""
    post = Post()
    far = order(renewal=10**6, duration=86400)
    assert post.reconcile(OrderRead(), far) is AgentAction.HOLD
    assert post.reconcile(*[far] * 12) is AgentAction.NOTHING
    assert post.reconcile(far) is AgentAction.RELEASE
    assert_wording(post.watch.message)


def test_an_order_of_a_shorter_duration_expires_sooner():
    post = Post()
    assert post.reconcile(OrderRead(), order(renewal=3, duration=8)) is AgentAction.HOLD
    assert post.reconcile(*[order(renewal=3, duration=8)] * 8) is AgentAction.NOTHING
    assert post.reconcile(order(renewal=3, duration=8)) is AgentAction.RELEASE
    assert_wording(post.watch.message)


def test_it_does_not_hold_twice_by_one_order():
    post = Post().held()
    post.reconcile(OrderRead())
    assert post.reconcile(order(renewal=20), order(renewal=23), order(renewal=26)) is AgentAction.NOTHING
    assert post.reconcile(order(2, 30)) is AgentAction.HOLD


def test_an_older_epochs_order_is_none():
    post = Post()
    post.reconcile(OrderRead(), order(1, epoch=5))
    assert post.reconcile(order(2, 3, epoch=4), order(2, 6, epoch=4), order(2, 9, epoch=4)) is AgentAction.NOTHING
    held = Post().held()
    held.watch = release_if_held(held.watch, "for the test")[0]
    assert held.reconcile(order(1, 40, epoch=0)) is not AgentAction.HOLD


def test_it_does_not_hold_while_another_broker_is_held():
    post = Post()
    post.reconcile(OrderRead(), OrderRead(order(), others=2))
    assert (
        post.reconcile(OrderRead(order(renewal=3), others=2), OrderRead(order(renewal=6), others=2))
        is AgentAction.NOTHING
    )
    assert post.reconcile(order(renewal=9)) is AgentAction.HOLD


def test_it_does_not_hold_on_old_renewal():
    post = Post()
    post.process = ProcessState.BARRED
    post.reconcile(OrderRead(), order(renewal=3))
    post.process = ProcessState.RUNNING
    assert post.reconcile(None, None, order(renewal=3), seconds=3.0) is AgentAction.NOTHING
    assert post.reconcile(order(renewal=6)) is AgentAction.HOLD


@pytest.mark.parametrize(
    ("process", "reading", "act", "says"),
    [
        pytest.param(
            ProcessState.RUNNING,
            Reading.PASSING,
            AgentAction.NOTHING,
            "another process resumed it",
            id="woken by another",
        ),
        pytest.param(ProcessState.UNSEEN, Reading.UNKNOWN, AgentAction.NOTHING, "could only pause", id="woken unseen"),
        pytest.param(ProcessState.UNPROVEN, Reading.UNKNOWN, AgentAction.NOTHING, "not shown", id="woken unproven"),
        pytest.param(ProcessState.ABSENT, Reading.UNKNOWN, AgentAction.NOTHING, "cannot find", id="gone"),
    ],
)
def test_another_hand_ends_a_hold(process: ProcessState, reading: Reading, act: AgentAction, says: str):
    post = Post().held()
    post.process = process
    assert post.reconcile(order(renewal=6)) is act
    assert post.watch.reading is reading
    assert says in post.watch.message
    assert post.reconcile(order(renewal=9), order(renewal=12)) is AgentAction.NOTHING, "that order is done with"


def test_without_its_keeper_it_does_not_hold_a_broker():
    post = Post().held()
    assert post.reconcile(order(renewal=6), guarded=False) is AgentAction.RELEASE
    assert "watchdog" in post.watch.message


@pytest.mark.parametrize(
    ("process", "says"),
    [
        (ProcessState.ABSENT, "cannot find the broker's process"),
        (ProcessState.BARRED, "no permission to signal the broker's process"),
        (ProcessState.UNSEEN, "could only pause the broker's process, not shut it down"),
        (ProcessState.UNPROVEN, "is not shown to be the broker of these orders"),
    ],
)
def test_an_agent_that_cannot_hold_reports_it(process: ProcessState, says: str):
    post = Post(process=process)
    assert post.reconcile(OrderRead(), order(), order(renewal=3)) is AgentAction.NOTHING
    assert post.watch.reading is Reading.UNKNOWN
    assert says in post.watch.message


def test_hold_that_failed_is_not_tried_again_by_same_order():
    post = Post().held()
    post.watch, post.process = hold_failed(post.watch, "no such process"), ProcessState.RUNNING
    assert post.reconcile(order(renewal=6)) is AgentAction.NOTHING
    assert post.watch.number == 1
    assert post.watch.message.endswith("no such process")


def test_at_its_own_end_it_releases():
    post = Post().held()
    watch, act = release_if_held(post.watch, "the quarantine agent ends")
    assert act is AgentAction.RELEASE
    assert watch.held is None
    assert release_if_held(watch, "again")[1] is AgentAction.NOTHING


def test_an_order_holds_for_several_renewals():
    assert EXPIRES_AFTER_SECONDS / 2 >= 2 * RENEW_SECONDS, "one that is lost on the way must not end a quarantine"

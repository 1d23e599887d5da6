"""Quarantine agent: whether to hold or release the broker process, from its orders and its own clock.

Pure, so that every step can be tested without a process. In: the agent's state, the order that it read, the state of
the process, the time on its own monotonic clock. Out: the new state, and whether to hold or to release. Called by
the agent's loop several times per second.

Fail safe: it holds only by an order that it saw appear or being renewed, and releases in every doubt: no order, an
unreadable order, a limit, another process that interferes. No order can exceed two figures of the agent itself: how
long it goes without a renewal, and how long it holds at all. An order from before the agent started was given to
another agent process, which may have died with it: it is not obeyed, and a broker that is found held is released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, RENEW_SECONDS
from bellwether.core.signals import Reading


class ProcessState(StrEnum):
    """State of the broker process; ``ABSENT``: not found, or not unique; ``BARRED``: no permission to signal it;
    ``UNSEEN``: it runs, and which sockets are its may not be read, so that a shutdown could not be held; ``UNPROVEN``:
    it runs, and its log directories do not say that it is the broker of the agent's orders.
    """

    RUNNING = "Running"
    STOPPED = "Stopped"
    ABSENT = "Absent"
    BARRED = "Barred"
    UNSEEN = "Unseen"
    UNPROVEN = "Unproven"


class AgentAction(StrEnum):
    """What to do now."""

    NOTHING = "Nothing"
    HOLD = "Hold"
    RELEASE = "Release"


@dataclass(frozen=True, slots=True)
class HoldOrder:
    """An order as read. ``renewal`` is opaque: only a change of it matters.

    ``duration_seconds`` is how long it holds without a renewal, ``limit_seconds`` how long it asks to hold.
    """

    epoch: int
    number: int
    renewal: datetime
    limit_seconds: float
    duration_seconds: float = EXPIRES_AFTER_SECONDS

    @property
    def expires_seconds(self) -> float:
        """Seconds without a renewal after which it is not obeyed any more; a longer duration is not believed."""
        return min(self.duration_seconds, EXPIRES_AFTER_SECONDS)

    @property
    def name(self) -> tuple[int, int]:
        """Identity of the order."""
        return self.epoch, self.number


@dataclass(frozen=True, slots=True)
class OrderRead:
    """One read of the orders: the current one, or none. ``others`` is a broker that is held elsewhere."""

    command: HoldOrder | None = None
    others: int | None = None


@dataclass(frozen=True, slots=True)
class AgentState:
    """State of an agent. Times are monotonic seconds; ``advanced`` is when the order was last seen to appear or to be
    renewed, ``read_at`` when orders were last read.

    ``done`` is the order that is no longer obeyed, and ``why`` the reason.
    """

    read_at: float | None = None
    seen: HoldOrder | None = None
    advanced: float | None = None
    epoch: int = 0
    held: HoldOrder | None = None
    held_at: float = 0.0
    done: tuple[int, int] | None = None
    why: str = ""
    trouble: str = ""

    @property
    def reading(self) -> Reading:
        """Reading of the agent's signal: ready, holding, or unable to hold."""
        if self.held is not None:
            return Reading.FAILING
        return Reading.UNKNOWN if self.trouble else Reading.PASSING

    @property
    def number(self) -> int:
        """Number of the order that the signal is about; 0 for none."""
        if self.held is not None:
            return self.held.number
        return self.done[1] if self.done is not None else 0

    @property
    def message(self) -> str:
        """Message of the agent's signal."""
        if self.held is not None:
            return f"held by order {self.held.number} of epoch {self.held.epoch}"
        if self.trouble:
            return self.trouble
        if self.done is not None:
            return f"ready; order {self.done[1]} of epoch {self.done[0]}: {self.why}"
        return "ready"


def step(
    state: AgentState, read: OrderRead | None, process: ProcessState, at: float, ceiling: float, *, guarded: bool = True
) -> tuple[AgentState, AgentAction]:
    """One step at the monotonic second ``at``. ``read`` None: the orders could not be read.

    ``ceiling`` is the longest hold in seconds, whatever an order says; ``guarded``: the watchdog of the hold is
    running.
    """
    now = replace(state, trouble=_PROBLEMS.get(process, ""))
    if read is not None:
        now = replace(_after_read(now, read, at), read_at=at)
    if now.held is not None:
        return _while_held(now, read, process, at, ceiling, guarded)
    if process is ProcessState.STOPPED:
        text = "found held without an order, and released"
        return (now if now.done is not None else replace(now, done=(now.epoch, 0), why=text)), AgentAction.RELEASE
    if not _may_hold(now, read, process, at):
        return now, AgentAction.NOTHING
    return replace(now, held=now.seen, held_at=at), AgentAction.HOLD


def hold_failed(state: AgentState, why: str) -> AgentState:
    """The hold could not be carried out: the order has ended."""
    return state if state.held is None else _end(state, why)


def release_if_held(state: AgentState, why: str) -> tuple[AgentState, AgentAction]:
    """Release a held broker because the agent ends, or at the policy's request."""
    return (state, AgentAction.NOTHING) if state.held is None else (_end(state, why), AgentAction.RELEASE)


_PROBLEMS = {
    ProcessState.ABSENT: "cannot find the broker's process",
    ProcessState.BARRED: "no permission to signal the broker's process",
    ProcessState.UNSEEN: "could only pause the broker's process, not shut it down: its sockets cannot be read",
    ProcessState.UNPROVEN: "the broker's process is not shown to be the broker of these orders",
}


def _after_read(state: AgentState, read: OrderRead, at: float) -> AgentState:
    """An order that appears between two reads in short succession was written in between, by an operator that lives."""
    order = read.command
    if order is None or order.epoch < state.epoch:
        return replace(state, seen=None, advanced=None)
    if state.read_at is None:
        text = "the order is older than this quarantine agent, which ignores it"
        return replace(state, seen=order, epoch=order.epoch, done=order.name, why=text)
    if state.seen is None or state.seen.name != order.name:
        written_now = at - state.read_at <= RENEW_SECONDS
        return replace(state, seen=order, advanced=at if written_now else None, epoch=order.epoch)
    if state.seen.renewal != order.renewal:
        return replace(state, seen=order, advanced=at)
    return state


def _may_hold(state: AgentState, read: OrderRead | None, process: ProcessState, at: float) -> bool:
    """Whether to hold now: by an order read just now that is being renewed, while no other broker is held."""
    if process is not ProcessState.RUNNING or read is None or read.others is not None:
        return False
    if state.seen is None or state.seen.name == state.done or state.advanced is None:
        return False
    return at - state.advanced <= state.seen.expires_seconds / 2


def _while_held(
    state: AgentState, read: OrderRead | None, process: ProcessState, at: float, ceiling: float, guarded: bool
) -> tuple[AgentState, AgentAction]:
    """Whether the hold goes on, and what ends it."""
    ordered = state.held
    assert ordered is not None  # noqa: S101 - for the type checker
    expires = ordered.expires_seconds
    why = ""
    if process is ProcessState.ABSENT:
        return _end(state, "its process does not exist any more"), AgentAction.NOTHING
    if process in (ProcessState.RUNNING, ProcessState.UNSEEN, ProcessState.UNPROVEN):
        return _end(state, "another process resumed it"), AgentAction.NOTHING
    if read is not None and (state.seen is None or state.seen.name != ordered.name):
        why = "its order was withdrawn"
    elif state.advanced is None or at - state.advanced > expires:
        why = f"no renewal of its order was seen for {expires:.0f} s"
    elif at - state.held_at >= ordered.limit_seconds:
        why = f"it was held for {ordered.limit_seconds:.0f} s, the limit"
    elif at - state.held_at >= ceiling:
        why = f"it was held for {ceiling:.0f} s, the ceiling of this quarantine agent (--max-hold-seconds)"
    elif not guarded:
        why = "the watchdog of the hold is not running any more"
    return (_end(state, why), AgentAction.RELEASE) if why else (state, AgentAction.NOTHING)


def _end(state: AgentState, why: str) -> AgentState:
    done = state.held.name if state.held is not None else state.done
    return replace(state, held=None, done=done, why=f"released: {why}")

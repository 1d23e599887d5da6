"""Quarantine agent: whether to pause or release the broker process, from its orders and its own clock.

Pure, so that every step can be played without a process. In: what the warden knew, what it read of its orders, how the
process is, the time on its own monotonic clock. Out: what it knows now, and whether to pause or to release. Called by
``probes.wardens`` some times a second.

It pauses on an order alone that it saw renewed, by somebody who is at work at this moment, and releases whenever it is
not sure: no order, no news of one, a limit, another hand. An order that stood before the warden did was given to
another process, which may have died with it: it is not obeyed, and a broker that is found paused is released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS
from bellwether.core.signals import Reading


class ProcessState(StrEnum):
    """How the broker's process is; ``BARRED`` may not be signalled, ``ABSENT`` is not there, or one of several."""

    RUNNING = "Running"
    STOPPED = "Stopped"
    ABSENT = "Absent"
    BARRED = "Barred"


class AgentAction(StrEnum):
    """What to do now."""

    NOTHING = "Nothing"
    PAUSE = "Pause"
    RELEASE = "Release"


@dataclass(frozen=True, slots=True)
class PauseOrder:
    """An order as it was read. ``renewal`` is opaque: it matters only that it differs from the one before."""

    epoch: int
    number: int
    renewal: datetime
    limit_seconds: float

    @property
    def name(self) -> tuple[int, int]:
        """What tells it from every other order."""
        return self.epoch, self.number


@dataclass(frozen=True, slots=True)
class OrderRead:
    """One look for orders: the one that stands, or none. ``others`` names a broker that is paused elsewhere."""

    command: PauseOrder | None = None
    others: int | None = None


@dataclass(frozen=True, slots=True)
class AgentState:
    """What a warden knows. Times are monotonic seconds; ``advanced`` is when the order was last seen to be renewed.

    ``done`` is the order that is not to be obeyed any more, and ``why`` what became of it.
    """

    begun: bool = False
    seen: PauseOrder | None = None
    advanced: float | None = None
    epoch: int = 0
    paused: PauseOrder | None = None
    paused_at: float = 0.0
    done: tuple[int, int] | None = None
    why: str = ""
    trouble: str = ""

    @property
    def reading(self) -> Reading:
        """Its word: on watch, pausing, or unable."""
        if self.paused is not None:
            return Reading.FAILING
        return Reading.UNKNOWN if self.trouble else Reading.PASSING

    @property
    def number(self) -> int:
        """The order that the word is about; 0 for none."""
        if self.paused is not None:
            return self.paused.number
        return self.done[1] if self.done is not None else 0

    @property
    def message(self) -> str:
        """The word in a sentence."""
        if self.paused is not None:
            return f"paused by order {self.paused.number} of epoch {self.paused.epoch}"
        if self.trouble:
            return self.trouble
        if self.done is not None:
            return f"on watch; order {self.done[1]} of epoch {self.done[0]}: {self.why}"
        return "on watch"


def step(
    watch: AgentState, read: OrderRead | None, process: ProcessState, at: float, *, guarded: bool = True
) -> tuple[AgentState, AgentAction]:
    """One turn. ``read`` None: nothing was heard of orders; ``guarded``: the keeper that outlives us is at its post."""
    now = replace(watch, begun=watch.begun or read is not None, trouble=_TROUBLES.get(process, ""))
    if read is not None:
        now = _heard(now, read, at, first=not watch.begun)
    if now.paused is not None:
        return _over(now, read, process, at, guarded)
    if process is ProcessState.STOPPED:
        text = "found paused by nobody's order, and released"
        return (now if now.done is not None else replace(now, done=(now.epoch, 0), why=text)), AgentAction.RELEASE
    if not _obeys(now, read, process, at):
        return now, AgentAction.NOTHING
    return replace(now, paused=now.seen, paused_at=at), AgentAction.PAUSE


def pause_failed(watch: AgentState, why: str) -> AgentState:
    """The pause could not be carried out: the order is done with."""
    return watch if watch.paused is None else _end(watch, why)


def release_if_paused(watch: AgentState, why: str) -> tuple[AgentState, AgentAction]:
    """The warden's end, or its policy's wish: whoever is paused is released, whatever else."""
    return (watch, AgentAction.NOTHING) if watch.paused is None else (_end(watch, why), AgentAction.RELEASE)


_TROUBLES = {
    ProcessState.ABSENT: (
        "cannot tell the broker's process: see --pid and --process, and shareProcessNamespace of the pod"
    ),
    ProcessState.BARRED: "may not signal the broker's process: run as its user, or with the capability KILL",
}


def _heard(watch: AgentState, read: OrderRead, at: float, *, first: bool) -> AgentState:
    command = read.command
    if command is None or command.epoch < watch.epoch:
        return replace(watch, seen=None, advanced=None)
    if first:
        text = "it stood before this warden did, and was another's to obey"
        return replace(watch, seen=command, epoch=command.epoch, done=command.name, why=text)
    if watch.seen is None or watch.seen.name != command.name:
        return replace(watch, seen=command, advanced=None, epoch=command.epoch)
    if watch.seen.renewal != command.renewal:
        return replace(watch, seen=command, advanced=at)
    return watch


def _obeys(watch: AgentState, read: OrderRead | None, process: ProcessState, at: float) -> bool:
    """Whether to pause now: by an order read just now, that is being renewed, and while nobody else is paused."""
    if process is not ProcessState.RUNNING or read is None or read.others is not None:
        return False
    if watch.seen is None or watch.seen.name == watch.done or watch.advanced is None:
        return False
    return at - watch.advanced <= EXPIRES_AFTER_SECONDS / 2


def _over(
    watch: AgentState, read: OrderRead | None, process: ProcessState, at: float, guarded: bool
) -> tuple[AgentState, AgentAction]:
    """Whether the pause goes on, and what ends it."""
    ordered = watch.paused
    assert ordered is not None  # noqa: S101 - for the type checker
    why = ""
    if process is ProcessState.ABSENT:
        return _end(watch, "its process is gone"), AgentAction.NOTHING
    if process is ProcessState.RUNNING:
        return _end(watch, "somebody else woke it"), AgentAction.NOTHING
    if read is not None and (watch.seen is None or watch.seen.name != ordered.name):
        why = "its order was withdrawn"
    elif watch.advanced is None or at - watch.advanced > EXPIRES_AFTER_SECONDS:
        why = f"no renewal of its order was seen for {EXPIRES_AFTER_SECONDS:.0f} s"
    elif at - watch.paused_at >= ordered.limit_seconds:
        why = f"it was paused for {ordered.limit_seconds:.0f} s, the limit"
    elif not guarded:
        why = "the keeper that would outlive this warden is gone"
    return (_end(watch, why), AgentAction.RELEASE) if why else (watch, AgentAction.NOTHING)


def _end(watch: AgentState, why: str) -> AgentState:
    done = watch.paused.name if watch.paused is not None else watch.done
    return replace(watch, paused=None, done=done, why=f"released: {why}")

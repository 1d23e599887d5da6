"""Wait until the operator has applied an override, or its removal, and report progress.

In: BrokerHealth and LeadershipPolicy objects, polled. Out: progress messages, and whether it finished in time. Called
by the commands ``demote``, ``promote`` and ``release`` with ``--policy``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import click

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.leadership.broker_lookup import NamedPolicy
from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Transient

POLL_SECONDS = 0.5
T = TypeVar("T")

_BY_HAND = frozenset({str(Reason.OVERRIDE_DEMOTED), str(Reason.MANUAL_COMMAND)})
_OVERRIDDEN = frozenset({str(Reason.OVERRIDE_DEMOTED), str(Reason.IN_MAINTENANCE)})
_UNDECIDED = frozenset({str(Reason.UP_TO_DATE), str(Reason.DWELL_PENDING)})


@dataclass(frozen=True)
class View:
    """State of a broker as reported by the operator; ``demoted`` is None before the first report."""

    broker: int
    demoted: bool | None
    reason: str
    message: str
    state: str
    leaders: int
    preferred: int
    settled: bool
    held: bool
    scope_alone: bool
    """Whether moves are blocked for no other reason than that their topics are out of the policy's scope."""

    work: str
    """What is still in progress, for the message; empty if nothing."""

    current: bool
    """Whether the operator has read the present override, or that there is none."""

    trouble: str = ""
    """Why the policy is not reconciled, for the message; empty if it is."""

    def __str__(self) -> str:
        if not self.current:
            return f"broker {self.broker}: the operator has not read the change yet{self.trouble}"
        state = "free to lead" if self.demoted is False and self.reason == Reason.UP_TO_DATE else self.message
        return f"broker {self.broker} leads {self.leaders} partitions; {state}{self.work}"

    @property
    def leads_again(self) -> bool:
        """Whether the broker is free to lead and has all leaders back that can be restored."""
        return self.demoted is False and self.settled and (not self.held or self.leaders >= self.preferred)


Outcome = Callable[[View], str | None]
"""Final message once the wanted state is reached; None until then."""


def await_outcome(at: NamedPolicy, broker: int, outcome: Outcome, seconds: float) -> bool:
    """Poll until ``outcome`` returns a message; False if the time limit is reached. Prints every change."""

    def read() -> tuple[str, str | None]:
        view = look(at, broker)
        return str(view), outcome(view) if view.current else None

    done = poll(read, seconds)
    if done is not None:
        click.echo(done)
    return done is not None


def poll(read: Callable[[], tuple[str, T | None]], seconds: float) -> T | None:
    """Read until there is a value, or until the time limit: None. Prints each new text; a Transient is one."""
    end, printed = time.monotonic() + seconds, ""
    while True:
        found = None
        try:
            text, found = read()
        except Transient as error:
            text = f"retrying: {error}"
        if text not in ("", printed):
            click.echo(text)
            printed = text
        if found is not None or time.monotonic() >= end:
            return found
        time.sleep(POLL_SECONDS)


def look(at: NamedPolicy, broker: int) -> View:
    """Read the broker's state. Raises Transient, and Terminal if the policy or the broker is unknown."""
    # A reconcile writes the brokers' status first: read in this order, the policy's is never newer than theirs.
    found = broker_lookup.find_policy(*at)
    body = broker_lookup.find_health(*at, broker)
    status = body.get("status") or {}
    demoted, settled = broker_lookup.condition(body, "Demoted"), broker_lookup.condition(found, "Settled")
    problem = broker_lookup.trouble(found)
    trouble = work = f"; {problem}" if problem else ""
    if not problem and settled is not None and settled["status"] != "True":
        work = f"; {settled.get('message')}"
    # The restoration of another broker in waves takes minutes and blocks nothing else.
    rests = settled is not None and (settled["status"] == "True" or settled.get("reason") == Reason.RESTORING_IN_WAVES)
    done = problem is None and rests
    generation = int(body["metadata"].get("generation") or 0)
    return View(
        broker=broker,
        demoted=None if demoted is None else demoted["status"] == "True",
        reason=str((demoted or {}).get("reason")),
        message=str(demoted["message"] if demoted else "no verdict yet"),
        state=str((status.get("verdict") or {}).get("state", "")),
        leaders=int(status.get("leaders") or 0),
        preferred=int(status.get("preferredLeaders") or 0),
        settled=done and _of_one_reconcile(found, broker_lookup.healths(*at)),
        held=settled is not None and settled.get("reason") == Reason.MOVES_BLOCKED,
        scope_alone=[b["reason"] for b in (found.get("status") or {}).get("blockedByReason") or ()]
        == [Reason.OUT_OF_SCOPE],
        work=work,
        current=int(status.get("observedGeneration") or generation) >= generation,
        trouble=trouble,
    )


def _of_one_reconcile(policy: Object, healths: list[Object]) -> bool:
    """Whether the policy's status was written after the brokers', which a reconcile writes first."""
    counts = (policy.get("status") or {}).get("brokers")
    now = sum(1 for h in healths if (broker_lookup.condition(h, "Demoted") or {}).get("status") == "True")
    return counts is None or counts.get("demoted", 0) == now


def demoted(reason: str) -> Outcome:
    """Done when the broker leads nothing in scope because of the override, or of an earlier demotion by signals."""

    def outcome(view: View) -> str | None:
        stays = view.leaders and view.settled and view.held and view.scope_alone
        if not view.demoted or (view.leaders and not stays):
            return None
        if view.reason == Reason.IN_MAINTENANCE:
            return None  # still the status of a drain
        if view.reason not in _BY_HAND:
            return (
                f"broker {view.broker} is already demoted by its signals ({view.reason}); the override keeps it "
                "demoted until it ends"
            )
        if view.reason == Reason.OVERRIDE_DEMOTED and not view.message.startswith(reason):
            return None  # still the status of an earlier override
        left = f"; it leads {view.leaders} partitions out of scope (spec.scope)" if view.leaders else ""
        return f"broker {view.broker} is demoted ({view.reason}){left}"

    return outcome


def promoted(view: View) -> str | None:
    """Done when the broker is free to lead and its leaders are back."""
    if not view.leads_again:
        return None
    return f"broker {view.broker} leads {view.leaders} partitions; the override prevents a demotion by its signals"


def released(was: str | None, led: int = 0) -> Outcome:
    """Done when the state without the override is known, and no leader is being moved.

    ``was``: the override's state, None if it had ended. ``led``: how many partitions the broker led before.
    """

    def outcome(view: View) -> str | None:
        if view.demoted and (was != "Demoted" or view.reason not in _OVERRIDDEN):
            why = f"{view.reason}: {view.message}"
            return f"broker {view.broker} stays demoted ({why}); its leaders are restored when it is healthy"
        if view.demoted is False and was == "Promoted" and view.state == HealthState.SICK:
            if view.reason in _UNDECIDED:
                return None
            return f"broker {view.broker} is sick and not demoted ({view.reason}: {view.message})"
        leads = f"broker {view.broker} is released: it leads {view.leaders} partitions ({led} before)"
        if view.demoted is False and view.reason == Reason.RESTORING_IN_WAVES:
            return f"{leads}; {view.message}" if view.settled else None
        return f"{leads}; its signals decide again" if view.leads_again else None

    return outcome

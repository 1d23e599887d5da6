"""Wait until the operator has applied an override, or its removal, and report progress.

In: BrokerHealth and LeadershipPolicy objects, looked at again and again. Out: sentences, and whether it came in time.
Called by the verbs ``demote``, ``promote`` and ``release`` when ``--policy`` names a LeadershipPolicy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object
from bellwether.cli.leadership import broker_lookup
from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.ports.errors import Transient

POLL_SECONDS = 0.5

_BY_HAND = frozenset({str(Reason.OVERRIDE_DEMOTED), str(Reason.COMMANDED)})
_OVERRIDDEN = frozenset({str(Reason.OVERRIDE_DEMOTED), str(Reason.IN_MAINTENANCE)})
_UNDECIDED = frozenset({str(Reason.LEADING_ALLOWED), str(Reason.DWELLING)})


@dataclass(frozen=True)
class View:
    """How a broker stands, as the operator says it; ``demoted`` is None before it has said anything."""

    broker: int
    demoted: bool | None
    reason: str
    message: str
    state: str
    leaders: int
    preferred: int
    settled: bool
    held: bool
    work: str
    """What the operator is still busy with; empty when it is not."""

    def __str__(self) -> str:
        return f"broker {self.broker} leads {self.leaders} partitions ({self.message}){self.work}"

    @property
    def leads_again(self) -> bool:
        """Whether nothing keeps the broker from leading, and the leaders are back that can be."""
        return self.demoted is False and self.settled and (not self.held or self.leaders >= self.preferred)


Outcome = Callable[[View], str | None]
"""What is to be told once it is done; None while it is not."""


def await_outcome(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    outcome: Outcome,
    limit: timedelta,
    say: Callable[[str], None],
) -> bool:
    """Look until ``outcome`` has something to tell; False when it has not within ``limit``. Tells every change."""
    end = time.monotonic() + limit.total_seconds()
    said = ""
    while time.monotonic() < end:
        done = None
        try:
            view = look(api, namespace, policy, broker)
        except Transient as error:
            text = f"going on: {error}"
        else:
            text, done = str(view), outcome(view)
        if text != said:
            say(text)
            said = text
        if done is not None:
            say(done)
            return True
        time.sleep(POLL_SECONDS)
    return False


def look(api: KubernetesClient, namespace: str, policy: str, broker: int) -> View:
    """How the broker stands now. Raises Transient, and Terminal when the policy or the broker is unknown."""
    # A turn writes the brokers' status first: read in this order the policy's is never of a later turn than theirs.
    found = broker_lookup.find_policy(api, namespace, policy)
    body = broker_lookup.find_health(api, namespace, policy, broker)
    status = body.get("status") or {}
    demoted, settled = broker_lookup.condition(body, "Demoted"), broker_lookup.condition(found, "Settled")
    amiss = broker_lookup.trouble(found)
    work = f"; {amiss}" if amiss else ""
    if not amiss and settled is not None and settled["status"] != "True":
        work = f"; {settled.get('message')}"
    # Another broker's way back in waves takes minutes, and holds nothing else up.
    rests = settled is not None and (settled["status"] == "True" or settled.get("reason") == Reason.RETURNING_IN_WAVES)
    done = amiss is None and rests
    return View(
        broker=broker,
        demoted=None if demoted is None else demoted["status"] == "True",
        reason=str((demoted or {}).get("reason")),
        message=str(demoted["message"] if demoted else "not judged yet"),
        state=str((status.get("verdict") or {}).get("state", "")),
        leaders=int(status.get("leaders") or 0),
        preferred=int(status.get("preferredLeaders") or 0),
        settled=done and _of_one_turn(found, broker_lookup.healths(api, namespace, policy)),
        held=settled is not None and settled.get("reason") == Reason.HELD,
        work=work,
    )


def _of_one_turn(policy: Object, healths: list[Object]) -> bool:
    """Whether the policy's status was written after the brokers': a turn writes theirs first."""
    counts = (policy.get("status") or {}).get("brokers")
    now = sum(1 for h in healths if (broker_lookup.condition(h, "Demoted") or {}).get("status") == "True")
    return counts is None or counts.get("demoted", 0) == now


def demoted(reason: str) -> Outcome:
    """Done when the broker leads nothing and the override, or what signals said before it, keeps it so."""

    def outcome(view: View) -> str | None:
        if not view.demoted or view.leaders:
            return None
        if view.reason == Reason.IN_MAINTENANCE:
            return None  # a drain's word still stands
        if view.reason not in _BY_HAND:
            return (
                f"broker {view.broker} is demoted by its signals ({view.reason}); the override keeps it from leading "
                "for as long as it lasts, whatever they say"
            )
        if view.reason == Reason.OVERRIDE_DEMOTED and not view.message.startswith(reason):
            return None  # an earlier override's word still stands
        return f"broker {view.broker} is demoted ({view.reason})"

    return outcome


def promoted(view: View) -> str | None:
    """Done when nothing keeps the broker from leading and its leaders are back."""
    if not view.leads_again:
        return None
    return f"broker {view.broker} leads {view.leaders} partitions; the override keeps its signals from demoting it"


def released(was: str | None) -> Outcome:
    """Done when it is clear what holds without the override. ``was`` is its state, None when it had ended before."""

    def outcome(view: View) -> str | None:
        if view.demoted and (was != "Demoted" or view.reason not in _OVERRIDDEN):
            why = f"{view.reason}: {view.message}"
            return f"broker {view.broker} stays demoted ({why}); its leaders come back when it is well"
        if view.demoted is False and was == "Promoted" and view.state == HealthState.SICK:
            if view.reason in _UNDECIDED:
                return None
            return f"broker {view.broker} is sick, and not demoted ({view.reason}: {view.message})"
        if view.demoted is False and view.reason == Reason.RETURNING_IN_WAVES:
            return f"broker {view.broker} leads {view.leaders} partitions; {view.message}"
        return (
            f"broker {view.broker} leads {view.leaders} partitions; its signals decide again"
            if view.leads_again
            else None
        )

    return outcome

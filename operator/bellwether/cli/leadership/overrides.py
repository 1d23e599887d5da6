"""Override on a BrokerHealth by a person: set it, remove it, and warn when half of the brokers could not lead.

Called by the verbs ``demote``, ``promote`` and ``release`` when ``--policy`` names a LeadershipPolicy.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, KubernetesClient, Object
from bellwether.cli.leadership import broker_lookup
from bellwether.core.detection.health_states import HealthState
from bellwether.core.settings.policy import Mode
from bellwether.core.signals import OverrideState, Purpose


def set_override(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    override: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Write, or with None take away, the override of one broker; returns the one that stood before.

    Terminal when the policy or the broker is unknown.
    """
    before = (broker_lookup.find_health(api, namespace, policy, broker).get("spec") or {}).get("override")
    if before is not None or override is not None:
        api.merge(
            BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker), {"spec": {"override": override}}
        )
    return before


def override_body(
    state: OverrideState, reason: str, by: str, until: datetime | None, purpose: Purpose | None = None
) -> dict[str, Any]:
    """The override as the API takes it."""
    body: dict[str, Any] = {"state": str(state), "reason": reason, "by": by}
    # Always named: a merge patch would keep the end, and the purpose, of an earlier override.
    body["until"] = until.replace(microsecond=0).isoformat() if until is not None else None
    body["purpose"] = str(purpose) if purpose is not None else None
    return body


def whoami() -> str:
    """Who runs this command, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user id often has no name
        return f"uid {os.getuid()}"


def ended(override: dict[str, Any], now: datetime) -> bool:
    """Whether an override's time is over: it then has no effect, and stands until somebody takes it away."""
    until = override.get("until")
    return until is not None and datetime.fromisoformat(str(until)) <= now


def without_effect(policy: Object) -> str | None:
    """Why no override moves a leader now, whatever it says; None when it does."""
    spec = policy["spec"]
    if spec.get("suspend"):
        return "the policy is suspended (spec.suspend): nothing moves until it is not"
    if spec.get("mode", Mode.OBSERVE) != Mode.ENFORCE:
        return "the policy only observes (spec.mode): nothing moves until it is Enforce"
    return None


def too_many(healths: Iterable[Object], broker: int) -> str | None:
    """What to warn of when, with this broker demoted, half of the brokers or more cannot lead or are sick."""
    ailing, total = {broker}, 0
    for health in healths:
        total += 1
        status = health.get("status") or {}
        state = (status.get("verdict") or {}).get("state")
        demoted = (broker_lookup.condition(health, "Demoted") or {}).get("status") == "True"
        if demoted or state in (HealthState.SICK, HealthState.DOWN) or status.get("registered") is False:
            ailing.add(health["spec"]["brokerId"])
    if 2 * len(ailing) < total:
        return None
    return (
        f"with broker {broker} demoted, {len(ailing)} of {total} brokers cannot lead or are sick: from half on, and "
        "above the cap (spec.demotion.maxBrokers), nobody else is demoted by signals until some are back"
    )

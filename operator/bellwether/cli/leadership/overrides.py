"""Overrides on a BrokerHealth: set, remove, show, and warn of brokers that could not or should not lead.

Called by the commands ``demote``, ``promote``, ``release`` and ``drain`` with ``--policy``.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, KubernetesClient, Object
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.output import clock
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.settings.policy import Mode
from bellwether.core.signals import OverrideState, Purpose


def set_override(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    override: dict[str, Any] | None,
) -> dict[str, Any] | None:
    """Set the override of one broker, or remove it with None; returns the former one.

    Terminal if the policy or the broker is unknown.
    """
    before = override_of(broker_lookup.find_health(api, namespace, policy, broker))
    if before is not None or override is not None:
        api.merge(
            BROKER_HEALTHS, namespace, object_names.broker_health(policy, broker), {"spec": {"override": override}}
        )
    return before


def override_of(health: Object) -> dict[str, Any] | None:
    """The override of a BrokerHealth; None if it has none."""
    found: dict[str, Any] | None = (health.get("spec") or {}).get("override")
    return found


def override_body(
    state: OverrideState,
    reason: str,
    by: str,
    until: datetime | None,
    purpose: Purpose | None = None,
    *,
    accept_unavailable_writes: bool = False,
) -> dict[str, Any]:
    """Build the override for the API."""
    body: dict[str, Any] = {"state": str(state), "reason": reason, "by": by}
    # Always set: a merge patch would keep what an earlier override says.
    body["until"] = until.replace(microsecond=0).isoformat() if until is not None else None
    body["purpose"] = str(purpose) if purpose is not None else None
    body["acceptUnavailableWrites"] = accept_unavailable_writes or None
    return body


def whoami() -> str:
    """Name of the user who runs this command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id in a container often has no name
        return f"uid {os.getuid()}"


def shown(override: dict[str, Any]) -> str:
    """Whose override it is, why and until when: ``the override of root: kernel update, until 2026-01-01 00:00:00Z``."""
    by = f" of {override['by']}" if override.get("by") else ""
    until = override.get("until")
    end = f", until {clock(datetime.fromisoformat(str(until)))}" if until is not None else ""
    return f"the override{by}: {override.get('reason')}{end}"


def ended(override: dict[str, Any], now: datetime) -> bool:
    """Whether an override has expired; it then has no effect, but remains until it is removed."""
    until = override.get("until")
    return until is not None and datetime.fromisoformat(str(until)) <= now


def without_effect(policy: Object) -> str | None:
    """Why overrides have no effect under this policy; None if they have."""
    spec = policy["spec"]
    if spec.get("suspend"):
        return "the policy is suspended: no leader moves until spec.suspend is false"
    if spec.get("mode", Mode.OBSERVE) != Mode.ENFORCE:
        return "the policy is in mode Observe: no leader moves until spec.mode is Enforce"
    return None


def unfit(healths: Iterable[Object], brokers: Collection[int]) -> list[str]:
    """Warnings for the brokers that are Sick or Down, which should not lead."""
    warnings = []
    for health in healths:
        broker, verdict = health["spec"]["brokerId"], (health.get("status") or {}).get("verdict") or {}
        if broker in brokers and verdict.get("state") in SHOULD_NOT_LEAD:
            why = f"{verdict['state']} ({verdict.get('reason')}: {verdict.get('message')})"
            warnings.append(f"broker {broker} would lead again although it is {why}")
    return warnings


def too_many(healths: Iterable[Object], brokers: Collection[int]) -> str | None:
    """Warning if, with these brokers demoted, half or more of the brokers cannot lead or are sick."""
    unavailable, total = set(brokers), 0
    for health in healths:
        total += 1
        status = health.get("status") or {}
        state = (status.get("verdict") or {}).get("state")
        demoted = (broker_lookup.condition(health, "Demoted") or {}).get("status") == "True"
        if demoted or state in (HealthState.SICK, HealthState.DOWN) or status.get("registered") is False:
            unavailable.add(health["spec"]["brokerId"])
    if 2 * len(unavailable) < total:
        return None
    named = f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers))}"
    return (
        f"with {named} demoted, {len(unavailable)} of {total} brokers cannot lead or are sick: the others "
        "have to carry all leaders"
    )

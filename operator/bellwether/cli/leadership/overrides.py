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
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, Object
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.output import clock
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.settings.policy import Mode
from bellwether.core.signals import Override


def set_override(at: broker_lookup.NamedPolicy, broker: int, override: Override | None) -> dict[str, Any] | None:
    """Set the override of one broker, or remove it with None; returns the former one.

    Terminal if the policy or the broker is unknown.
    """
    before = override_of(broker_lookup.find_health(*at, broker))
    if before is not None or override is not None:
        patch = {"spec": {"override": _body(override) if override is not None else None}}
        at.api.merge(BROKER_HEALTHS, at.namespace, object_names.broker_health(at.name, broker), patch)
    return before


def _body(override: Override) -> dict[str, Any]:
    # Always with every field: a merge patch would keep what an earlier override says.
    until = override.until.replace(microsecond=0).isoformat() if override.until is not None else None
    return {
        "state": str(override.state),
        "reason": override.reason,
        "by": override.by,
        "until": until,
        "purpose": str(override.purpose) if override.purpose is not None else None,
        "acceptUnavailableWrites": override.accept_unavailable_writes or None,
    }


def override_of(health: Object) -> dict[str, Any] | None:
    """The override of a BrokerHealth; None if it has none."""
    found: dict[str, Any] | None = (health.get("spec") or {}).get("override")
    return found


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

"""Demote and promote through the operator: a person's override on a BrokerHealth, and the wait for its effect.

Called by the verbs ``demote`` and ``promote`` when ``--policy`` names a LeadershipPolicy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from bellwether.adapters.kubernetes import names
from bellwether.adapters.kubernetes.client import BROKER_HEALTHS, POLICIES, KubernetesClient, NotFound
from bellwether.core.signals import OverrideState
from bellwether.ports import Terminal, Transient

POLL_SECONDS = 0.5


def set_override(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    override: dict[str, Any] | None,
) -> None:
    """Write, or with None take away, the override of one broker. Terminal when the policy or the broker is unknown."""
    try:
        api.get(POLICIES, namespace, policy)
    except NotFound:
        raise Terminal(f"there is no LeadershipPolicy {policy} in namespace {namespace}") from None
    patch = {"spec": {"override": override}}
    try:
        api.merge(BROKER_HEALTHS, namespace, names.broker_health(policy, broker), patch)
    except NotFound:
        known = api.list(BROKER_HEALTHS, namespace, {names.POLICY_LABEL: names.legal(policy)})
        ids = ", ".join(str(i) for i in sorted(h["spec"]["brokerId"] for h in known)) or "none yet"
        raise Terminal(f"policy {policy} knows no broker {broker}; it knows: {ids}") from None


def override_body(state: OverrideState, reason: str, by: str, until: datetime | None) -> dict[str, Any]:
    """The override as the API takes it."""
    body: dict[str, Any] = {"state": str(state), "reason": reason, "by": by}
    # Always named: a merge patch would keep the end of an earlier override.
    body["until"] = until.replace(microsecond=0).isoformat() if until is not None else None
    return body


def await_effect(
    api: KubernetesClient,
    namespace: str,
    policy: str,
    broker: int,
    demoted: bool,
    limit: timedelta,
    say: Callable[[str], None],
) -> bool:
    """Wait until the operator reports the broker demoted and without leaders, or no longer demoted; False when it does
    not within ``limit``."""
    end = time.monotonic() + limit.total_seconds()
    said = ""
    while time.monotonic() < end:
        try:
            status = api.get(BROKER_HEALTHS, namespace, names.broker_health(policy, broker)).get("status") or {}
        except Transient:
            status = {}
        condition = next((c for c in status.get("conditions", []) if c["type"] == "Demoted"), None)
        leaders = status.get("leaders")
        why = condition["message"] if condition else "not judged yet"
        text = f"broker {broker} leads {leaders} partitions ({why})"
        if text != said:
            say(text)
            said = text
        if condition is not None and (condition["status"] == "True") is demoted and (leaders == 0 or not demoted):
            return True
        time.sleep(POLL_SECONDS)
    return False

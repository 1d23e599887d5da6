"""Whether a Prometheus evaluates the rules of alerts: only then does the absence of ``ALERTS`` mean that none fires.

In: the body of ``/api/v1/rules``, whose length is bounded already. Called by ``query_client``. PromQL cannot tell: an
alert that does not fire has no series, and neither has one whose rule was renamed, removed, or cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Any

from bellwether.adapters.prometheus.query_response import json_object, words_of
from bellwether.ports.errors import Terminal

LOOKBACK = timedelta(minutes=5)
"""How old a sample may be that an instant query returns; older evaluations leave no series of an alert that fires."""


def unevaluated(body: bytes, alerts: Collection[str], now: datetime) -> str:
    """Which of the alerts has no rule that is evaluated, and why; empty if each has. Raises Terminal."""
    said = json_object(body)
    if said.get("status") != "success":
        raise Terminal(f"does not show its alert rules: {words_of(said.get('error')) or 'it gives no reason'}")
    rules = list(_rules(said.get("data")))
    for name in sorted(alerts):
        problems = [_problem(name, rule, now) for rule in rules if rule.get("name") == name]
        if not problems:
            return f"has no rule of alert {name}: name an alert of this Prometheus in selector"
        if any(problems):
            return max(problems)
    return ""


def _rules(data: Any) -> Iterator[dict[str, Any]]:
    groups = data.get("groups") if isinstance(data, dict) else None
    for group in groups if isinstance(groups, list) else []:
        rules = group.get("rules") if isinstance(group, dict) else None
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, dict) and rule.get("type") == "alerting":
                yield rule


def _problem(name: str, rule: dict[str, Any], now: datetime) -> str:
    """Why the rule is not evaluated; empty if it is."""
    if rule.get("health") == "err":
        return f"cannot evaluate the rule of alert {name}: {words_of(rule.get('lastError')) or 'it gives no reason'}"
    try:
        at = datetime.fromisoformat(str(rule.get("lastEvaluation")))
        evaluated = rule.get("health") == "ok" and now - at <= LOOKBACK
    except (ValueError, TypeError):  # no time, or one without a zone
        evaluated = False
    if not evaluated:
        return f"has not evaluated the rule of alert {name} in the last 5 minutes: check its rule groups"
    return ""

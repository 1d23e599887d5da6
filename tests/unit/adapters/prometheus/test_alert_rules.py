"""Which alerts' rules a Prometheus evaluates, by what it says of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from bellwether.adapters.prometheus.alert_rules import unevaluated
from bellwether.ports.errors import Terminal
from testkit.messages import assert_wording

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def told(*rules: dict[str, Any]) -> bytes:
    return json.dumps({"status": "success", "data": {"groups": [{"name": "g", "rules": rules}]}}).encode()


def rule(name: str = "DiskFailing", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "alerting",
        "health": "ok",
        "lastEvaluation": "2026-01-01T11:59:50.123456789Z",
        **fields,
    }


def test_alerts_whose_rules_are_all_evaluated_have_no_problem() -> None:
    body = told(rule(), rule(lastEvaluation="2026-01-01T13:59:00+02:00"), rule("NodeDown"), rule("Other", health="err"))
    assert unevaluated(body, ["DiskFailing", "NodeDown"], NOW) == ""


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([], "has no rule of alert DiskFailing: name an alert of this Prometheus in selector"),
        ([rule(type="recording")], "has no rule of alert DiskFailing"),
        ([rule(health="err", lastError="bad\nmatch")], "cannot evaluate the rule of alert DiskFailing: bad match"),
        ([rule(), rule(health="err")], "cannot evaluate the rule of alert DiskFailing: it gives no reason"),
        ([rule(health="unknown", lastEvaluation="0001-01-01T00:00:00Z")], "has not evaluated the rule of alert DiskF"),
        ([rule(lastEvaluation="2026-01-01T11:54:59Z")], "in the last 5 minutes: check its rule groups"),
        ([rule(lastEvaluation="2026-01-01T11:59:59")], "has not evaluated"),
        ([rule(lastEvaluation=None)], "has not evaluated"),
    ],
)
def test_rule_that_is_not_evaluated_is_named_with_why(rules: list[dict[str, Any]], problem: str) -> None:
    assert problem in unevaluated(told(*rules), ["DiskFailing"], NOW)


@pytest.mark.parametrize("body", [b"[]", b"<html>", b'{"status":"error","error":"no"}'])
def test_what_is_no_list_of_rules_is_no_answer(body: bytes) -> None:
    with pytest.raises(Terminal, match=r"does not show its alert rules: no|not Prometheus' JSON"):
        unevaluated(body, ["DiskFailing"], NOW)


def test_groups_that_are_none_hold_no_rule() -> None:
    body = b'{"status":"success","data":{"groups":[{"rules":1},2,{"rules":[3]}]}}'
    assert_wording(unevaluated(body, ["DiskFailing"], NOW))

"""LeaderRebalances in ``bellwether status``: their state, and why one is not used."""

from __future__ import annotations

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, LEASES, Object
from bellwether.cli.diagnosis.policy_view import PolicyView, policy_view
from bellwether.cli.diagnosis.status import document, screen
from bellwether.controllers.reporting.status import policy_status
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy
from bellwether.ports.errors import Terminal
from bellwether.ports.rebalance import RunState
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import Operator
from testkit.values.builders import after, site
from testkit.values.rebalances import rebalance


def proposed(name: str) -> Object:
    found = rebalance(RunState.PROPOSED, Reason.PLAN_PROPOSED, "plan 0123 waits for approval", digest="0123")
    return {**api_objects.rebalance(name), "status": found.body()}


def view(api: MemoryApi) -> PolicyView:
    made: MemorySite = site(3)
    report = Operator(made, Policy(name="main")).reconcile()
    body = {**api_objects.policy(), "status": policy_status(report, 1, {}, None)}
    return policy_view(api, body, after(125))


def about_rebalances(found: PolicyView) -> list[str]:
    return [line for line in screen(found) if line.startswith("LeaderRebalance ") or "(LeaderRebalance " in line]


def test_rebalances_show_their_state_and_why_one_is_unused():
    api = MemoryApi()
    for name in ("a", "b"):
        api.put(LEADER_REBALANCES, proposed(name))
    found = view(api)
    assert_wording(about_rebalances(found))
    assert document(found)["rebalance"]["status"]["digest"] == "0123"


def test_status_is_shown_where_rebalances_may_not_be_read():
    api = MemoryApi()
    for resource in (LEADER_REBALANCES, LEASES):
        api.refuse("list", resource, Terminal("lacks the verb 'list'"))
    assert about_rebalances(view(api)) == []

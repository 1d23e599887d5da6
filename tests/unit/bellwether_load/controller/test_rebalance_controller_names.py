"""A policy that names a store or a profile that is not allowed: what it reports, and what goes on."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.core.signals import Reading
from bellwether_load.api.load_config import LoadConfig
from testkit.loads.load_configs import body
from testkit.simulation.rebalance_fixture import SPEC, Desked, desk_of

SAID = (
    "spec.store is 'private', but LeaderRebalances in namespace default may only use default: set one of these, or"
    " let the administrator allow it (chart value load.stores)"
)


@pytest.fixture
def shared(desked: Desked) -> Desked:
    """As well as the store that every namespace may use, there is one for another team."""
    content = body(str(desked.planner.store))
    content["stores"]["private"] = {"namespaces": ["team-b"], "uri": "/private"}
    desked.desk = desk_of(desked.planner, desked.site.clock, desked.desks, LoadConfig.model_validate(content))
    return desked


def shown(desked: Desked) -> tuple[Any, ...]:
    return desked.status["state"], desked.status["reason"], desked.status["message"]


def test_another_teams_store_is_refused_before_a_plan_is_requested_and_no_job_starts(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    assert shown(shared) == ("Idle", "InvalidPolicy", SAID)
    shared.annotate(rebalance="please")
    shared.go(loop, 3)
    assert shown(shared) == ("Idle", "InvalidPolicy", SAID)
    assert shared.planner.started == []


def test_conditions_of_the_rebalance_say_so_and_the_policy_stays_ready(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    conditions = {one["type"]: (one["status"], one["reason"], one["message"]) for one in shared.status["conditions"]}
    assert conditions == dict.fromkeys(("Ready", "RebalanceProposed", "Rebalancing"), ("False", "InvalidPolicy", SAID))
    assert shared.condition()[1] != "InvalidPolicy"


def test_a_sick_broker_is_demoted_although_the_store_is_refused(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.go(loop, 3)
    shared.site.signals.say(1, Reading.FAILING)
    shared.go(loop, 10)
    assert [p.leader for p in shared.site.cluster.partitions() if p.leader == 1] == []


def test_the_plan_that_was_requested_is_made_once_the_policy_names_a_store_that_is_allowed(shared: Desked):
    loop = shared.make(rebalance={**SPEC, "store": "private"})
    shared.annotate(rebalance="please")
    shared.go(loop, 3)
    shared.change(rebalance={**SPEC, "store": "default"})
    shared.until(loop, "Proposed")
    assert len(shared.planner.started) == 1


def test_a_proposed_plan_waits_while_its_policy_names_another_teams_store(shared: Desked):
    loop = shared.proposed()
    shared.change(rebalance={**SPEC, "store": "private"})
    shared.approve()
    shared.go(loop, 5)
    assert shown(shared)[1:] == ("InvalidPolicy", SAID)
    shared.change(rebalance={**SPEC, "store": "default"})
    shared.until(loop, "Done")

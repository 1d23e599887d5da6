"""Whom a policy waits for: one condition, the most far-reaching reason first, a few names."""

from __future__ import annotations

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.model.refusals import BrokerHold, Hold, Refusal
from bellwether.core.model.strimzi import Blocker
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.policy_conditions import EXTERNAL_REASONS, waiting_for_external_operations
from bellwether.core.waves.rebalance_waves import WaveResult
from testkit.messages import assert_wording
from testkit.values.builders import decisions, record


def hold(reason: Reason, topic: str = "orders", index: int = 0) -> Hold:
    return Hold(PartitionKey(f"id-of-{topic}", index), topic, reason, "")


def brokers(reason: Reason, *ids: int) -> Plan:
    return Plan(decisions=decisions(held=[BrokerHold(b, reason, "") for b in ids]))


def test_nothing_waits_where_nothing_is_held():
    assert waiting_for_external_operations(Plan(), [], WaveResult(record())) is None


@pytest.mark.parametrize("reason", [Reason.ONLY_REPLICA, Reason.PREFERRED_NOT_IN_ISR, Reason.REQUEST_REFUSED])
def test_holds_by_the_clusters_own_state_wait_for_no_operation(reason: Reason):
    assert waiting_for_external_operations(brokers(Reason.CAP_REACHED, 1), [hold(reason)], None) is None


@pytest.mark.parametrize("reason", EXTERNAL_REASONS)
def test_partitions_that_wait_are_counted_and_a_few_are_named(reason: Reason):
    found = waiting_for_external_operations(Plan(), [hold(reason, index=i) for i in (7, 2, 4, 1)], None)
    assert found == Blocker(reason, f"{reason}: 4 partitions (orders-1, orders-2, orders-4 and 1 more)")


@pytest.mark.parametrize("reason", EXTERNAL_REASONS)
def test_brokers_that_wait_are_named(reason: Reason):
    assert waiting_for_external_operations(brokers(reason, 3), [], None) == Blocker(reason, f"{reason}: broker 3")
    found = waiting_for_external_operations(brokers(reason, *range(9)), [], None)
    assert found is not None
    assert_wording(found.message)


def test_a_load_plan_that_waits_is_named():
    progress = WaveResult(record(), waits=Refusal(Reason.EXTERNAL_OPERATION, "annotated"))
    assert waiting_for_external_operations(Plan(), [], progress) == Blocker(
        Reason.EXTERNAL_OPERATION,
        "ExternalOperation: the next wave of the load plan",
    )
    pausing = WaveResult(record(), waits=Refusal(Reason.APPLYING, "30 s"))
    assert waiting_for_external_operations(Plan(), [], pausing) is None


def test_the_most_far_reaching_comes_first_and_the_others_follow():
    found = waiting_for_external_operations(
        brokers(Reason.EXTERNAL_OPERATION, 1), [hold(Reason.ORDER_OVERWRITTEN), hold(Reason.REASSIGNING, "logs")], None
    )
    assert found == Blocker(
        Reason.EXTERNAL_OPERATION,
        "ExternalOperation: broker 1; Reassigning: 1 partition (logs-0); OrderOverwritten: 1 partition (orders-0)",
    )

"""What is said of each broker: its counts, and its conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.condition import Condition
from bellwether.core.detection.health_states import HealthState
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.refusals import BrokerHold
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.settings.policy import Mode, Policy
from testkit.messages import assert_wording
from testkit.values.builders import cluster, decisions, demoted, partition, said, snapshot, verdict, verdicts


def test_every_broker_has_its_counts():
    seen = cluster(partition(), partition(index=1, replicas=[2, 9], leader=None), brokers=3, racks={1: "a"})
    first, *_, ghost = said(snapshot(seen)).brokers
    assert (first.leaders, first.preferred_leaders, first.replicas, first.rack, first.registered) == (
        1,
        1,
        1,
        "a",
        True,
    )
    assert (ghost.broker, ghost.leaders, ghost.replicas, ghost.rack, ghost.registered) == (9, 0, 1, None, False)


class TestBrokerConditions:
    def of(self, state: HealthState = HealthState.HEALTHY, **more: object) -> BrokerReport:
        known = dict.fromkeys(("leaders", "preferred_leaders", "replicas"), 0)
        values = {"rack": None, "registered": True, "demoted": None, "hold": None, **known, **more}
        return BrokerReport(broker=1, verdict=verdict(1, state), **values)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("state", "status"),
        [
            (HealthState.HEALTHY, True),
            (HealthState.SUSPECT, False),
            (HealthState.SICK, False),
            (HealthState.DOWN, False),
            (HealthState.RECOVERING, False),
            (HealthState.UNKNOWN, None),
        ],
    )
    def test_healthy_is_unknown_without_evidence(self, state: HealthState, status: bool | None):
        healthy, *_ = self.of(state).conditions
        assert (healthy.type, healthy.status, healthy.message) == ("Healthy", status, "so it seems")

    def test_whom_nothing_keeps_may_lead(self):
        _, condition, _ = self.of().conditions
        assert (condition.status, condition.reason) == (False, Reason.UP_TO_DATE)
        assert_wording(condition.message)

    def test_who_is_held_is_not_demoted_and_says_why(self):
        held = BrokerHold(1, Reason.CAP_REACHED, "the cap is 1")
        _, condition, _ = self.of(HealthState.SICK, hold=held).conditions
        assert (condition.status, condition.reason, condition.message) == (False, Reason.CAP_REACHED, "the cap is 1")

    @pytest.mark.parametrize("policy", [Policy(name="main"), Policy(name="main", mode=Mode.ENFORCE, suspend=True)])
    def test_sick_broker_that_policy_may_not_demote_says_why(self, policy: Policy):
        seen = cluster(partition())
        report, *_ = said(snapshot(seen), policy, plan=Plan(decisions=decisions(1))).brokers
        condition = report.condition("Demoted")
        assert (condition.status, condition.reason) == (False, Reason.NOT_ENFORCING)
        assert condition.message == f"it would be demoted. {policy.inactivity}"

    def test_who_is_demoted_and_held_there_says_both(self):
        held = BrokerHold(1, Reason.PROMOTION_MANUAL, "waits for a person")
        _, condition, _ = self.of(demoted=demoted(1), hold=held).conditions
        assert (condition.status, condition.reason) == (True, Reason.EXTERNALLY_UNREACHABLE)
        assert_wording(condition.message)


class TestHoldingBack:
    """A slow follower is named where acks=all waits for it, whatever it leads."""

    def said_of(self, seen: Cluster, slow: Reason | None = Reason.STORAGE_SLOW) -> Condition:
        judged = {**verdicts(seen), 1: replace(verdict(1), slow=slow)}
        return said(snapshot(seen), judged=judged).brokers[0].conditions[2]

    def test_in_isr_that_another_leads_it_holds_acks_all_back(self):
        condition = self.said_of(cluster(partition(replicas=(2, 1, 3))))
        assert (condition.type, condition.status, condition.reason) == ("HoldsBackISR", True, Reason.STORAGE_SLOW)

    def test_a_broker_outside_every_isr_delays_no_acks(self):
        condition = self.said_of(cluster(partition(replicas=(2, 1, 3), isr=(2, 3))))
        assert (condition.status, condition.reason) == (False, Reason.NOT_BLOCKING_ACKS)

    def test_what_it_leads_itself_it_slows_as_a_leader(self):
        assert self.said_of(cluster(partition())).reason is Reason.NOT_BLOCKING_ACKS

    def test_a_fast_follower_delays_no_acks(self):
        condition = self.said_of(cluster(partition(replicas=(2, 1, 3))), slow=None)
        assert (condition.status, condition.reason) == (False, Reason.NOT_BLOCKING_ACKS)

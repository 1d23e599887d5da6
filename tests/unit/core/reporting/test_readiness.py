"""What Ready says of each situation, and that the worst of several comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.demotion.decisions import Decisions
from bellwether.core.detection.findings import EvidenceItem
from bellwether.core.detection.health_states import HealthState
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.cluster import Partition
from bellwether.core.model.refusals import BrokerHold, Hold, Refusal
from bellwether.core.model.undo_record import Cause
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.readiness import RANKS
from bellwether.core.reporting.report import Report
from bellwether.core.settings.placement import Placement, Preference
from bellwether.core.settings.policy import Capacity, Demotion, Mode, Policy
from bellwether.core.signals import Reading
from testkit.messages import assert_wording
from testkit.values.builders import (
    cluster,
    decisions,
    demoted,
    drain,
    move,
    partition,
    said,
    snapshot,
    verdict,
    verdicts,
)

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)
OBSERVE = replace(ENFORCE, mode=Mode.OBSERVE)
FULL = replace(ENFORCE, demotion=Demotion(capacity=Capacity(max_leaders=7)))
SUSPENDED = replace(ENFORCE, suspend=True)
LIMITED = replace(ENFORCE, demotion=Demotion(capacity=Capacity(max_load=100)))
NO_RACK = replace(ENFORCE, placement=Placement(Preference(("eu-west-9z",))))


def of(
    *partitions: Partition,
    policy: Policy = ENFORCE,
    plan: Plan | None = None,
    result: ExecutionResult | None = None,
    min_isr: int = 2,
    removed: tuple[int, ...] = (),
    **states: list[int],
) -> Report:
    """A report of three brokers, Healthy unless named by state: ``of(down=[2])``."""
    seen = cluster(*(partitions or (partition(),)), fenced=states.get("down", []), removed=removed)
    floors = dict.fromkeys((p.topic for p in seen.partitions), min_isr)
    return said(replace(snapshot(seen), floors=floors), policy, verdicts(seen, **states), plan, result)


HIDDEN = cluster(partition(replicas=[4, 1, 2], leader_unknown=True))


def hidden() -> Report:
    """Broker 4 lacks the listener that is asked, and leads a partition."""
    found = verdicts(HIDDEN)
    return said(
        snapshot(HIDDEN), ENFORCE, {**found, 4: verdict(4, HealthState.UNKNOWN, Reason.LISTENER_MISSING)}, None, None
    )


def slow() -> Report:
    """Broker 3 follows slowly and is in the ISR."""
    seen = cluster(partition())
    lagging = replace(verdict(3, HealthState.SUSPECT, Reason.REPLICATION_LAGGING), slow=Reason.REPLICATION_LAGGING)
    return said(snapshot(seen), ENFORCE, {**verdicts(seen), 3: lagging})


def disputed() -> Report:
    """Two of three vantages do not reach broker 2."""
    seen = cluster(partition())
    suspect = verdict(2, HealthState.SUSPECT, Reason.VANTAGE_CONFLICT)
    return said(snapshot(seen), ENFORCE, {**verdicts(seen), 2: suspect})


def held_drain(policy: Policy = ENFORCE) -> Report:
    """A person drains broker 1, and that is held."""
    seen = cluster(partition())
    plan = Plan(
        decisions=decisions(held=[BrokerHold(1, Reason.ANOTHER_BROKER_UNHEALTHY, "not drained: repair another first")])
    )
    return said(snapshot(seen, overrides=[drain(1)]), policy, verdicts(seen), plan)


NO_RIGHT = "Grant this user the ACL Alter on Cluster"


def immovable(policy: Policy = ENFORCE, *, proving: bool = False) -> Report:
    """Healthy brokers, and a user who may move nothing."""
    return said(snapshot(replace(cluster(partition()), immovable=NO_RIGHT, proving=proving)), policy)


def apart() -> Report:
    """Brokers 1 and 2 do not reach each other."""
    seen = cluster(partition(replicas=(3, 1, 2)))
    ends = {b: replace(verdict(b, HealthState.SUSPECT, Reason.BROKEN_LINK), links=frozenset({3 - b})) for b in (1, 2)}
    return said(snapshot(seen), ENFORCE, verdicts(seen) | ends)


def held(reason: Reason, topic: str = "orders") -> Plan:
    return Plan(holds=(Hold(partition(topic).key, topic, reason, "so it is"),))


CAP = Plan(decisions=decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "the cap is 1")]))
SHARED = Plan(decisions=decisions(held=[BrokerHold(1, Reason.SYSTEMIC_CAUSE, "2 of 3 brokers are sick")]))

WORST_FIRST: dict[str, tuple[Report, bool, str]] = {
    "no leader": (of(partition(leader=None, isr=())), True, "OfflinePartitions"),
    "under min.insync.replicas": (of(partition(isr=(1,)), partition(index=1, isr=(1,))), True, "UnderMinIsr"),
    "a demotion that the cap blocks": (of(plan=CAP, sick=[1]), False, "CapReached"),
    "a user without the right to move leaders": (immovable(), False, "RequestRefused"),
    "no capacity": (of(policy=FULL, plan=held(Reason.CAPACITY_REACHED)), False, "CapacityReached"),
    "only observed": (of(policy=OBSERVE, plan=Plan(decisions=decisions(2, 3))), True, "NotEnforcing"),
    "sick, and not demoted yet": (of(sick=[1]), True, "ExternallyUnreachable"),
    "at min.insync.replicas": (of(partition(isr=(1, 2))), True, "AtMinIsr"),
    "down": (of(down=[2]), True, "BrokerDown"),
    "suspect, and probes lose requests": (disputed(), True, "VantageConflict"),
    "aborted": (of(result=ExecutionResult(stopped=Refusal(Reason.NO_ANSWER, "no answer in 2 s"))), True, "NoAnswer"),
    "a drain that is held": (held_drain(), True, "AnotherBrokerUnhealthy"),
    "blind": (of(unknown=[1, 2, 3]), False, "NoEvidence"),
    "without the listener that is asked": (hidden(), True, "ListenerMissing"),
    "a broken link": (apart(), True, "BrokenLink"),
    "acks=all delayed": (slow(), True, "ReplicationLagging"),
    "a removed broker in a replica list": (
        of(partition(replicas=(1, 2, 9), isr=(1, 2)), min_isr=1, removed=(9,)), True, "RemovedBroker",
    ),
    "unknown rack": (of(policy=NO_RACK), True, "PlacementUnsuitable"),
    "a failed log directory": (of(partition(isr=(1, 2), offline=[3]), min_isr=1), True, "LogDirOffline"),
    "under-replicated": (of(partition(isr=(1, 2)), min_isr=1), True, "UnderReplicated"),
    "suspended": (of(policy=SUSPENDED), True, "NotEnforcing"),
    "moving": (of(plan=Plan((move(),))), True, "LeadersMoving"),
    "demoted": (of(plan=Plan(decisions=decisions(1))), True, "BrokerDemoted"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORST_FIRST)
def test_ready_names_it(case: str):
    report, status, reason = WORST_FIRST[case]
    ready = report.condition("Ready")
    assert (ready.status, ready.reason) == (status, reason)
    assert_wording(ready.message)


def test_every_rank_has_a_case():
    assert len(WORST_FIRST) == len(RANKS)


def test_the_worst_comes_first_and_the_rest_follows():
    """One demoted, one frozen, one that leads everything, and every partition at min.insync.replicas."""
    left = [partition(index=i, replicas=(3, 1, 2), isr=(3, 1)) for i in range(60)]
    ready = of(*left, plan=Plan(decisions=decisions(1)), down=[2], sick=[1]).condition("Ready")
    assert (ready.status, ready.reason) == (True, Reason.AT_MIN_ISR)
    assert_wording(ready.message)


def test_a_healthy_broker_demoted_by_a_person_is_named_apart():
    by_hand = {1: demoted(1), 3: demoted(3, Cause.OVERRIDE)}
    ready = of(plan=Plan(decisions=Decisions(by_hand)), sick=[1]).condition("Ready")
    assert_wording(ready.message)


def test_shared_cause_keeps_policy_from_its_work_whatever_is_worse():
    ready = of(partition(leader=None, isr=()), plan=SHARED, sick=[1, 2]).condition("Ready")
    assert (ready.status, ready.reason) == (False, Reason.OFFLINE_PARTITIONS)
    assert_wording(ready.message)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(immovable(proving=True), id="its brokers are still asked what they hold"),
        pytest.param(immovable(OBSERVE), id="a policy that only observes needs no such right"),
    ],
)
def test_what_lets_nothing_move_is_no_block_where(report: Report):
    ready = report.condition("Ready")
    assert (ready.status, NO_RIGHT in ready.message) == (True, False)


def test_tools_do_not_wait_for_the_end_of_a_suspension():
    assert of(policy=SUSPENDED, unknown=[1, 2, 3]).condition("Ready").status is True


def test_a_suspended_policy_says_whom_it_would_demote():
    ready = of(policy=SUSPENDED, plan=Plan(decisions=decisions(1)), sick=[1]).condition("Ready")
    assert_wording(ready.message)


def test_one_unjudged_broker_does_not_make_policy_blind():
    ready = of(unknown=[3]).condition("Ready")
    assert ready.status
    assert_wording(ready.message)


def test_down_broker_does_not_hide_that_nothing_is_seen():
    assert of(unknown=[1, 2], down=[3]).condition("Ready").status is False


def test_moves_that_wait_are_counted_by_reason():
    ready = of(plan=held(Reason.ONLY_REPLICA)).condition("Ready")
    assert ready.reason == Reason.MOVES_BLOCKED
    assert_wording(ready.message)


def test_a_limit_by_load_without_loads_is_named():
    ready = of(policy=LIMITED).condition("Ready")
    assert (ready.status, ready.reason) == (True, Reason.NO_EVIDENCE)


def test_of_many_brokers_some_are_named():
    seen = cluster(partition(), brokers=9)
    ready = said(snapshot(seen), ENFORCE, verdicts(seen, down=range(2, 10))).condition("Ready")
    assert_wording(ready.message)


def test_failing_broker_is_named_before_unknown_ones():
    seen = cluster(partition())
    fact = EvidenceItem("ExternalReachability", "a", Reading.FAILING, None)
    judged = verdicts(seen, unknown=[2, 3])
    judged[3] = replace(judged[3], facts=(fact,), message="cannot be reached from a")
    ready = said(snapshot(seen), ENFORCE, judged).condition("Ready")
    assert_wording(ready.message)

"""What is worth an event: changes, once, with a warning where a person should look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.controllers.reporting.events import NOTES_SHOWN, News, news, of_rebalance
from bellwether.core.detection.health_states import HealthState
from bellwether.core.execution.recovery import RecoveryNote
from bellwether.core.execution.reorder_checks import ExecutionResult
from bellwether.core.model.refusals import BrokerHold, Refusal
from bellwether.core.planning.plan import Plan
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Demotion, Mode, Policy, Promotion, PromotionWaves
from bellwether.core.signals import Reading
from bellwether.ports.rebalance import RunState
from testkit.messages import assert_wording
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import (
    after,
    cluster,
    decisions,
    partition,
    returning,
    said,
    site,
    snapshot,
    verdict,
    verdicts,
)
from testkit.values.rebalances import rebalance

ENFORCE = Policy(name="main", mode=Mode.ENFORCE, demotion=Demotion(dwell_seconds=2))
SEEN = cluster(partition())
WELL = said(policy=ENFORCE)


def noted(before: Report | None, now: Report) -> list[tuple[str, int | None, bool]]:
    return [(str(n.reason), n.broker, n.warning) for n in news(before, now)]


def with_standing(state: HealthState) -> Report:
    return said(snapshot(now=after(60)), ENFORCE, {**verdicts(SEEN), 1: verdict(1, state)})


@pytest.mark.parametrize(
    ("state", "first", "later"),
    [
        pytest.param(HealthState.HEALTHY, [], [], id="healthy"),
        pytest.param(HealthState.UNKNOWN, [], [("NoEvidence", 1, False)], id="unknown"),
        pytest.param(HealthState.SUSPECT, [("VantagesDisagree", 1, False)], None, id="suspect"),
        pytest.param(HealthState.SICK, [("ExternallyUnreachable", 1, True)], None, id="sick"),
        pytest.param(HealthState.DOWN, [("BrokerDown", 1, True)], None, id="down"),
        pytest.param(HealthState.RECOVERING, [("Stabilizing", 1, False)], None, id="recovering"),
    ],
)
def test_a_verdict_is_news_when_it_changes_and_after_a_start_when_out_of_the_ordinary(
    state: HealthState, first: list[object], later: list[object] | None
):
    now = with_standing(state)
    assert noted(None, now) == first
    assert noted(WELL, now) == (first if later is None else later)
    assert noted(now, now) == []


def test_a_policy_that_is_suspended_is_an_event_once():
    idle = said(policy=replace(ENFORCE, suspend=True))
    assert noted(WELL, idle) == [("NotEnforcing", None, False)]
    assert noted(None, idle) == [("NotEnforcing", None, False)]
    assert noted(idle, idle) == []


def test_a_broker_that_a_suspended_policy_would_demote_is_a_warning_once():
    suspended, judged = replace(ENFORCE, suspend=True), verdicts(SEEN, sick=[1])
    idle = said(policy=suspended)
    now = said(policy=suspended, plan=Plan(decisions=decisions(1)), judged=judged)
    assert ("NotEnforcing", None, True) in noted(idle, now)
    assert noted(now, now) == []
    assert ("NotEnforcing", None, True) not in noted(now, idle)


def test_a_broker_that_is_down_for_maintenance_is_no_warning():
    planned = verdict(1, HealthState.DOWN, Reason.IN_MAINTENANCE)
    assert noted(WELL, said(policy=ENFORCE, judged={**verdicts(SEEN), 1: planned})) == [("InMaintenance", 1, False)]


def test_partitions_without_a_replica_to_spare_are_a_warning_once():
    short = replace(snapshot(cluster(partition(isr=(1, 2)))), floors={"orders": 2})
    now = said(short, ENFORCE)
    assert noted(WELL, now) == [("AtMinIsr", None, True)]
    assert noted(now, now) == []


def test_a_policy_that_sees_nothing_is_a_warning_after_a_minute():
    blind = verdicts(SEEN, unknown=[1, 2, 3])
    young, old = (said(snapshot(now=after(seconds)), ENFORCE, blind) for seconds in (59, 60))
    assert noted(None, young) == []
    assert noted(young, old) == [("NoEvidence", None, True)]


def unripe(*brokers: int, plan: Plan | None = None) -> Report:
    """These have just become sick."""
    judged = {**verdicts(SEEN), **{b: verdict(b, HealthState.SICK) for b in brokers}}
    return said(snapshot(now=after(1)), ENFORCE, judged, plan)


def test_that_a_broker_is_sick_is_news_once_it_has_dwelt():
    assert noted(WELL, unripe(1)) == noted(None, unripe(1)) == []
    assert noted(unripe(1), with_standing(HealthState.SICK)) == [("ExternallyUnreachable", 1, True)]


def test_a_shared_cause_gives_one_event_for_each_broker():
    judged = {b: verdict(b, HealthState.SUSPECT, Reason.SYSTEMIC_CAUSE) for b in (1, 2, 3)}
    assert noted(unripe(1), said(policy=ENFORCE, judged=judged)) == [("SystemicCause", b, False) for b in (1, 2, 3)]


def test_a_demotion_by_a_person_gives_an_event_at_once():
    assert noted(WELL, unripe(1, plan=Plan(decisions=decisions(1)))) == [("Demoted", 1, True)]


def test_that_the_sick_are_held_is_news_once_one_of_them_has_dwelt():
    plan = Plan(decisions=decisions(held=[BrokerHold(b, Reason.SYSTEMIC_CAUSE, "half of them") for b in (1, 2)]))
    young = unripe(1, 2, plan=plan)
    assert noted(WELL, young) == []
    old = said(snapshot(now=after(60)), ENFORCE, {**verdicts(SEEN), 1: verdict(1, HealthState.SICK)}, plan)
    assert ("SystemicCause", None, True) in noted(young, old)


def test_recovery_is_news():
    assert noted(with_standing(HealthState.SICK), WELL) == [("SignalsPassing", 1, False)]


def test_a_demotion_and_its_end_are_news_of_the_broker():
    now = said(policy=ENFORCE, plan=Plan(decisions=decisions(1)))
    assert noted(WELL, now) == [("Demoted", 1, True)]
    assert noted(now, WELL) == [("Promoted", 1, False)]
    assert noted(now, now) == []


def test_moved_leaders_are_news_of_the_policy():
    (item,) = news(WELL, said(policy=ENFORCE, result=ExecutionResult(4, 2)))
    assert item == News("LeadersMoved", "4 partitions reordered, 2 leaders elected")


def test_a_stopped_run_is_a_warning():
    stopped = said(policy=ENFORCE, result=ExecutionResult(stopped=Refusal(Reason.NO_ANSWER, "no answer in 2 s")))
    assert noted(WELL, stopped) == [("NoAnswer", None, True)]


def test_notes_on_baselines_become_events_up_to_a_bound():
    notes = tuple(RecoveryNote("orders", i, Reason.CHANGED_SINCE_PLAN, "gone") for i in range(NOTES_SHOWN + 5))
    items = list(news(WELL, said(policy=ENFORCE, notes=notes)))
    assert len(items) == NOTES_SHOWN
    assert items[0].message == "orders-0: gone"


def test_only_a_contest_among_them_is_a_warning():
    notes = tuple(
        RecoveryNote("orders", 0, r, "so")
        for r in (Reason.ORDER_OVERWRITTEN, Reason.CHANGED_SINCE_PLAN, Reason.CHANGED_SINCE_PLAN)
    )
    assert [n.warning for n in news(WELL, said(policy=ENFORCE, notes=notes))] == [True, False, False]


def test_a_held_demotion_is_a_warning_until_it_says_something_else():
    held = said(plan=Plan(decisions=decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "the cap is 1")])))
    other = said(plan=Plan(decisions=decisions(held=[BrokerHold(1, Reason.CAP_REACHED, "the cap is 2")])))
    assert noted(WELL, held) == noted(None, held) == noted(held, other) == [("CapReached", None, True)]
    assert noted(held, held) == []
    assert noted(held, WELL) == []


def test_time_that_passes_is_no_news():
    assert noted(WELL, replace(WELL, now=snapshot().now)) == []


def test_a_follower_that_holds_acks_all_back_is_news_once():
    seen = cluster(partition(replicas=(2, 1, 3)))
    slow = {**verdicts(seen), 1: replace(verdict(1, HealthState.HEALTHY), slow=Reason.REPLICATION_LAGGING)}
    before, now = said(snapshot(seen), ENFORCE), said(snapshot(seen), ENFORCE, slow)
    assert noted(before, now) == [("HoldsBackISR", 1, True)]
    assert noted(now, now) == noted(now, before) == []


def told_of(before: LeaderRebalanceStatus | None, now: LeaderRebalanceStatus | None) -> list[tuple[str, str, bool]]:
    return [(str(n.reason), n.message, n.warning) for n in of_rebalance(before, now)]


def test_a_rebalance_that_comes_further_is_news_with_a_warning_where_it_failed():
    running = rebalance(RunState.RUNNING, Reason.PLANNING, "a job runs")
    proposed = rebalance(RunState.PROPOSED, Reason.PLAN_PROPOSED, "a plan waits", digest="0123456789abcdef")
    failed = rebalance(RunState.FAILED, Reason.JOB_FAILED, "out of memory")
    assert told_of(running, proposed) == [("PlanProposed", "Proposed: a plan waits", False)]
    assert told_of(running, failed) == [("JobFailed", "Failed: out of memory", True)]


def test_a_wave_more_is_no_news_and_neither_is_a_start():
    applying = rebalance(RunState.APPLYING, Reason.APPLYING, "3 of 9", digest="0123456789abcdef", applied=3)
    assert told_of(applying, applying.model_copy(update={"applied": 6, "message": "6 of 9"})) == []
    assert told_of(None, applying) == []
    assert told_of(applying, None) == []


def test_a_drain_is_news_and_nobodys_bad_night():
    made = site(3).well()
    operator = Operator(made).reconciles(1)
    made.signals.drain(1)
    operator.reconciles(3)
    first, moving, drained, rest = operator.reports
    verdict_on = ("InMaintenance", 1, False)
    assert [n for n in noted(first, moving) if n[1] == 1] == [("Demoted", 1, False)]
    assert [n for n in noted(moving, drained) if n[1] == 1] == [verdict_on, ("LeadsNothing", 1, False)]
    assert noted(drained, rest) == []


def test_a_restart_in_the_middle_of_a_way_back_is_no_relapse():
    made = site(3, {"orders": 60}).well()
    operator = Operator(
        made, replace(POLICY, promotion=Promotion(stabilization_seconds=1, waves=PromotionWaves(skip_up_to_leaders=0)))
    )
    operator.reconciles(1)
    made.signals.say(1, Reading.FAILING)
    operator.reconciles(2)
    made.signals.say(1, Reading.PASSING)
    operator.reconciles(4)
    assert operator.reports[-1].brokers[0].restoration is not None
    made.signals.drain(1)
    operator.reconciles(1)
    events = noted(operator.reports[-2], operator.reports[-1])
    assert ("Demoted", 1, False) in events
    assert "WaveRolledBack" not in {e[0] for e in events}


def at(share: int | None, *demoted: int) -> Report:
    """Broker 1 with that share of its leaders back; None where it is not on the way back."""
    back = [] if share is None else [returning(1, share)]
    return said(policy=ENFORCE, plan=Plan(decisions=decisions(*demoted, back=back)))


@pytest.mark.parametrize(
    ("before", "now", "reasons"),
    [
        pytest.param(at(None, 1), at(10), [("Promoted", False), ("LeadersReturning", False)], id="it begins"),
        pytest.param(at(10), at(10), [], id="unchanged"),
        pytest.param(at(10), at(50), [("LeadersReturning", False)], id="it goes on"),
        pytest.param(at(50), at(None), [("LeadersReturned", False)], id="it ends"),
        pytest.param(at(50), at(None, 1), [("Demoted", True), ("WaveRolledBack", True)], id="a relapse"),
        pytest.param(at(50), at(0), [("WaveRolledBack", True)], id="it went down"),
        pytest.param(at(None, 1), at(None), [("Promoted", False)], id="all at once"),
        pytest.param(None, at(10), [("LeadersReturning", False)], id="after a start"),
    ],
)
def test_a_changed_restoration_gives_an_event(before: Report | None, now: Report, reasons: list[tuple[str, bool]]):
    assert [(str(n.reason), n.warning) for n in news(before, now)] == reasons


def test_events_of_restorations_name_wave_and_lost_seconds():
    (first, second) = [n.message for n in news(at(None, 1), at(10)) if n.broker == 1]
    assert_wording(second)
    assert "its leaders are restored" in first
    rolled = next(n for n in news(at(50), at(None, 1)) if n.reason == "WaveRolledBack")
    assert_wording(rolled.message)

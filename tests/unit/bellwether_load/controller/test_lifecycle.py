"""The life of a rebalance: when one is due, what may follow which state, and on whose request."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from bellwether.api.v1alpha1.status.rebalance_status import SkippedReason
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.undo_record import ApplicationEnd, SkippedPartition
from bellwether.core.reasons import Reason
from bellwether.core.settings.rebalance import Approval, Rebalance
from bellwether.core.settings.schedule import Schedule
from bellwether.core.waves.rebalance_waves import EXPIRED_MESSAGE
from bellwether.ports.rebalance import RunState
from bellwether.simulation.memory_world import START
from bellwether_load.controller.lifecycle import (
    APPROVED_MESSAGE,
    FOLLOWS,
    UNDER_WAY,
    Run,
    become,
    on_judged,
    on_planned,
    on_progress,
    on_started,
    on_superseded,
    run_due,
    with_next_run_time,
)
from bellwether_load.controller.reported_figures import plan_figures
from bellwether_load.plan.certificate import HourlyProof
from bellwether_load.plan.forecast import BrokerHour, Forecast
from bellwether_load.plan.plan_losses import PlanLoss, PlanLosses, WorstLoss
from bellwether_load.plan.rebalance_plan import RebalancePlan
from testkit.loads.approved_plans import DIGEST, application
from testkit.loads.plan_pages import small_plan
from testkit.loads.small_planner import loads, problem, slot
from testkit.loads.small_planner import planned as plan_for
from testkit.messages import assert_wording
from testkit.values.builders import after
from testkit.values.rebalances import plan_figures as figures_of_a_plan

NIGHTLY = Rebalance(schedule=Schedule("0 4 * * *"))
BY_HAND = Rebalance()
AUTOMATIC = Rebalance(approval=Approval.AUTOMATIC)
DAY = 86400.0
FIGURES = figures_of_a_plan()
SKIPPED = (SkippedReason(reason="ChangedSincePlan", count=1),)


def a_plan(*rates: float) -> RebalancePlan:
    """Everything led by broker 1, at these rates."""
    posed = problem(*(slot(i, (1, 2, 3)) for i in range(len(rates))))
    return plan_for(posed, loads(posed, *rates))[0]


def run(state: RunState = RunState.IDLE, **more: Any) -> Run:
    """A run in that state, with a plan where there is one."""
    has = state not in (RunState.IDLE, RunState.RUNNING)
    given = {"digest": DIGEST, "made_at": START, "plan": FIGURES} if has else {}
    return Run(**{"state": state, "run": "at-1", "started_at": START, **given, **more})


def by_hours(bound: float | None) -> RebalancePlan:
    """A plan whose busiest hour is proved to be no lower than the bound."""
    plan = small_plan()[0]
    proof = None if bound is None else HourlyProof({1: {1: 1}}, 0, None, bound)
    week = Forecast(168, BrokerHour(1, 1, 20.4), BrokerHour(1, 2, 10.0))
    return replace(plan, forecast=week, certificate=replace(plan.certificate, hourly=proof))


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}+00:00")


class TestDue:
    def test_without_schedule_and_request_nothing_is_due(self):
        assert run_due(with_next_run_time(Run(), BY_HAND, START), "", after(100 * DAY)) is None

    def test_the_time_of_the_schedule_is_due_when_it_comes_and_not_before(self):
        noted = with_next_run_time(Run(), NIGHTLY, START)
        assert noted.next_at is not None
        assert run_due(noted, "", noted.next_at.replace(microsecond=0) - (after(1) - START)) is None
        assert run_due(noted, "", noted.next_at) == f"at-{noted.next_at:%Y%m%d}-0400"

    def test_a_missed_time_is_due_later_under_the_same_name(self):
        noted = with_next_run_time(Run(), NIGHTLY, START)
        much_later = after(3 * DAY)
        assert run_due(with_next_run_time(noted, NIGHTLY, much_later), "", much_later) == run_due(
            noted, "", noted.next_at or START
        )

    def test_what_a_person_asks_for_is_due_once(self):
        name = run_due(Run(), "2026-11-21T12:00:00Z", START)
        assert name is not None
        assert name.startswith("asked-")
        begins = on_started(Run(), name, "2026-11-21T12:00:00Z", BY_HAND, START)
        ended = begins.model_copy(update={"state": RunState.DONE})
        assert run_due(ended, "2026-11-21T12:00:00Z", after(5)) is None
        assert run_due(ended, "2026-11-21T13:00:00Z", after(5)) not in (None, name)

    def test_a_word_that_is_used_again_names_another_run(self):
        names, ended = [], Run()
        for word in ("now", "again", "now", "again"):
            name = run_due(ended, word, START)
            assert name is not None
            assert name == run_due(ended, word, after(9)), "the same after a kill"
            names.append(name)
            ended = on_started(ended, name, word, BY_HAND, START).model_copy(update={"state": RunState.DONE})
        assert len(set(names)) == 4

    @pytest.mark.parametrize("state", [RunState.RUNNING, *sorted(UNDER_WAY)])
    def test_nothing_is_due_while_a_job_runs_or_a_plan_is_applied(self, state: RunState):
        assert run_due(run(state, next_at=START), "now", after(DAY)) is None

    @pytest.mark.parametrize("state", sorted(set(RunState) - UNDER_WAY - {RunState.RUNNING}))
    def test_in_every_other_state_the_schedule_and_a_person_begin_another(self, state: RunState):
        assert run_due(run(state, next_at=START), "", START) is not None
        assert run_due(run(state), "now", START) is not None

    def test_after_a_stale_plan_another_is_due_an_hour_after_the_last_one_began(self):
        assert run_due(run(RunState.STALE), "", after(3599)) is None
        assert run_due(run(RunState.STALE), "", after(3600)) == f"after-{DIGEST}"

    def test_a_failure_is_tried_again_when_it_is_due_and_not_before(self):
        failed = with_next_run_time(run(RunState.FAILED), NIGHTLY, START)
        assert run_due(failed, "", after(3600)) is None
        assert run_due(failed, "", after(DAY)) is not None


class TestBegun:
    def test_a_run_begins_with_nothing_of_the_last_one(self):
        begins = on_started(
            run(RunState.DONE, applied=6, skipped=1, skipped_by_reason=SKIPPED), "at-2", "asked", NIGHTLY, after(9)
        )
        assert begins == Run(
            state=RunState.RUNNING,
            reason=Reason.PLANNING,
            message="A job measures loads and computes a plan.",
            run="at-2",
            request="asked",
            started_at=after(9),
            next_at=NIGHTLY.schedule.after(after(9)) if NIGHTLY.schedule else None,
        )

    def test_a_plan_that_was_proposed_before_can_be_approved_no_more_and_that_is_said(self):
        begins = on_started(run(RunState.PROPOSED), "at-2", "", BY_HAND, START)
        assert_wording(begins.message)
        assert on_judged(begins, BY_HAND, DIGEST, START) == begins


class TestPlanned:
    def test_a_plan_that_is_worth_while_is_proposed_with_its_figures(self):
        plan = a_plan(100.0, 100.0, 100.0)  # each costs its leader 300 and its followers 100: from 900 to 500
        found = on_planned(run(RunState.RUNNING), plan, BY_HAND)
        assert (found.state, found.reason, found.digest) == (RunState.PROPOSED, Reason.PLAN_PROPOSED, plan.digest)
        assert found.plan == plan_figures(plan)
        assert (found.plan.moves, found.plan.reorders) == (2, 0)
        assert found.made_at == plan.made_at
        assert_wording(found.message)

    def test_a_plan_without_moves_is_not_proposed(self):
        found = on_planned(run(RunState.RUNNING), a_plan(), replace(BY_HAND, minimum_improvement_percent=0))
        assert (found.state, found.reason) == (RunState.IDLE, Reason.NO_PLAN_PENDING)
        assert_wording(found.message)

    def test_a_plan_that_improves_too_little_is_not_proposed(self):
        found = on_planned(
            run(RunState.RUNNING), a_plan(100.0, 100.0), replace(BY_HAND, minimum_improvement_percent=60)
        )
        assert (found.state, found.reason) == (RunState.IDLE, Reason.NO_PLAN_PENDING)
        assert "minimumImprovementPercent (60)" in found.message

    @pytest.mark.parametrize(("rates", "least", "proposed"), [(5, 40, True), (8, 41, True), (8, 42, False)])
    def test_an_improvement_that_is_just_enough_is_proposed(self, rates: int, least: int, proposed: bool):
        """Three brokers, of which one led everything: five equal loads improve by 40 %, eight by 41.7 %."""
        settings = replace(BY_HAND, minimum_improvement_percent=least)
        found = on_planned(run(RunState.RUNNING), a_plan(*[100.0] * rates), settings)
        assert (found.state is RunState.PROPOSED) is proposed

    def test_leaders_that_may_not_stay_are_reason_enough_however_little_it_improves(self):
        found = on_planned(
            run(RunState.RUNNING), a_plan(100.0, 100.0), replace(BY_HAND, minimum_improvement_percent=60), 1
        )
        assert found.state is RunState.PROPOSED
        assert_wording(found.message)

    def test_a_load_that_rises_is_not_said_to_fall(self):
        plan = a_plan(100.0)
        more = tuple(replace(b, after=plan.before.max * 1.25) for b in plan.brokers)
        worse = plan_figures(replace(plan, brokers=more))
        said = on_judged(run(RunState.PROPOSED, plan=worse, reason=Reason.OTHER_PLAN_APPROVED), BY_HAND, "", START)
        assert_wording(said.message)

    @pytest.mark.parametrize(("bound", "said"), [(None, "highest load falls"), (8.0, "load of the busiest hour falls")])
    def test_a_plan_with_a_bound_by_hours_is_judged_by_its_busiest_hour(self, bound: float | None, said: str):
        assert said in on_planned(Run(state=RunState.RUNNING), by_hours(bound), BY_HAND).message


class TestJudged:
    def test_a_person_approves_by_naming_the_digest(self):
        assert on_judged(run(RunState.PROPOSED), BY_HAND, DIGEST, START).state is RunState.APPROVED

    def test_an_automatic_policy_approves_by_itself(self):
        assert on_judged(run(RunState.PROPOSED), AUTOMATIC, "", START).state is RunState.APPROVED

    def test_another_digest_approves_nothing_and_that_is_said(self):
        found = on_judged(run(RunState.PROPOSED), BY_HAND, "f" * 16, START)
        assert (found.state, found.reason) == (RunState.PROPOSED, Reason.OTHER_PLAN_APPROVED)
        assert_wording(found.message)
        again = on_judged(found, BY_HAND, "", START)
        assert (again.state, again.reason) == (RunState.PROPOSED, Reason.PLAN_PROPOSED)

    def test_without_an_approval_nothing_changes(self):
        assert on_judged(run(RunState.PROPOSED), BY_HAND, "", START) == run(RunState.PROPOSED)

    def test_an_approval_that_comes_too_late_approves_nothing(self):
        found = on_judged(run(RunState.PROPOSED), BY_HAND, DIGEST, after(DAY + 1))
        assert (found.state, found.reason) == (RunState.IDLE, Reason.PLAN_EXPIRED)
        assert on_judged(found, BY_HAND, DIGEST, after(DAY + 2)) == found
        assert run_due(found, "", after(DAY + 7200)) is None

    @pytest.mark.parametrize("state", sorted(UNDER_WAY))
    def test_an_approval_that_is_taken_back_ends_the_waves_and_given_again_they_go_on(self, state: RunState):
        found = on_judged(run(state, applied=3), BY_HAND, "", START)
        assert found.state is RunState.PROPOSED
        assert_wording(found.message)
        assert on_progress(found, application(9, taken_up=3), None) == found
        assert on_judged(found, BY_HAND, DIGEST, START).state is RunState.APPROVED

    def test_plan_known_by_its_record_alone_can_be_approved(self):
        lost = run(RunState.PROPOSED, made_at=None)
        assert on_judged(lost, BY_HAND, DIGEST, after(2 * DAY)).state is RunState.APPROVED

    @pytest.mark.parametrize("state", sorted(set(RunState) - UNDER_WAY - {RunState.PROPOSED}))
    def test_in_no_other_state_an_approval_means_anything(self, state: RunState):
        assert on_judged(run(state), BY_HAND, DIGEST, after(2 * DAY)) == run(state)


class TestFollowed:
    def test_an_approved_plan_is_being_applied_once_the_record_says_so(self):
        found = on_progress(run(RunState.APPROVED), application(9, taken_up=3, left={"ChangedSincePlan": 1}), None)
        assert (found.state, found.reason, found.applied, found.skipped) == (RunState.APPLYING, Reason.APPLYING, 2, 1)
        assert_wording(found.message)

    def test_what_the_next_wave_waits_for_is_said(self):
        waits = Refusal(Reason.ANOTHER_BROKER_UNHEALTHY, "waits for broker 2 (Sick), eligible when the plan was made")
        found = on_progress(run(RunState.APPLYING), application(9, taken_up=3), waits)
        assert (found.state, found.reason) == (RunState.APPLYING, Reason.ANOTHER_BROKER_UNHEALTHY)
        assert_wording(found.message)

    def test_what_the_first_wave_waits_for_is_said(self):
        waits = Refusal(Reason.NOT_ENFORCING, "The policy is suspended.")
        found = on_progress(run(RunState.APPROVED), None, waits)
        assert (found.state, found.reason) == (RunState.APPROVED, Reason.NOT_ENFORCING)
        assert on_progress(found, None, None).reason == Reason.APPLYING

    @pytest.mark.parametrize(
        ("ending", "state", "reason"),
        [
            (ApplicationEnd.DONE, RunState.DONE, Reason.NO_PLAN_PENDING),
            (ApplicationEnd.STALE, RunState.STALE, Reason.NO_PLAN_PENDING),
            (ApplicationEnd.SUPERSEDED, RunState.SUPERSEDED, Reason.NO_PLAN_PENDING),
        ],
    )
    @pytest.mark.parametrize("before", sorted(UNDER_WAY))
    def test_the_end_of_a_plan_is_its_runs_end(
        self, before: RunState, ending: ApplicationEnd, state: RunState, reason: Reason
    ):
        named = (SkippedPartition("orders", 1, "ChangedSincePlan"),)
        ended = application(9, taken_up=9, left={"ChangedSincePlan": 1}, sample=named, ended=ending, message="so it is")
        found = on_progress(run(before), ended, None)
        assert (found.state, found.reason, found.skipped_by_reason) == (state, reason, SKIPPED)
        assert [(one.topic, one.partition, one.reason) for one in found.skipped_sample] == [*named]

    def test_a_plan_that_grew_too_old_on_the_way_says_so(self):
        text = EXPIRED_MESSAGE
        found = on_progress(
            run(RunState.APPLYING), application(9, taken_up=3, ended=ApplicationEnd.STALE, message=text), None
        )
        assert (found.state, found.reason) == (RunState.STALE, Reason.PLAN_EXPIRED)
        assert_wording(found.message)

    @pytest.mark.parametrize("state", [RunState.RUNNING, RunState.PROPOSED, RunState.APPROVED, RunState.SUPERSEDED])
    def test_what_status_knows_is_newer_than_another_plan_of_the_record(self, state: RunState):
        newer = run(state, digest="f" * 16, reason=Reason.APPLYING, message=APPROVED_MESSAGE)
        assert on_progress(newer, application(9, taken_up=3), None) == newer
        assert on_progress(newer, application(9, taken_up=9, ended=ApplicationEnd.DONE), None) == newer

    @pytest.mark.parametrize("state", [RunState.IDLE, RunState.DONE, RunState.STALE, RunState.FAILED])
    def test_a_plan_of_the_record_that_status_has_lost_is_gone_on_with(self, state: RunState):
        found = on_progress(run(state, digest="f" * 16), application(9, taken_up=3), None, asked="please")
        assert (found.state, found.digest, found.applied) == (RunState.APPLYING, DIGEST, 3)
        assert on_superseded(found, "please") == found  # the request was for this one

    def test_a_plan_that_could_not_be_gone_on_with_is_not_begun_over_and_over(self):
        failed = run(RunState.FAILED)
        assert on_progress(failed, application(9, taken_up=3), None) == failed

    def test_a_plan_that_has_ended_changes_no_later_state(self):
        done = run(RunState.DONE)
        assert on_progress(done, application(9, taken_up=9, ended=ApplicationEnd.DONE), None) == done


class TestSuperseded:
    @pytest.mark.parametrize("state", sorted(UNDER_WAY))
    def test_a_person_who_asks_for_another_plan_ends_the_one_that_is_applied(self, state: RunState):
        found = on_superseded(run(state, request="old"), "new")
        assert (found.state, found.reason) == (RunState.SUPERSEDED, Reason.NO_PLAN_PENDING)
        assert run_due(found, "new", START) is not None
        assert on_superseded(run(state, request="new"), "new") == run(state, request="new")

    def test_a_job_that_runs_is_let_run(self):
        assert on_superseded(run(RunState.RUNNING), "new") == run(RunState.RUNNING)


def test_the_conditions_say_the_same_reason_and_which_of_them_holds():
    proposed, applying = (
        {c.type: (c.status, c.reason) for c in run(state, reason=Reason.APPLYING).said()}
        for state in (RunState.PROPOSED, RunState.APPLYING)
    )
    used = {"Ready": (True, Reason.UP_TO_DATE)}
    assert proposed == {**used, "RebalanceProposed": (True, Reason.APPLYING), "Rebalancing": (False, Reason.APPLYING)}
    assert applying == {**used, "RebalanceProposed": (False, Reason.APPLYING), "Rebalancing": (True, Reason.APPLYING)}


def test_a_reason_of_a_newer_version_is_kept_and_shown_as_one():
    newer = Run.model_validate({**Run().body(), "confidence": "high", "reason": "Unheard"})
    assert newer.reason == "Unheard"
    assert newer.said()[1].reason is Reason.OTHER_VERSION


def with_losses(plan: RebalancePlan) -> RebalancePlan:
    """A plan that lowers the worst loss of one broker from 1.75 of today's busiest one to 1.25 of its own."""
    before, after = WorstLoss("1", 2, 1.75 * plan.before.max), WorstLoss("3", 1, 1.25 * plan.after.max)
    loss = PlanLoss("broker", before, after, 1.2 * plan.after.max, {}, {}, None)
    return replace(plan, losses=PlanLosses((loss,)))


class TestLosses:
    PLAN = with_losses(a_plan(100.0, 90.0, 80.0))

    def test_a_run_reports_losses_now_planned_and_bound(self):
        found = on_planned(run(RunState.RUNNING), self.PLAN, BY_HAND).losses
        assert found is not None
        assert (found.broker.now.lost, found.broker.now.busiest, found.broker.now.ratio) == ("1", 2, "1.75")
        assert (found.broker.planned.ratio, found.broker.bound, found.limit) == ("1.25", "1.20", "1.60")
        assert found.rack is None

    def test_a_run_without_proposal_reports_losses(self):
        plan = replace(self.PLAN, moved=replace(self.PLAN.moved, partitions=0, reordered=0))
        found = on_planned(run(RunState.RUNNING), plan, BY_HAND)
        assert (found.state, found.losses is not None) == (RunState.IDLE, True)

    def test_too_little_measured_keeps_the_losses_of_earlier(self):
        first = on_planned(run(RunState.RUNNING), self.PLAN, BY_HAND)
        second = on_started(first, "at-2", "", BY_HAND, after(DAY))
        assert second.losses == first.losses
        unmeasured = replace(self.PLAN, losses=None, evidence=replace(self.PLAN.evidence, hours=0))
        assert on_planned(second, unmeasured, BY_HAND).losses == first.losses

    def test_a_capacity_below_the_multiple_is_the_limit(self):
        most = round(1.5 * self.PLAN.before.max)
        found = on_planned(run(RunState.RUNNING), self.PLAN, BY_HAND, max_load=most).losses
        assert found is not None
        assert (found.limit, found.planned_limit) == ("1.50", f"{min(1.6, most / self.PLAN.after.max):.2f}")

    @pytest.mark.parametrize(("skipped", "ratio"), [({}, "1.25"), ({"ChangedSincePlan": 1}, "1.75")])
    def test_a_complete_plan_makes_planned_losses_present_ones(self, skipped: dict[str, int], ratio: str):
        most = round(1.1 * self.PLAN.before.max)
        planned = on_planned(run(RunState.RUNNING), self.PLAN, AUTOMATIC, max_load=most)
        approved = on_judged(planned, AUTOMATIC, "", START)
        ended = replace(application(left=skipped, ended=ApplicationEnd.DONE, message="done"), digest=self.PLAN.digest)
        found = on_progress(approved, ended, None).losses
        assert found is not None
        assert found.broker.now.ratio == ratio
        busiest = self.PLAN.before.max if skipped else self.PLAN.after.max
        assert found.limit == f"{min(1.6, most / busiest):.2f}", "of the same busiest broker as the ratio"


def test_a_long_message_is_cut():
    assert len(become(Run(), RunState.IDLE, Reason.NO_PLAN_PENDING, "x" * 5000).message) == 1024


def test_every_state_has_successors_and_can_be_reached():
    assert set(FOLLOWS) == set(RunState)
    assert set().union(*FOLLOWS.values()) == set(RunState)


def test_a_state_that_may_not_follow_is_refused():
    with pytest.raises(ValueError, match="a run that is Idle cannot become Approved"):
        become(Run(), RunState.APPROVED, Reason.APPLYING)

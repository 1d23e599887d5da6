"""Lifecycle of a rebalance: due, planned by a job, proposed, approved, applied; every change of its state.

Pure: a run, inputs and the time in; the new run out. Every state transition is defined here; the rebalance controller
fetches the inputs and carries out what a state requires. Stored: the run in the policy's status, the progress of its
plan in the undo record, the plan itself in the store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from bellwether.api.v1alpha1.status.rebalance_status import (
    REQUEST_LIMIT,
    LeaderRebalanceStatus,
    Losses,
    SkippedPartition,
    SkippedReason,
)
from bellwether.api.v1alpha1.status.status_conditions import MESSAGE_LIMIT
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.undo_record import ApplicationEnd, PlanApplication
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.settings.rebalance import Approval, Rebalance
from bellwether.core.waves.rebalance_waves import EXPIRED_MESSAGE, SUPERSEDED_MESSAGE
from bellwether.ports.rebalance import RunState
from bellwether_load.controller.reported_figures import improvement, losses, plan_figures
from bellwether_load.plan.rebalance_plan import RebalancePlan

APPROVED_MESSAGE = "The plan is approved; its first wave has not started yet."

AGAIN = timedelta(hours=1)
"""After a plan became stale, the next one is requested no earlier than this after the last start."""


_BEGIN = frozenset({RunState.RUNNING})

FOLLOWS: Mapping[RunState, frozenset[RunState]] = {
    # The undo record may know of a plan that status has lost.
    RunState.IDLE: _BEGIN | {RunState.APPLYING},
    RunState.RUNNING: frozenset({RunState.PROPOSED, RunState.IDLE, RunState.FAILED}),
    RunState.PROPOSED: _BEGIN | {RunState.APPROVED, RunState.IDLE},
    RunState.APPROVED: frozenset(
        {RunState.APPLYING, RunState.DONE, RunState.STALE, RunState.SUPERSEDED, RunState.PROPOSED, RunState.FAILED}
    ),
    RunState.APPLYING: frozenset(
        {RunState.DONE, RunState.STALE, RunState.SUPERSEDED, RunState.PROPOSED, RunState.FAILED}
    ),
    RunState.DONE: _BEGIN | {RunState.APPLYING},
    RunState.FAILED: _BEGIN | {RunState.APPLYING},
    RunState.STALE: _BEGIN | {RunState.APPLYING},
    RunState.SUPERSEDED: _BEGIN,
}
"""Allowed transitions from each state."""

UNDER_WAY = frozenset({RunState.APPROVED, RunState.APPLYING})
"""States in which a plan is, or is about to be, applied."""


Run = LeaderRebalanceStatus
"""One rebalance and its result, as it is reported: an operator that takes over continues from it.

``run`` names its problem, its loads and its job. ``input_digest`` is of the problem as the operator wrote it: a plan
for another one is neither proposed nor applied.
"""


def become(run: Run, state: RunState, reason: Reason, message: str = "") -> Run:
    """The run in another state. Raises ValueError if the transition is not allowed."""
    if state is not run.state and state not in FOLLOWS[run.state]:
        raise ValueError(f"a run that is {run.state} cannot become {state}")
    return because(run.model_copy(update={"state": state}), reason, message or DESCRIPTIONS[reason])


def because(run: Run, reason: Reason, message: str) -> Run:
    """The run with another reason for its state."""
    return run.model_copy(update={"reason": str(reason), "message": message[:MESSAGE_LIMIT]})


def with_next_run_time(run: Run, settings: Rebalance, now: datetime) -> Run:
    """The run with its next scheduled time."""
    next_at = settings.schedule.due(run.next_at, now) if settings.schedule is not None else None
    return run if next_at == run.next_at else run.model_copy(update={"next_at": next_at})


def run_due(run: Run, request: str, now: datetime) -> str | None:
    """Name of the run to start now, if one is due. The same cause gives the same name, also after a kill.

    A person may repeat a request: after another run it is another cause.
    """
    if run.state is RunState.RUNNING or run.state in UNDER_WAY:
        return None
    if request and request != run.request:
        return f"asked-{hashlib.sha256(f'{run.run} {request}'.encode()).hexdigest()[:12]}"
    if run.next_at is not None and now >= run.next_at:
        return f"at-{run.next_at:%Y%m%d-%H%M}"
    if run.state is RunState.STALE and (run.started_at is None or now - run.started_at >= AGAIN):
        return f"after-{run.digest}"
    return None


def on_superseded(run: Run, request: str) -> Run:
    """A request for another plan ends the plan that is being applied."""
    if run.state in UNDER_WAY and request and request != run.request:
        return become(run, RunState.SUPERSEDED, Reason.NO_PLAN_PENDING, SUPERSEDED_MESSAGE)
    return run


def on_started(run: Run, name: str, request: str, settings: Rebalance, now: datetime) -> Run:
    """The run of that name, whose job is to start. An earlier proposed plan can no longer be approved."""
    fresh = Run(state=run.state, run=name, request=request[:REQUEST_LIMIT], started_at=now.replace(microsecond=0))
    fresh = fresh.model_copy(update={"losses": run.losses})  # true until the new run has measured
    text = DESCRIPTIONS[Reason.PLANNING]
    if run.state is RunState.PROPOSED:
        text = f"{text} The previous plan {run.digest} can no longer be approved."
    started = become(fresh, RunState.RUNNING, Reason.PLANNING, text)
    next_at = settings.schedule.after(now) if settings.schedule is not None else None
    return started.model_copy(update={"next_at": next_at})


def on_planned(
    run: Run,
    plan: RebalancePlan,
    settings: Rebalance,
    forced: int = 0,
    summary: Iterable[str] = (),
    max_load: int | None = None,
) -> Run:
    """The run whose job computed that plan, after the plan was verified.

    ``forced`` leaders may not stay where they are, for example in a rack that is not preferred. Then the plan is
    proposed however small its improvement. One that rests on too little is not. ``summary``: the plan in sentences.
    ``max_load``: what the policy lets a broker carry, in bytes/s per 100 of capacity.
    """
    figures = plan_figures(plan, summary)
    what, share = improvement(plan)
    found = run.model_copy(update={"digest": plan.digest, "made_at": plan.made_at, "plan": figures})
    least = settings.minimum_improvement_percent
    if missing := plan.missing(settings):
        return become(found, RunState.IDLE, Reason.TOO_LITTLE_MEASURED, f"no proposal: {missing}")
    found = found.model_copy(update={"losses": losses(plan, settings.maximum_loss_percent, max_load)})
    if not figures.moves + figures.reorders:
        return become(found, RunState.IDLE, Reason.NO_PLAN_PENDING, "no move would improve the balance of the leaders")
    if share * 100 < least and not forced:
        text = f"{what} would fall by {share:.1%}, less than spec.minimumImprovementPercent ({least})"
        return become(found, RunState.IDLE, Reason.NO_PLAN_PENDING, text)
    text = _proposal(found)
    if forced:
        text = f"{text}; {forced} leaders must move, for example out of a rack that is not preferred"
    return become(found, RunState.PROPOSED, Reason.PLAN_PROPOSED, text)


def on_judged(run: Run, settings: Rebalance, approved: str, now: datetime) -> Run:
    """A proposed plan after the approval check; ``approved`` is the digest in the annotation."""
    if run.state in UNDER_WAY and not _approves(run, settings, approved):
        done = run.applied + run.skipped
        text = f"{DESCRIPTIONS[Reason.PLAN_PROPOSED]} The approval was removed after {done} partitions."
        return become(run, RunState.PROPOSED, Reason.PLAN_PROPOSED, text)
    if run.state is not RunState.PROPOSED:
        return run
    # Of a plan that only the undo record knows the time is read with the plan, and its waves end it by that.
    if run.made_at is not None and settings.expired(run.made_at, now):
        return become(run, RunState.IDLE, Reason.PLAN_EXPIRED, EXPIRED_MESSAGE)
    if _approves(run, settings, approved):
        return become(run, RunState.APPROVED, Reason.APPLYING, APPROVED_MESSAGE)
    if approved:
        text = f"plan {run.digest} waits for approval; the annotation has {approved[:64]!r}, which is not its digest"
        return become(run, RunState.PROPOSED, Reason.OTHER_PLAN_APPROVED, text)
    if run.reason == Reason.OTHER_PLAN_APPROVED:
        return become(run, RunState.PROPOSED, Reason.PLAN_PROPOSED, _proposal(run))
    return run


def on_progress(run: Run, application: PlanApplication | None, waits: Refusal | None, asked: str = "") -> Run:
    """The run as the undo record shows it: the progress of its plan, and what the next wave waits for.

    ``asked`` is the current request: a plan that status has lost is taken to be the one for it.
    """
    other = application is not None and application.digest != run.digest
    if application is None or (other and (application.ended is not None or _busy(run))):
        return _waiting(run, waits)
    if run.state not in UNDER_WAY and (application.ended is not None or _busy(run) or not other):
        return run
    skipped = sum(application.left.values())
    run = run.model_copy(
        update={
            "request": run.request if run.state in UNDER_WAY else asked[:REQUEST_LIMIT],
            "input_digest": "" if other else run.input_digest,
            "digest": application.digest,
            "applied": application.taken_up - skipped,
            "skipped": skipped,
            "skipped_by_reason": tuple(
                SkippedReason(reason=why, count=count) for why, count in sorted(application.left.items())
            ),
            "skipped_sample": tuple(SkippedPartition(**one._asdict()) for one in application.sample),
        }
    )
    if application.ended is ApplicationEnd.DONE:
        run = run.model_copy(update={"losses": _as_planned(run)})
        return become(run, RunState.DONE, Reason.NO_PLAN_PENDING, application.message)
    if application.ended is ApplicationEnd.STALE:
        if application.message != EXPIRED_MESSAGE:
            return become(run, RunState.STALE, Reason.NO_PLAN_PENDING, application.message)
        text = f"{EXPIRED_MESSAGE} {application.taken_up} of {application.moves} partitions were processed."
        return become(run, RunState.STALE, Reason.PLAN_EXPIRED, text)
    if application.ended is ApplicationEnd.SUPERSEDED:
        return become(run, RunState.SUPERSEDED, Reason.NO_PLAN_PENDING, SUPERSEDED_MESSAGE)
    text = f"{application.taken_up} of {application.moves} partitions processed, {application.left_out} skipped"
    going_on = become(run, RunState.APPLYING, Reason.APPLYING, text)
    return going_on if waits is None else because(going_on, waits.reason, f"{text}; {waits.message}")


def _as_planned(run: Run) -> Losses | None:
    """The losses once the plan is applied: what it computed, unless partitions were skipped."""
    found = run.losses
    if found is None or run.skipped or run.plan is None:
        return found
    kinds = {"broker": found.broker, "rack": found.rack}
    done = {kind: of and of.model_copy(update={"now": of.planned}) for kind, of in kinds.items()}
    return found.model_copy(update=done | {"limit": found.planned_limit or found.limit})


def _busy(run: Run) -> bool:
    """Whether status has a newer run than the undo record."""
    return run.state in (RunState.RUNNING, RunState.PROPOSED, RunState.APPROVED, RunState.SUPERSEDED)


def _waiting(run: Run, waits: Refusal | None) -> Run:
    if run.state is not RunState.APPROVED:
        return run
    if waits is None:
        return become(run, RunState.APPROVED, Reason.APPLYING, APPROVED_MESSAGE)
    return become(run, RunState.APPROVED, waits.reason, f"approved; {waits.message}")


def _approves(run: Run, settings: Rebalance, approved: str) -> bool:
    return settings.approval is Approval.AUTOMATIC or (bool(run.digest) and approved == run.digest)


def _proposal(run: Run) -> str:
    figures = run.plan
    if figures is None:
        return DESCRIPTIONS[Reason.PLAN_PROPOSED]
    return f"plan {run.digest} waits for approval: {figures.moves} leaders move and {figures.improvement}"

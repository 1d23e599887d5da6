"""Sentences about a plan, for the terminal and the page: how good it is, what it rests on, what it takes and costs."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from bellwether.core.settings.objective import WHOLE
from bellwether.core.settings.rebalance import Rebalance, RebalanceWaves
from bellwether_load.page.figures import Unit, change, percent
from bellwether_load.page.plan_summary import Story
from bellwether_load.plan.rebalance_plan import BY_HAND, RebalancePlan

MOST_TOPICS = 5
"""Topics without measured consumption that are named."""


WAVES = Rebalance().waves


def summary(story: Story, waves: RebalanceWaves = WAVES) -> list[str]:
    """The plan in sentences: what it rests on first. The same in terminal and status."""
    plan, unit = story.plan, page_unit(story.plan)
    texts = (
        plan.evidence_line,
        verdict(plan, unit),
        faults_text(story),
        bound_text(story),
        cap_text(plan, unit),
        busiest_hour(plan, unit),
        plan.losses_line,
        unmeasured_text(story),
        waves_text(plan, waves),
    )
    return [text for text in texts if text]


def page_unit(plan: RebalancePlan) -> Unit:
    """The unit of all loads of a plan."""
    return Unit.of(max(plan.before.max, plan.after.max, plan.certificate.bound))


def measure(plan: RebalancePlan, unit: Unit) -> str:
    """What a relative load is measured in."""
    if any(b.capacity != WHOLE for b in plan.brokers):
        return f"load, {unit.name} per {WHOLE} units of capacity"
    return f"load, {unit.name}"


def no_proposal(plan: RebalancePlan) -> str | None:
    """What is missing for a proposal by the default minimum; None where enough is measured."""
    missing = plan.missing(Rebalance())
    return f"Too little is measured for a proposal, unless the minimum is lowered: {missing}." if missing else None


def verdict(plan: RebalancePlan, unit: Unit) -> str:
    """The plan in two sentences."""
    proof, gap, most = plan.certificate, plan.gap, unit.said(plan.after.max)
    if not plan.moved.partitions and not plan.moved.reordered:
        did = f"Nothing moves: the busiest broker stays at {most}"
    else:
        less = change(plan.before.max, plan.after.max)
        did = f"The busiest broker goes from {unit.said(plan.before.max)} to {most} ({less})"
    if gap is None:
        return f"{did}. There is no proof of how much lower it could be."
    few = f" that changes {plan.moved.partitions:,} leaders or fewer" if proof.move_weight else ""
    bound = f"No plan{few} can bring it below {unit.said(proof.bound)}"
    if gap <= 0:
        return f"{did}. {bound}, so this plan is optimal."
    near = "less than 0.01 %" if gap < 0.0001 else f"at most {percent(gap, 2)}"
    return f"{did}. {bound}, so this plan is {near} above the optimum."


def busiest_hour(plan: RebalancePlan, unit: Unit) -> str | None:
    """The busiest broker-hours before and after, and how far that is above the best possible; None without hours."""
    found, proof = plan.forecast, plan.certificate.hourly
    if found is None:
        return None
    before, after = found.before, found.after
    said = (
        f"By the hours of the week, the busiest broker carries {unit.said(before.load)} before (broker {before.broker},"
        f" {before.moment}) and {unit.said(after.load)} after (broker {after.broker}, {after.moment})."
    )
    if (requests := found.requests) is not None:
        counts = unit.said(plan.objective.request_bytes)
        before, after = requests.before, requests.after
        said += (
            f" By requests the busiest one gets {before.load:,.0f}/s before (broker {before.broker}, {before.moment})"
            f" and {after.load:,.0f}/s after (broker {after.broker}, {after.moment}); each counts as {counts}, and the"
            " higher load of both is lowered."
        )
        if plan.without_requests:
            said += f" The requests of {plan.without_requests:,} partitions are not measured and count as 0."
    if proof is None:
        return said
    few = f" that changes {plan.moved.partitions:,} leaders or fewer" if proof.move_weight else ""
    said += f" No plan{few} can bring it below {unit.said(proof.bound)}"
    if (gap := proof.gap(found.highest(plan.objective.request_bytes)[1])) is not None:
        said += f": this one is at most {percent(max(gap, 0.0), 2)} above the best possible"
    return f"{said}."


def unmeasured_text(story: Story) -> str | None:
    """Which consumption is not measured, and what that means; None if all is that weighs."""
    count, topics = story.plan.unmeasured, story.unmeasured
    if not count:
        return None
    said = (
        f"The consumption of {count:,} partitions is not measured. It counts as 0, so brokers with many consumers seem"
        " less loaded than they are: run the sampler with --prometheus."
    )
    if count == story.plan.partitions - story.plan.without_load or not topics:
        return said
    most = sorted(topics.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{topic} ({partitions:,})" for topic, partitions in most[:MOST_TOPICS])
    more = f" and {len(most) - MOST_TOPICS:,} more topics" if len(most) > MOST_TOPICS else ""
    return f"{said} Not measured: {named}{more}."


def faults_text(story: Story) -> str | None:
    """That the plan did not pass its verification, and why."""
    if not story.faults:
        return None
    more = f" (and {len(story.faults) - 3:,} more)" if len(story.faults) > 3 else ""
    return f"Do not approve this plan: it does not pass verification. {'; '.join(story.faults[:3])}{more}."


def waves_text(plan: RebalancePlan, waves: RebalanceWaves = WAVES) -> str:
    """What applying the plan takes and costs."""
    moved = plan.moved
    count = -(-(moved.partitions + moved.reordered) // waves.partitions)
    if not count:
        return "There is nothing to apply."
    pauses = (count - 1) * waves.pause_seconds
    pause = f" and pauses of {_duration(pauses)}" if pauses else ""
    order = " What relieves the busiest broker most comes first: a plan that is stopped has most of its gain."
    reorders = f", and {_many(moved.reordered, 'reorder')} without one" if moved.reordered else ""
    by = ", by the default settings" * (waves == WAVES)
    return (
        f"Applying it takes {_many(count, 'wave')} of up to {waves.partitions:,} partitions{pause}{by}."
        f" It costs {_many(moved.partitions, 'election')}, in each of which one partition has no leader for a"
        f" moment{reorders}; no data is copied.{order * (count > 1)}"
    )


def approve_command(story: Story) -> str:
    """The command that approves the plan."""
    plan = story.plan
    if plan.policy == BY_HAND:
        words = ["--store", story.store or "STORE", "--approve", plan.digest, "--record"]
        return f"bellwether rebalance --bootstrap HOST:PORT {shlex.join(words)} FILE"
    namespace, _, name = plan.policy.rpartition("/")
    where = ["-n", namespace] if namespace else []
    return shlex.join(["bellwether", "approve", plan.digest, "--policy", name, *where])


def bound_text(story: Story) -> str:
    """What decides the bound; the brokers alone where problem and loads are not in the store any more."""
    if story.proof:
        return story.proof
    brokers, opened = story.plan.certificate.proving, sum(b.open for b in story.plan.brokers)
    if not brokers:
        return "The plan names no brokers that prove the bound."
    if len(brokers) == opened:
        return f"The proof of the bound rests on all {opened:,} open brokers."
    return f"The proof of the bound rests on {len(brokers):,} of {opened:,} open brokers, or on a single partition."


def cap_text(plan: RebalancePlan, unit: Unit) -> str | None:
    """What the cap costs; None without one."""
    most, proof = plan.objective.max_moves, plan.certificate
    if most is None:
        return None
    capacity = sum(proof.weights.get(b.id, 0) * b.capacity for b in plan.brokers)
    if not capacity or not proof.move_weight:
        return f"The bound would be the same without maxMoves {most:,}."
    gain = proof.move_weight / capacity  # the weights prove a bound for any cap
    if gain >= proof.bound:  # fewer leaders may change than any lower plan must change
        return f"maxMoves {most:,} decides the bound."
    return f"Each further leader that maxMoves {most:,} lets change lowers the bound by at most {unit.said(gain)}."


class LevelFigures(NamedTuple):
    """The busiest broker when so many are left out, before and after, its bound, and how far it is above that."""

    settled: int
    before: float
    after: float
    bound: float
    gap: float | None


def levels(plan: RebalancePlan) -> list[LevelFigures]:
    """The brokers below the busiest ones, level by level."""
    found, settled = [], set[int]()
    for level in plan.certificate.levels:
        settled |= set(level.settled)
        others = [b for b in plan.brokers if b.open and b.id not in settled]
        before, after = (max((getattr(b, when) for b in others), default=0.0) for when in ("before", "after"))
        # Brokers above may be so little over their limits that a level is below its bound.
        gap = max(0.0, after / level.bound - 1) if level.bound else None if after else 0.0
        found.append(LevelFigures(len(settled), before, after, level.bound, gap))
    return found


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _duration(seconds: int) -> str:
    minutes = seconds / 60
    return f"{seconds} s" if minutes < 2 else f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"

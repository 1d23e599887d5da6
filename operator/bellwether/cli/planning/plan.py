"""``bellwether plan``: show what the policy would do now, and move nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.kubernetes_target import Target, policy_options
from bellwether.cli.output import OUTPUT, picked, print_lines, rows_of
from bellwether.core.demotion.decisions import Decisions
from bellwether.core.demotion.restoration import other_leaders_message
from bellwether.core.model.log_dirs import LogDir
from bellwether.core.planning.plan import Move, Plan
from bellwether.core.reasons import DESCRIPTIONS

if TYPE_CHECKING:
    from bellwether.cli.planning.policy_inputs import Preview

SHOWN = 20
"""How many moves the text shows."""


@click.command()
@policy_options
@OUTPUT
def plan(target: Target, output: str) -> None:
    """Show what the policy would do now; nothing is moved.

    Plans as the operator does: from the verdicts that it last reported, the overrides and the undo record, and from
    the metadata of the policy's Kafka cluster, which it reads with the policy's addresses and Secrets. Shows who would
    be demoted or promoted, which leaders would move, and what is blocked and why. For load plans see `bellwether
    rebalance show`.
    """
    from bellwether.cli.planning.policy_inputs import policy_inputs

    with policy_inputs(target) as inputs:
        show_plan(inputs.preview(), output)


def show_plan(preview: Preview, output: str) -> None:
    """Print a plan."""
    print_lines(plan_lines(preview), lambda: plan_document(preview), output)


def plan_lines(preview: Preview) -> Iterator[str]:
    """Text, line by line."""
    snapshot, plan = preview.context.snapshot, preview.plan
    acting = "" if preview.policy.policy().acts else "; the operator moves nothing in this mode"
    mode = preview.policy.status.mode or preview.policy.spec.mode
    yield f"Policy {preview.name}, Kafka cluster {snapshot.cluster.cluster_id}: mode {mode}{acting}"
    for note in preview.notes:
        yield f"note: {note}"
    total = len(snapshot.cluster.partitions)
    if outside := total - len(preview.context.managed.partitions):
        yield f"{outside} of {total} partitions are out of scope (spec.scope) and stay as they are"
    yield from _decided(plan, preview.decisions, set(snapshot.record.demoted), set(snapshot.record.log_dirs))
    led = sum(move.elect for move in plan.moves)
    yield f"{led} leaders move, {len(plan.moves) - led} partitions are only reordered"
    if plan.moves:
        yield ""
        yield from _brokers(preview)
        yield ""
        for move in plan.moves[:SHOWN]:
            yield move_line(move)
        if len(plan.moves) > SHOWN:
            yield f"and {len(plan.moves) - SHOWN} more; -o json has all"
    for reason, count in sorted(Counter(hold.reason for hold in plan.holds).items()):
        first = next(hold for hold in plan.holds if hold.reason is reason)
        yield f"{count} blocked, {reason}: {DESCRIPTIONS[reason]} (first {first.topic}-{first.key.partition})"
        if first.message != DESCRIPTIONS[reason]:
            yield f"  {first.message}"


def _decided(plan: Plan, decisions: Decisions, before: set[int], dirs_before: set[LogDir]) -> Iterator[str]:
    for broker, demoted in decisions.demoted.items():
        state = "is demoted" if broker in before else "would be demoted"
        yield f"broker {broker} {state}: {demoted.reason}: {demoted.message}"
    for log_dir, one in decisions.log_dirs.demoted.items():
        state = "is demoted" if log_dir in dirs_before else "would be demoted"
        count = len(decisions.log_dirs.partitions[log_dir])
        yield f"log directory {log_dir} {state} with {count} partitions: {one.reason}: {one.message}"
    for log_dir in sorted(dirs_before - decisions.log_dirs.demoted.keys()):
        yield f"log directory {log_dir} would be promoted"
    links = {link: keys for link, keys in decisions.links.partitions.items() if keys}
    for link, keys in links.items():
        yield f"{link} do not reach each other: others lead, or would lead, {len(keys)} partitions of both"
    for broker in decisions.promoted:
        yield f"broker {broker} would be promoted"
    for broker, wave in decisions.returning.items():
        others = other_leaders_message(plan.early.get(broker, 0), plan.withheld.get(broker, 0))
        yield f"broker {broker} gets its leaders back in waves: {wave.share} % now{others}"
    for broker, seconds in decisions.dwelling.items():
        yield f"broker {broker} would be demoted in {seconds:.0f} s (demotion.dwellSeconds)"
    for hold in decisions.held:
        yield f"broker {hold.broker} is held: {hold.reason}: {hold.message}"
    changed = decisions.demoted or decisions.promoted or decisions.log_dirs.demoted or links or dirs_before
    if not (changed or decisions.held or decisions.dwelling):
        yield "no broker is demoted, and none would be"


def _brokers(preview: Preview) -> Iterator[str]:
    """Leaders of each broker before and after."""
    cluster, demoted = preview.context.snapshot.cluster, preview.decisions.demoted
    change = Counter[int]()
    for move in preview.plan.moves:
        if move.elect:
            change[move.leads_next] += 1
            if move.leader is not None:
                change[move.leader] -= 1
    head = ("BROKER", "RACK", "LEADERS", "LEADERS AFTER", "DEMOTED AFTER")
    rows = []
    for broker in sorted(cluster.named):
        leaders, known = cluster.leader_counts[broker], cluster.brokers.get(broker)
        rack = (known.rack if known is not None else None) or "-"
        rows.append(
            (str(broker), rack, str(leaders), str(leaders + change[broker]), "yes" if broker in demoted else "no")
        )
    yield from rows_of(head, rows)


def move_line(move: Move) -> str:
    """What a move changes: order and leader, before and after."""
    leader = f", leader {'none' if move.leader is None else move.leader} -> {move.leads_next}" if move.elect else ""
    return f"{move.name}: {list(move.seen)} -> {list(move.order)}{leader}"


def plan_document(preview: Preview) -> dict[str, Any]:
    """The document, with all moves."""
    decisions, plan = preview.decisions, preview.plan
    return {
        "policy": preview.name,
        "clusterId": preview.context.snapshot.cluster.cluster_id,
        "mode": preview.policy.status.mode or preview.policy.spec.mode,
        "notes": preview.notes,
        "digest": plan.digest,
        "demoted": [picked(one, "broker cause reason message") for one in decisions.demoted.values()],
        "promoted": decisions.promoted,
        "returning": [{"broker": broker, "sharePercent": one.share} for broker, one in decisions.returning.items()],
        "dwelling": [{"broker": broker, "secondsLeft": left} for broker, left in decisions.dwelling.items()],
        "held": [picked(one, "broker reason message") for one in decisions.held],
        "moves": [_move(move) for move in plan.moves],
        "blocked": [
            {"topic": one.topic, "partition": one.key.partition, **picked(one, "reason message")} for one in plan.holds
        ],
    }


def _move(move: Move) -> dict[str, Any]:
    leaders = {"leader": move.leader, "nextLeader": move.leads_next if move.elect else move.leader}
    place = {"topic": move.topic, "partition": move.key.partition, "kind": move.kind}
    return {**place, "replicas": move.seen, "target": move.order, **leaders}

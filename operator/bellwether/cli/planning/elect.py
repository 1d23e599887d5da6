"""``bellwether elect``: run preferred leader elections now, for healthy brokers only.

The elections are those of the policy's periodic election, if it were due. They are sent by this command: an election
of the first replica reorders nothing, so no undo record covers it and no Lease is needed. The audit entry is written
with the rights of the user; without them the elections are made all the same.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from bellwether.cli import exit_status
from bellwether.cli.kubernetes_target import Target, policy_options
from bellwether.cli.leadership import overrides
from bellwether.cli.output import OUTPUT, print_rows
from bellwether.core.detection.context import Context
from bellwether.core.planning.plan import Move, Plan
from bellwether.core.planning.preferred_election import PreferredElectionState, plan_preferred_election
from bellwether.core.reporting.audit import command_entry
from bellwether.execute import Execution, execute
from bellwether.ports.errors import Terminal

if TYPE_CHECKING:
    from bellwether.cli.planning.policy_inputs import PolicyInputs, Preview

HEAD = ("PARTITION", "LEADER", "PREFERRED")


@click.command()
@policy_options
@click.option("--topic", "topics", multiple=True, help="Elect leaders of this topic only; repeatable.  [default: all]")
@click.option("--dry-run", is_flag=True, help="Show the elections, and change nothing.")
@OUTPUT
def elect(target: Target, topics: tuple[str, ...], dry_run: bool, output: str) -> None:
    """Elect preferred leaders now, on healthy brokers only.

    Elects the first replica of each order that does not lead, as the periodic election of the policy does
    (spec.election): never a broker that is demoted, drained, sick or not in the ISR. Nothing is reordered. The command
    sends the elections itself, with the policy's addresses and Secrets, and writes them into the policy's audit log if
    the user may; otherwise it says so. Exit status 3 while the operator has other
    moves to make, another tool is at work, or an election was refused.
    """
    from bellwether.cli.planning.policy_inputs import policy_inputs

    with policy_inputs(target) as inputs:
        preview = inputs.preview()
        _known(preview, topics)
        if blocker := _blocker(preview):
            exit_status.blocked(f"blocked: {blocker}")
        moves = tuple(move for move in due_elections(preview) if not topics or move.topic in topics)
        done = None if dry_run or not moves else _carry_out(inputs, preview, moves)
    if dry_run or output != "table":
        print_rows(HEAD, [_row(move) for move in moves], output)
    if done is not None:
        _report(done, inputs.audit_log.problem)
    elif not moves:
        click.echo("nothing to elect: every healthy preferred leader that is in sync leads", err=output != "table")


def due_elections(preview: Preview) -> tuple[Move, ...]:
    """The elections that a periodic election would make now."""
    context = preview.context
    policy = replace(context.policy, election=replace(context.policy.election, interval_seconds=5))
    past = PreferredElectionState(context.snapshot.now - timedelta(days=1))
    others = replace(preview.plan, moves=())  # the partitions that it would move keep their targets, and are left out
    plan = plan_preferred_election(past, Context(context.snapshot, context.verdicts, policy), others)
    return plan.moves if plan is not None else ()


def _known(preview: Preview, topics: tuple[str, ...]) -> None:
    cluster = preview.context.snapshot.cluster
    if unknown := sorted(set(topics) - set(cluster.topics)):
        raise Terminal(f"Kafka cluster {cluster.cluster_id} has no topic {unknown[0]}: check the name")


def _blocker(preview: Preview) -> str | None:
    """Why elections have to wait; None if they have not."""
    busy = preview.context.deferral
    if busy is not None:
        return f"{busy.message} ({busy.reason})"
    if preview.plan.moves and preview.context.policy.acts:
        return (
            f"the policy has {len(preview.plan.moves)} other moves to make, which come first: "
            f"bellwether plan --policy {preview.policy.metadata.name} -n {preview.policy.metadata.namespace}"
        )
    return None


def _carry_out(inputs: PolicyInputs, preview: Preview, moves: tuple[Move, ...]) -> Execution:
    from bellwether.telemetry import logs

    context = preview.context
    plan = Plan(moves, decisions=preview.decisions)
    inputs.world.clusters.avoid(context.sick_or_down | set(preview.decisions.demoted))
    logs.configure("console", "error")  # the entries, which the audit log also writes as log lines, are not the output
    entry = command_entry(context.snapshot, plan, f"bellwether elect by {overrides.whoami()}")
    world = replace(inputs.world, trail=inputs.audit_log)
    return execute(plan, context.snapshot.record, context.policy, world, entry=entry)


def _report(done: Execution, audit_problem: str) -> None:
    click.echo(f"{len(done.led)} leaders elected", err=True)
    if audit_problem:
        click.echo(f"the elections are not in the policy's audit log: {audit_problem}", err=True)
    for hold in done.holds:
        click.echo(f"  {hold.topic}-{hold.key.partition}: {hold.reason}: {hold.message}", err=True)
    if done.stopped is not None:
        click.echo(f"aborted: {done.stopped.message}", err=True)
    if done.holds or done.stopped is not None:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _row(move: Move) -> tuple[str, ...]:
    return f"{move.topic}/{move.key.partition}", "none" if move.leader is None else str(move.leader), str(move.order[0])

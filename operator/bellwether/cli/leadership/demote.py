"""``bellwether demote``, ``promote`` and ``release``: move leadership manually, through the operator or without it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.cli import durations
from bellwether.cli.kafka_target import connection_from
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.cli.offline.offline_leadership import UnknownBroker, run_offline, show
from bellwether.core.demotion.decisions import manual_decision
from bellwether.core.signals import OverrideState
from bellwether.ports.errors import BellwetherError

EXIT_HELD = 3
"""Exit status if moves are blocked or not finished in time, for scripts."""


def demote(broker: int, **options: Any) -> None:
    """Move leadership away from BROKER; it keeps following."""
    _run(broker, OverrideState.DEMOTED, options)


def promote(broker: int, **options: Any) -> None:
    """Move leadership back to BROKER."""
    _run(broker, OverrideState.PROMOTED, options)


def release(broker: int, policy: str, namespace: str, wait_seconds: int) -> None:
    """Remove the override of BROKER."""
    try:
        api = connect()
        before = overrides.set_override(api, namespace, policy, broker, None)
        if before is None:
            click.echo(f"broker {broker} has no override; nothing was changed")
            return
        over = overrides.ended(before, SystemClock().now())
        click.echo(f"broker {broker}: override removed{' (it had already ended)' if over else ''}")
        outcome = wait.released(None if over else str(before.get("state")))
        _await(api, namespace, policy, broker, outcome, wait_seconds)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _run(broker: int, state: OverrideState, options: dict[str, Any]) -> None:
    policy, record = options.pop("policy"), options.pop("record")
    if (policy is None) == (record is None):
        raise click.UsageError(
            "set either --policy NAME (through the operator) or --record FILE (without the operator)"
        )
    try:
        if policy is not None:
            _through_operator(broker, state, policy, options)
        else:
            _offline(broker, state, record, options)
    except (BellwetherError, UnknownBroker) as error:
        raise click.ClickException(str(error)) from None


def _through_operator(broker: int, state: OverrideState, policy: str, options: dict[str, Any]) -> None:
    if options["dry_run"] or options["bootstrap"]:
        raise click.UsageError("--dry-run and --bootstrap require --record; with --policy the cluster is the policy's")
    reason = options["reason"] or f"bellwether {'demote' if state is OverrideState.DEMOTED else 'promote'}"
    until = _until(options["duration"], SystemClock().now())
    api, namespace = connect(), options["namespace"]
    overrides.set_override(
        api, namespace, policy, broker, overrides.override_body(state, reason, overrides.whoami(), until)
    )
    demoting = state is OverrideState.DEMOTED
    warning = overrides.too_many(broker_lookup.healths(api, namespace, policy), broker) if demoting else None
    if warning is not None:
        click.echo(f"warning: {warning}", err=True)
    outcome = wait.demoted(reason) if demoting else wait.promoted
    _await(api, namespace, policy, broker, outcome, options["wait_seconds"])


def _await(
    api: KubernetesClient, namespace: str, policy: str, broker: int, outcome: wait.Outcome, seconds: int
) -> None:
    """Wait for the effect and print it; exit with ``EXIT_HELD`` if there is none."""
    if seconds <= 0:
        return
    idle = overrides.without_effect(broker_lookup.find_policy(api, namespace, policy))
    if idle is not None:
        click.echo(idle, err=True)
        raise click.exceptions.Exit(EXIT_HELD)
    if not wait.await_outcome(api, namespace, policy, broker, outcome, timedelta(seconds=seconds), click.echo):
        click.echo(f"not finished within {seconds} s: see `kubectl describe lp {policy} -n {namespace}`", err=True)
        raise click.exceptions.Exit(EXIT_HELD)


def _offline(broker: int, state: OverrideState, record: Path, options: dict[str, Any]) -> None:
    if not options["bootstrap"]:
        raise click.UsageError("--record requires --bootstrap HOST:PORT")
    if options["duration"]:
        raise click.UsageError("--for requires --policy: only the operator can end an override")
    dry_run, reason = options["dry_run"], options["reason"]
    unused = ("namespace", "duration", "wait_seconds", "reason", "dry_run")
    connection = connection_from(**{k: v for k, v in options.items() if k not in unused})
    if state is OverrideState.PROMOTED and not record.exists():
        raise click.UsageError(f"--record {record} does not exist: use the file that `bellwether demote` wrote")

    demoting = state is OverrideState.DEMOTED
    decide = manual_decision(demote=[broker], message=reason) if demoting else manual_decision(promote=[broker])
    run = run_offline(connection, record, decide, [broker], dry_run=dry_run, say=click.echo)
    console = Console()
    if not demoting and broker not in run.before:
        click.echo(f"broker {broker} is not demoted in {record}; there is nothing to restore")
    if dry_run:
        moves = run.report.plan.moves
        elections = sum(m.elect for m in moves)
        click.echo(f"would reorder {sum(m.reorders for m in moves)} partitions and move {elections} leaders:")
        for move in moves[:20]:
            click.echo(
                f"  {move.name}: {list(move.seen)} -> {list(move.order)}, leader {move.leader} -> {move.leads_next}"
            )
        if len(moves) > 20:
            click.echo(f"  ... and {len(moves) - 20} more")
    show(run, console)
    if run.report.held or run.report.result.stopped is not None:
        raise click.exceptions.Exit(EXIT_HELD)


def _until(duration: str | None, now: datetime) -> datetime | None:
    if duration is None:
        return None
    try:
        return now + durations.duration(duration, "--for")
    except OverflowError:
        raise click.UsageError(f"--for {duration!r} is too long: use a shorter duration") from None

"""``bellwether demote`` and ``promote`` without the operator: move leaders with an undo record in a file.

Called with ``--record``. Imports only what is needed before the first request to Kafka: clients wait meanwhile.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.kafka_target import connection_from
from bellwether.cli.offline.offline_leadership import UnknownBroker, run_offline
from bellwether.core.demotion.decisions import manual_decision
from bellwether.core.signals import OverrideState
from bellwether.ports.errors import BellwetherError

EXIT_HELD = 3
"""Exit status if moves are blocked, for scripts."""


def demote(broker: int, record: Path, **options: Any) -> None:
    """Move leadership away from BROKER; it keeps following."""
    _run(broker, OverrideState.DEMOTED, record, options)


def promote(broker: int, record: Path, **options: Any) -> None:
    """Move leadership back to BROKER."""
    _run(broker, OverrideState.PROMOTED, record, options)


def _run(broker: int, state: OverrideState, record: Path, options: dict[str, Any]) -> None:
    try:
        _move(broker, state, record, options)
    except (BellwetherError, UnknownBroker) as error:
        raise click.ClickException(str(error)) from None


def _move(broker: int, state: OverrideState, record: Path, options: dict[str, Any]) -> None:
    if not options["bootstrap"]:
        raise click.UsageError("--record requires --bootstrap HOST:PORT")
    if options["duration"]:
        raise click.UsageError("--for excludes --record: only the operator can end an override")
    dry_run, reason = options["dry_run"], options["reason"]
    unused = ("target", "duration", "wait_seconds", "reason", "dry_run")
    connection = connection_from(**{k: v for k, v in options.items() if k not in unused})
    if state is OverrideState.PROMOTED and not record.exists():
        raise click.UsageError(f"--record {record} does not exist: use the file that `bellwether demote` wrote")

    demoting = state is OverrideState.DEMOTED
    decide = manual_decision(demote=[broker], message=reason) if demoting else manual_decision(promote=[broker])
    run = run_offline(connection, record, decide, [broker], dry_run=dry_run, say=click.echo)
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
    # The table is drawn, and what draws it is imported, after the leaders have moved.
    from bellwether.cli.offline.leadership_table import show  # noqa: PLC0415 - see above

    show(run)
    if run.report.held or run.report.result.stopped is not None:
        raise click.exceptions.Exit(EXIT_HELD)

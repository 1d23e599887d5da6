"""``bellwether demote`` and ``promote`` without the operator: move leaders with an undo record in a file.

Called with ``--record``. What is not needed for the first request to Kafka is imported after it was sent, and what is
not needed to move leaders after they have moved: clients wait meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.cli import exit_status
from bellwether.cli.kafka_target import BOOTSTRAP, KafkaTarget
from bellwether.cli.output import printed
from bellwether.core.model.cluster import Cluster
from bellwether.kafka_connection import Connection

if TYPE_CHECKING:
    from bellwether.cli.offline.offline_leadership import Run
    from bellwether.core.demotion.decisions import DecisionFunction


class EarlyReader:
    """Reads the cluster in a thread while the rest of the command is imported: both take about as long.

    ``ports.kafka.ClusterReader`` whose first read begins at once. ``nodes`` are for requests to the same brokers.
    """

    def __init__(self, connection: Connection, avoided: Collection[int]) -> None:
        self.nodes = BrokerPool(connection, MANUAL_LIMITS)
        self.nodes.avoid(avoided)
        self._reader = KafkaReader(self.nodes)
        self.partitions, self.avoid = self._reader.partitions, self._reader.avoid
        self._unused = True
        self.first = ThreadPoolExecutor(1, "early-read").submit(self._reader.read).result
        """What the first read found. Raises as ``read``."""

    def read(self) -> Cluster:
        """The first snapshot once, then fresh ones. Raises Transient or Terminal."""
        unused, self._unused = self._unused, False
        return self.first() if unused else self._reader.read()


def move_leaders(record: Path, options: dict[str, Any], *, demoting: bool) -> None:
    """Move leadership away from the brokers, which keep following, or back to them. Raises Transient or Terminal."""
    kafka: KafkaTarget = options["kafka"]
    if not kafka.servers:
        raise click.UsageError(f"--record requires {BOOTSTRAP}")
    if options["duration"]:
        raise click.UsageError("--for excludes --record: only the operator can end an override")
    dry_run, reason = options["dry_run"], options["reason"]
    connection = kafka.connection()
    if not demoting and not record.exists():
        raise click.UsageError(f"--record {record} does not exist: use the file that `bellwether demote` wrote")

    reader = EarlyReader(connection, options["brokers"])
    from bellwether.cli.offline.offline_leadership import run_offline
    from bellwether.core.demotion.decisions import manual_decision

    def decide_for(brokers: Collection[int]) -> DecisionFunction:
        return manual_decision(demote=brokers, message=reason) if demoting else manual_decision(promote=brokers)

    chosen = options["brokers"], options["racks"]
    found = reader, reader.nodes, reader.first
    run = run_offline(*found, record, decide_for, *chosen, dry_run=dry_run, say=click.echo)
    for broker in run.brokers:
        if not demoting and broker not in run.before:
            click.echo(f"broker {broker} is not demoted in {record}; there is nothing to restore")
    if dry_run:
        from bellwether.cli.planning.plan import move_line

        moves = run.report.plan.moves
        elections = sum(m.elect for m in moves)
        click.echo(f"would reorder {sum(m.reorders for m in moves)} partitions and move {elections} leaders:")
        for move in moves[:20]:
            click.echo(f"  {move_line(move)}")
        if len(moves) > 20:
            click.echo(f"  ... and {len(moves) - 20} more")
    _show(run)
    if run.report.held or run.report.result.stopped is not None:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _show(run: Run) -> None:
    """Print the brokers after the run, and the blocked moves by reason."""
    from bellwether.core.reasons import DESCRIPTIONS

    rows = []
    for b in run.report.brokers:
        demoted = "yes" if b.broker in run.record.demoted else "no"
        rows.append((str(b.broker), b.rack or "-", str(b.leaders), str(b.preferred_leaders), str(b.replicas), demoted))
    printed(("broker", "rack", "leaders", "preferred", "replicas", "demoted"), rows)
    for reason, count in sorted(Counter(h.reason for h in run.report.held).items()):
        click.echo(f"{count} blocked, {reason}: {DESCRIPTIONS[reason]}")
    for hold in run.report.held_sample:
        click.echo(f"  {hold.topic}-{hold.key.partition}: {hold.message}")

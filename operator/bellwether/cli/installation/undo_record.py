"""``bellwether undo-record``: show, export or import the undo record of a policy, or end a former operator in it."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli.kubernetes_target import Target, connect_policy, policy_options
from bellwether.cli.leadership.overrides import whoami
from bellwether.cli.output import OUTPUT, print_document
from bellwether.core.model.undo_record import UndoRecord

if TYPE_CHECKING:
    from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords


@click.group("undo-record")
def undo_record() -> None:
    """Show, export or import the undo record of a policy.

    The undo record stores the replica order that each partition had before Bellwether changed it (the baseline).
    """


@undo_record.command()
@policy_options
@OUTPUT
def show(target: Target, output: str) -> None:
    """Show demoted brokers and the number of displaced partitions.

    Also shows the progress of the last load plan.
    """
    records, name = _records(target)
    found = records.read()
    if found is None:
        raise click.ClickException(f"policy {name} has no undo record")
    if output != "table":
        print_document(_summary(found), output)
        return
    click.echo(f"Kafka cluster {found.cluster_id}, epoch {found.epoch}")
    for demoted in found.demoted.values():
        since = demoted.since.isoformat(timespec="seconds")
        click.echo(f"broker {demoted.broker} is demoted since {since} ({demoted.cause}): {demoted.message}")
    for wave in found.returning.values():
        since = wave.since.isoformat(timespec="seconds")
        click.echo(
            f"broker {wave.broker} is being restored since {since}: at most {wave.share} % of its leaders so far"
        )
    for state, count in sorted(Counter(e.state for e in found.entries.values()).items()):
        click.echo(f"{count} partition{'s are' if count != 1 else ' is'} {str(state).lower()}")
    if found.empty:
        click.echo("no partition is displaced")
    if found.application is not None:
        plan = found.application
        text = plan.message if plan.ended is not None else f"{plan.taken_up} of {plan.moves} partitions applied"
        click.echo(f"load plan {plan.digest}: {plan.ended or 'being applied'}: {text}")


@undo_record.command()
@policy_options
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), help="File to write.  [default: standard output]"
)
def export(target: Target, output_file: Path | None) -> None:
    """Export the undo record as one JSON document."""
    records, _ = _records(target)
    document = records.export()
    if output_file is None:
        sys.stdout.buffer.write(document)
    else:
        output_file.write_bytes(document)
        click.echo(f"written to {output_file}")


@undo_record.command("import")
@policy_options
@click.argument("document", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def import_(target: Target, document: Path) -> None:
    """Import an exported DOCUMENT into the undo record of a policy.

    The operator reads it in its next reconcile, and then restores the partitions in it or keeps them displaced. A
    document that is rejected changes nothing.
    """
    (records, _), data = _records(target), document.read_bytes()
    # Check first: taking over fences the running operator, which a rejected document must not do.
    records.take_over(records.check_import(data).cluster_id)
    imported = records.import_record(data)
    click.echo(f"imported: {len(imported.entries)} partitions, demoted brokers {sorted(imported.demoted)}")


@undo_record.command("sender-ended")
@policy_options
@click.argument("sender")
def sender_ended(target: Target, sender: str) -> None:
    """Record that the former operator SENDER has ended.

    SENDER is the pod or the machine that the condition OrdersSettled of the policy names. Use this where nothing
    else can prove it, for example because the node was deleted, and only if its container and its virtual machine
    can never run again: a paused operator that is resumed may send one more order, which would then stay. The audit
    log has your name.
    """
    from bellwether.adapters.clocks import SystemClock
    from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
    from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
    from bellwether.core.reporting.audit import AuditEntry, AuditOutcome

    clock, (api, namespace, policy) = SystemClock(), connect_policy(target)
    records = ConfigMapRecords(api, namespace, policy)
    found = records.read()
    former = [one.name for one in found.senders[:-1]] if found is not None else []
    if found is None or sender not in former:
        waits = f"it waits for {', '.join(former) or 'none'}"
        text = f"policy {namespace}/{policy} does not wait for a former operator {sender}: {waits}"
        raise click.ClickException(text)
    taken = records.take_over(found.cluster_id)
    left = (*(one for one in taken.senders[:-1] if one.name != sender), taken.senders[-1])
    records.save(replace(taken, senders=left))
    text = f"{whoami()} recorded that the former operator {sender} has ended"
    entry = AuditEntry(clock.now(), taken.cluster_id, taken.epoch, text, outcome=AuditOutcome())
    ConfigMapAuditLog(api, namespace, policy, clock).conclude(entry)
    click.echo(f"recorded: {sender} has ended; policy {namespace}/{policy} waits for {len(left) - 1} other operators")


def _records(target: Target) -> tuple[ConfigMapRecords, str]:
    """The undo record of the policy, and the policy's name with its namespace."""
    from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords

    api, namespace, policy = connect_policy(target)
    return ConfigMapRecords(api, namespace, policy), f"{namespace}/{policy}"


def _summary(found: UndoRecord) -> dict[str, Any]:
    """The record as it is exported, with a count of its partitions by state in place of them."""
    from bellwether.adapters.undo_record_codec import without_entries

    partitions = Counter(str(entry.state) for entry in found.entries.values())
    return {**without_entries(found), "partitions": dict(sorted(partitions.items()))}

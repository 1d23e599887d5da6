"""``bellwether history``: list the leader moves and quarantines of a policy from the audit log.

In: the audit log in the Kubernetes API, which remains when the policy is deleted. Out: text or a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli import completion
from bellwether.cli.kubernetes_target import Target, broker_id, connect_policy, policy_options
from bellwether.cli.leadership.broker_lookup import find_policy
from bellwether.cli.option_lists import duration
from bellwether.cli.output import OUTPUT, clock, print_lines
from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.reporting.audit import AuditEntry, BrokerChange, MoveSummary


def moment(text: str, now: datetime) -> datetime:
    """Parse a time or an age: ``2h``, ``7d``, ``2026-01-31T08:00:00Z``; without a zone, UTC. Raises UsageError."""
    with suppress(click.UsageError):
        return now - duration(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"--since {text!r} is not a time: use a time such as 2026-01-31T08:00:00Z, or an age such as 2h or 7d"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command()
@policy_options
@click.option("--since", "after", metavar="TIME", help="Only entries since this time, or of the last 2h, 7d, ...")
@click.option(
    "--broker",
    metavar="ID",
    type=broker_id,
    shell_complete=completion.brokers,
    help="Only entries that concern this broker.",
)
@OUTPUT
def history(target: Target, after: str | None, broker: int | None, output: str) -> None:
    """List leader moves and quarantines, with the reason.

    Reads the audit log; the oldest entry comes first. A demotion or promotion is shown with its evidence or the
    override that caused it; moves are shown as a summary with a digest and sample partitions; the start and end of a
    quarantine with the reason. Leaders that Kafka moves by itself, as when a broker stops, and moves by other tools are
    not recorded. The audit log remains when the policy is deleted.
    """
    from bellwether.adapters import audit_codec
    from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog

    clock = SystemClock()
    since = moment(after, clock.now()) if after is not None else None
    api, namespace, policy = connect_policy(target)
    found = ConfigMapAuditLog(api, namespace, policy, clock).read()
    if not found:  # the log remains when the policy is deleted: only without one must the policy exist
        find_policy(api, namespace, policy)
    shown = [
        entry
        for entry in found
        if (since is None or (entry.last or entry.at) >= since) and (broker is None or broker in entry.brokers())
    ]
    if not shown and output == "table":
        moved = "no entries: Bellwether has moved no leader and held no broker (moves by Kafka and by other tools"
        moved += " are not recorded)"
        none = f"none of the {len(found)} entries matches" if found else moved
        click.echo(f"audit log of policy {namespace}/{policy}: {none}")
    lines = (line for entry in shown for line in entry_lines(entry))
    print_lines(lines, lambda: [audit_codec.to_json(entry) for entry in shown], output)


def entry_lines(entry: AuditEntry) -> Iterator[str]:
    """One entry, line by line."""
    repeated = f", {entry.times} times until {clock(entry.last or entry.at)}" if entry.times > 1 else ""
    yield f"{clock(entry.at)}  epoch {entry.epoch}{f'  {entry.occasion}' if entry.occasion else ''}{repeated}"
    for change in entry.changes:
        yield from _changed(change)
    if entry.more_changes:
        yield f"  and {entry.more_changes} more brokers"
    yield from map(_quarantined, entry.quarantines)
    if entry.plan is not None:
        step = entry.plan
        ended = f", {step.ended}" if step.ended else ""
        so_far = f"{step.taken_up} of {step.moves} partitions applied{ended}"
        yield f"  load plan {step.digest}: {so_far}; approved by {step.approved_by}"
    if entry.moves is not None:
        yield from _moved(entry.moves)
    if entry.changes or entry.plan is not None or entry.moves is not None:
        yield f"  {_outcome(entry)}"


def _changed(change: BrokerChange) -> Iterator[str]:
    became = "demoted" if change.demoted else "promoted"
    who = change.word.removeprefix("override by ")
    if who != change.word:
        yield f"  broker {change.broker} {became} by {who} (override): {change.message.removesuffix(f' ({who})')}"
    else:
        yield f"  broker {change.broker} {became} by {change.word}: {change.reason}: {change.message}"
    for line in change.evidence:
        yield f"    {line}"


def _quarantined(change: QuarantineChange) -> str:
    became = "started"
    if change.ended:
        became = "ended; it was never held" if change.held is None else f"ended after {change.held:.0f} s held"
    return f"  broker {change.broker} quarantine {became}: {change.reason}: {change.message}"


def _moved(moves: MoveSummary) -> Iterator[str]:
    restores = f", {moves.restores} of them restored to the baseline" if moves.restores else ""
    partitions = f"{moves.reorders} reorders, {moves.elections} elections in {moves.topics} topics{restores}"
    yield f"  planned: {partitions} (digest {moves.digest})"
    if moves.leaving or moves.coming:
        yield f"    leaders lost: {_counted(moves.leaving)}; gained: {_counted(moves.coming)}"
    for line in moves.sample:
        yield f"    {line}"
    more = moves.reorders + moves.elections
    if len(moves.sample) < more and moves.sample:
        yield "    ..."


def _counted(leaders: Mapping[int, int]) -> str:
    return ", ".join(f"broker {broker}: {n}" for broker, n in leaders.items()) or "no broker"


def _outcome(entry: AuditEntry) -> str:
    done = entry.outcome
    if done is None:
        return "result unknown: the process ended or lost its Lease before it recorded the result"
    held = ", ".join(f"{n} {reason}" for reason, n in done.held.items())
    parts = [f"{done.reordered} reordered, {done.elected} elected"]
    parts += [f"blocked: {held}"] if held else []
    parts += [f"{done.touched} replica sets changed concurrently"] if done.touched else []
    parts += [f"aborted: {done.stopped}"] if done.stopped else []
    return f"result: {'; '.join(parts)}"

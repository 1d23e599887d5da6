"""``bellwether demote``, ``promote`` and ``release``: move leadership manually, through the operator or without it.

Through the operator: set or remove overrides, and wait. With ``--record``, ``cli.offline.manual_demotion`` moves the
leaders; it imports no Kubernetes client, and this module imports a Kafka client for dry runs only.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli import completion, exit_status, option_lists
from bellwether.cli.kafka_target import KafkaTarget, kafka_options
from bellwether.cli.kubernetes_target import Target, broker_id, connect_policy, policy_options
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.cli.option_lists import with_options
from bellwether.core.signals import Override, OverrideState

# Ids, and racks whose brokers are meant.
_brokers = with_options(
    click.argument("brokers", metavar="BROKER...", nargs=-1, type=broker_id, shell_complete=completion.brokers),
    click.option(
        "--rack", "racks", multiple=True, shell_complete=completion.racks, help="All brokers of this rack; repeatable."
    ),
)
_options = with_options(
    _brokers,
    policy_options,
    click.option(
        "--for",
        "duration",
        metavar="TIME",
        type=option_lists.duration,
        help="End the override after 30m, 2h, 1d.  [default: no end]",
    ),
    click.option(
        "--wait",
        "wait_seconds",
        default=60,
        show_default=True,
        help="Seconds to wait for the operator; 0: do not wait.",
    ),
    click.option(
        "--record",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Work without the operator; keep the undo record in this file, which promote needs (--bootstrap).",
    ),
    click.option("--reason", default="", help="Reason, recorded in status and in the audit log."),
    click.option("--dry-run", is_flag=True, help="Show what would move, and change nothing."),
    kafka_options,
)


def _require_brokers(brokers: tuple[int, ...], racks: tuple[str, ...]) -> None:
    if not (brokers or racks):
        raise click.UsageError("name at least one broker by its id, or a rack with --rack")


def _move(state: OverrideState, record: Path | None, **options: Any) -> None:
    """Through the operator, or with a record without it. Raises UsageError for --policy and --record."""
    _require_brokers(options["brokers"], options["racks"])
    if record is None:
        _run(state, **options)
        return
    if options["target"].policy is not None:
        raise click.UsageError(
            "set either --policy NAME (through the operator) or --record FILE (without the operator)"
        )
    from bellwether.cli.offline.manual_demotion import move_leaders

    move_leaders(record, options, demoting=state is OverrideState.DEMOTED)


@click.command()
@_options
def demote(**options: Any) -> None:
    """Move leadership away from brokers; they keep following.

    Sets an override on each BrokerHealth, and the operator moves the leaders. With --record and --bootstrap the
    command moves the leaders itself; this also works while the Kubernetes API is unavailable.

    Without the operator (--record) no policy is read: its preferred racks and its limits do not apply. Leaders may
    move to any rack, and with a record that was exported from a policy, orders that were changed for its preferred
    racks are restored. A running operator treats the change as a foreign order and may move leaders back: suspend its
    policy first (spec.suspend), and promote the brokers before you resume it.
    """
    _move(OverrideState.DEMOTED, **options)


@click.command()
@_options
def promote(**options: Any) -> None:
    """Move leadership back to brokers.

    Restores every replica order (the baseline). Sets an override Promoted, which also
    prevents a demotion by signals until it is released or ends (--for). With --record the baselines come from the file.

    Without the operator (--record) no policy is read: the leaders return at once and not in waves, and with a record
    that was exported from a policy, orders that were changed for its preferred racks are restored, too. Suspend the
    policy of a running operator first (spec.suspend).
    """
    _move(OverrideState.PROMOTED, **options)


@click.command()
@_brokers
@policy_options
@click.option("--wait", "wait_seconds", default=60, show_default=True, help="Seconds to wait; 0: do not wait.")
@click.option("--dry-run", is_flag=True, help="Show what would move, and change nothing.")
def release(brokers: tuple[int, ...], racks: tuple[str, ...], target: Target, wait_seconds: int, dry_run: bool) -> None:
    """Remove the override of brokers.

    Afterwards the signals decide again whether they are demoted.
    """
    _require_brokers(brokers, racks)
    at = connect_policy(target)
    chosen = broker_lookup.choose_brokers(*at, brokers, racks)
    healths = {broker: broker_lookup.find_health(*at, broker) for broker in chosen}
    if dry_run:
        for broker, health in healths.items():
            known = overrides.override_of(health)
            removes = f": would remove {overrides.shown(known)}" if known is not None else " has no override"
            click.echo(f"broker {broker}{removes}")
        preview_overrides(target, dict.fromkeys(chosen))
        return
    now, outcomes = SystemClock().now(), {}
    for broker, health in healths.items():
        before = overrides.set_override(at, broker, None)
        if before is None:
            click.echo(f"broker {broker} has no override; nothing was changed")
            continue
        over = overrides.ended(before, now)
        click.echo(f"broker {broker}: removed {overrides.shown(before)}{' (it had already ended)' if over else ''}")
        led = int((health.get("status") or {}).get("leaders") or 0)
        outcomes[broker] = wait.released(None if over else str(before.get("state")), led)
    _await(at, outcomes, wait_seconds)


def _run(
    state: OverrideState,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    target: Target,
    duration: timedelta | None,
    wait_seconds: int,
    reason: str,
    dry_run: bool,
    kafka: KafkaTarget,
) -> None:
    if kafka.bootstrap or kafka.command_config is not None:
        option = "--bootstrap" if kafka.bootstrap else "--command-config"
        raise click.UsageError(f"{option} requires --record; without it the cluster is the policy's")
    demoting = state is OverrideState.DEMOTED
    why, by = reason or f"bellwether {'demote' if demoting else 'promote'}", overrides.whoami()
    until = SystemClock().now() + duration if duration is not None else None
    at = connect_policy(target)
    chosen = broker_lookup.choose_brokers(*at, brokers, racks)
    warnings = [] if demoting else overrides.unfit(broker_lookup.healths(*at), chosen)
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    wanted = {broker: Override(broker, state, why, until, by) for broker in chosen}
    if dry_run:
        preview_overrides(target, wanted)
        return
    for broker, override in wanted.items():
        overrides.set_override(at, broker, override)
    healths = broker_lookup.healths(*at)
    crowded = overrides.too_many(healths, chosen) if demoting else None
    if crowded is not None:
        click.echo(f"warning: {crowded}", err=True)
    outcome: wait.Outcome = wait.demoted(why) if demoting else wait.promoted
    _await(at, dict.fromkeys(chosen, outcome), wait_seconds)


def preview_overrides(target: Target, changed: Mapping[int, Override | None]) -> None:
    """Print the plan that would follow from these overrides. Raises what reading the policy and its cluster raises."""
    from bellwether.cli.planning.plan import show_plan
    from bellwether.cli.planning.policy_inputs import policy_inputs

    with policy_inputs(target) as inputs:
        show_plan(inputs.preview().with_overrides(changed), "table")


def _await(at: broker_lookup.NamedPolicy, outcomes: dict[int, wait.Outcome], seconds: int) -> None:
    """Wait for the effect on every broker and print it; exit with ``BLOCKED`` if one has none."""
    if seconds <= 0 or not outcomes:
        return
    idle = overrides.without_effect(broker_lookup.find_policy(*at))
    if idle is not None:
        exit_status.blocked(idle)
    end = time.monotonic() + seconds
    finished = [wait.await_outcome(at, broker, outcome, end - time.monotonic()) for broker, outcome in outcomes.items()]
    if not all(finished):
        exit_status.blocked(f"not finished within {seconds} s: see `kubectl describe lp {at.name} -n {at.namespace}`")

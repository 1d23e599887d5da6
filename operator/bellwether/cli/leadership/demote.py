"""``bellwether demote``, ``promote`` and ``release`` through the operator: set or remove overrides, and wait.

Called without ``--record``. ``cli.offline.manual_demotion`` moves leaders without the operator and imports no
Kubernetes client, this module imports a Kafka client for dry runs only.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.cli import durations
from bellwether.cli.commands import exit_status
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect_policy
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.core.signals import Override, OverrideState
from bellwether.ports.errors import BellwetherError


def demote(**options: Any) -> None:
    """Set the override Demoted; the operator moves leadership away from the brokers."""
    _run(OverrideState.DEMOTED, **options)


def promote(**options: Any) -> None:
    """Set the override Promoted; the operator moves leadership back to the brokers."""
    _run(OverrideState.PROMOTED, **options)


def release(brokers: tuple[int, ...], racks: tuple[str, ...], target: Target, wait_seconds: int, dry_run: bool) -> None:
    """Remove the overrides of the brokers."""
    try:
        api, namespace, policy = connect_policy(target)
        chosen = broker_lookup.choose_brokers(api, namespace, policy, brokers, racks)
        healths = {broker: broker_lookup.find_health(api, namespace, policy, broker) for broker in chosen}
        if dry_run:
            for broker, health in healths.items():
                known = overrides.override_of(health)
                removes = f": would remove {overrides.shown(known)}" if known is not None else " has no override"
                click.echo(f"broker {broker}{removes}")
            preview_overrides(target, dict.fromkeys(chosen))
            return
        now, outcomes = SystemClock().now(), {}
        for broker, health in healths.items():
            before = overrides.set_override(api, namespace, policy, broker, None)
            if before is None:
                click.echo(f"broker {broker} has no override; nothing was changed")
                continue
            over = overrides.ended(before, now)
            click.echo(f"broker {broker}: removed {overrides.shown(before)}{' (it had already ended)' if over else ''}")
            led = int((health.get("status") or {}).get("leaders") or 0)
            outcomes[broker] = wait.released(None if over else str(before.get("state")), led)
        _await(api, namespace, policy, outcomes, wait_seconds)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _run(
    state: OverrideState,
    brokers: tuple[int, ...],
    racks: tuple[str, ...],
    target: Target,
    duration: str | None,
    wait_seconds: int,
    reason: str,
    dry_run: bool,
    bootstrap: str | None,
    **_kafka: Any,
) -> None:
    if bootstrap:
        raise click.UsageError("--bootstrap requires --record; without it the cluster is the policy's")
    demoting = state is OverrideState.DEMOTED
    why, by = reason or f"bellwether {'demote' if demoting else 'promote'}", overrides.whoami()
    until = _until(duration, SystemClock().now())
    try:
        api, namespace, policy = connect_policy(target)
        chosen = broker_lookup.choose_brokers(api, namespace, policy, brokers, racks)
        warnings = [] if demoting else overrides.unfit(broker_lookup.healths(api, namespace, policy), chosen)
        for warning in warnings:
            click.echo(f"warning: {warning}", err=True)
        if dry_run:
            preview_overrides(target, {broker: Override(broker, state, why, until, by) for broker in chosen})
            return
        for broker in chosen:
            body = overrides.override_body(state, why, by, until)
            overrides.set_override(api, namespace, policy, broker, body)
        healths = broker_lookup.healths(api, namespace, policy)
        crowded = overrides.too_many(healths, chosen) if demoting else None
        if crowded is not None:
            click.echo(f"warning: {crowded}", err=True)
        outcome: wait.Outcome = wait.demoted(why) if demoting else wait.promoted
        _await(api, namespace, policy, dict.fromkeys(chosen, outcome), wait_seconds)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def preview_overrides(target: Target, changed: dict[int, Override | None]) -> None:
    """Print the plan that would follow from these overrides. Raises what reading the policy and its cluster raises."""
    from bellwether.cli.planning.plan import show_plan  # noqa: PLC0415 - Kafka's client is needed here only
    from bellwether.cli.planning.preview import policy_inputs  # noqa: PLC0415

    with policy_inputs(target) as inputs:
        show_plan(inputs.preview().with_overrides(changed), "table")


def _await(api: KubernetesClient, namespace: str, policy: str, outcomes: dict[int, wait.Outcome], seconds: int) -> None:
    """Wait for the effect on every broker and print it; exit with ``BLOCKED`` if one has none."""
    if seconds <= 0 or not outcomes:
        return
    idle = overrides.without_effect(broker_lookup.find_policy(api, namespace, policy))
    if idle is not None:
        click.echo(idle, err=True)
        raise click.exceptions.Exit(exit_status.BLOCKED)
    end = time.monotonic() + seconds
    finished = [
        wait.await_outcome(
            api, namespace, policy, broker, outcome, timedelta(seconds=max(0.0, end - time.monotonic())), click.echo
        )
        for broker, outcome in outcomes.items()
    ]
    if not all(finished):
        click.echo(f"not finished within {seconds} s: see `kubectl describe lp {policy} -n {namespace}`", err=True)
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _until(duration: str | None, now: datetime) -> datetime | None:
    if duration is None:
        return None
    try:
        return now + durations.duration(duration, "--for")
    except OverflowError:
        raise click.UsageError(f"--for {duration!r} is too long: use a shorter duration") from None

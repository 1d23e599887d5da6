"""``bellwether demote``, ``promote`` and ``release`` through the operator: set or remove an override, and wait.

Called without ``--record``. ``cli.offline.manual_demotion`` moves leaders without the operator and imports no
Kubernetes client, this module imports no Kafka client.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.cli import durations
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect_policy
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.core.signals import OverrideState
from bellwether.ports.errors import BellwetherError

EXIT_HELD = 3
"""Exit status if moves are blocked or not finished in time, for scripts."""


def demote(broker: int, **options: Any) -> None:
    """Set the override Demoted; the operator moves leadership away from BROKER."""
    _run(broker, OverrideState.DEMOTED, options)


def promote(broker: int, **options: Any) -> None:
    """Set the override Promoted; the operator moves leadership back to BROKER."""
    _run(broker, OverrideState.PROMOTED, options)


def release(broker: int, target: Target, wait_seconds: int) -> None:
    """Remove the override of BROKER."""
    try:
        api, namespace, policy = connect_policy(target)
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
    try:
        _through_operator(broker, state, options)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _through_operator(broker: int, state: OverrideState, options: dict[str, Any]) -> None:
    if options["dry_run"] or options["bootstrap"]:
        raise click.UsageError("--dry-run and --bootstrap require --record; without it the cluster is the policy's")
    reason = options["reason"] or f"bellwether {'demote' if state is OverrideState.DEMOTED else 'promote'}"
    until = _until(options["duration"], SystemClock().now())
    api, namespace, policy = connect_policy(options["target"])
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


def _until(duration: str | None, now: datetime) -> datetime | None:
    if duration is None:
        return None
    try:
        return now + durations.duration(duration, "--for")
    except OverflowError:
        raise click.UsageError(f"--for {duration!r} is too long: use a shorter duration") from None

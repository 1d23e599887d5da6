"""``bellwether rebalance``: ask for a load plan, look at it, approve it; through the operator or without it."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.console import Console

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.cli.kafka_target import connection_from
from bellwether.cli.rebalance import plan_request
from bellwether.cli.rebalance.plan_figures import show_brokers, show_figures, show_left
from bellwether.core.model.undo_record import ApplicationEnd
from bellwether.core.rebalance.lifecycle import RebalanceFigures, RebalanceRun, RunState
from bellwether.core.settings.objective import Objective, Statistic
from bellwether.core.settings.rebalance import Rebalance, RebalanceWaves
from bellwether.ports.errors import BellwetherError

EXIT_HELD = 3
"""Exit status when nothing is proposed, or not all was applied, so that scripts can tell it from success."""

_KAFKA = (
    "bootstrap", "tls", "tls_ca", "tls_cert", "tls_key", "sasl_mechanism", "sasl_username", "sasl_password_file",
    "oauth_token_endpoint", "oauth_client_id", "oauth_client_secret_file", "oauth_scope", "oauth_ca",
)  # fmt: skip
_BY_HAND = (
    "store", "record", "dry_run", "statistic", "preferred_rack", "max_moves", "exclude", "capacity", "days", "memory",
    "wave", "pause",
)  # fmt: skip


def rebalance(policy: str | None, **options: Any) -> None:
    """Spread leaders by measured load."""
    if (policy is None) == (not options["bootstrap"]):
        raise click.UsageError(
            "give either --policy NAME (the operator does it) or --bootstrap HOST:PORT (this command does it)"
        )
    try:
        if policy is not None:
            _through_operator(policy, options)
        else:
            _by_hand(options)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _through_operator(policy: str, options: dict[str, Any]) -> None:
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    given = [name for name in _BY_HAND if context.get_parameter_source(name) is not default]
    if given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"{named}: goes with --bootstrap; a policy says it in spec.rebalance")
    api, namespace, seconds = connect(), options["namespace"], options["wait_seconds"]
    console = Console(soft_wrap=True)
    digest = options["approve"]
    if digest is None:
        token = SystemClock().now().isoformat(timespec="seconds")
        run = plan_request.ask(api, namespace, policy, token, seconds, click.echo)
        _show_run(run, console)
        if run.state is not RunState.PROPOSED:
            if run.state in (RunState.APPROVED, RunState.APPLYING, RunState.DONE):
                digest = run.digest  # the policy approves by itself
            else:
                raise click.exceptions.Exit(EXIT_HELD)
        elif options["yes"] or _agreed(f"approve plan {run.digest}?"):
            digest = run.digest
        else:
            click.echo(f"to apply it: bellwether rebalance --policy {policy} -n {namespace} --approve {run.digest}")
            return
    run = plan_request.approve(api, namespace, policy, digest, seconds, click.echo)
    show_left(run.left, run.sample, console)
    if run.state is not RunState.DONE or run.left:
        raise click.exceptions.Exit(EXIT_HELD)


def _show_run(run: RebalanceRun, console: Console) -> None:
    if run.figures is not None:
        show_figures(run.figures, run.digest, console)
    click.echo(f"{run.state}: {run.message}")


def _by_hand(options: dict[str, Any]) -> None:
    from bellwether.cli.offline import offline_rebalance  # noqa: PLC0415 - Arrow and Kafka's client are for this way alone

    if not options["store"]:
        raise click.UsageError("--bootstrap needs --store URI: where 'bellwether sample' keeps its samples")
    record, digest = options["record"], options["approve"]
    if record is None and not options["dry_run"]:
        raise click.UsageError("give --record FILE, which keeps what is needed to undo and to go on, or --dry-run")
    if digest is not None and options["dry_run"]:
        raise click.UsageError("--approve applies a plan, --dry-run applies none: give one of them")
    settings = _settings(options)
    connection = connection_from(**{name: options[name] for name in _KAFKA})
    means = offline_rebalance.Means(connection, options["store"], options["days"], options["memory"])
    console = Console(soft_wrap=True)
    if digest is None:
        plan = offline_rebalance.plan_by_hand(means, record, settings, click.echo)
        show_brokers(plan, console)
        show_figures(RebalanceFigures.of(plan), plan.digest, console)
        if not plan.moved.partitions + plan.moved.reordered:
            click.echo("there is nothing to move")
            return
        if options["dry_run"]:
            return
        if not options["yes"] and not _agreed(f"apply plan {plan.digest}?"):
            click.echo(f"nothing was moved; the same command with --approve {plan.digest} applies it")
            return
        digest = plan.digest
    try:
        done = offline_rebalance.apply_by_hand(means, record, settings, digest, click.echo)
    except KeyboardInterrupt:
        click.echo(f"broken off: the same command with --approve {digest} goes on", err=True)
        raise click.Abort from None
    application = done.application
    if application is not None:
        show_left(application.left, application.sample, console)
    if application is None or application.ended is not ApplicationEnd.DONE or application.left:
        raise click.exceptions.Exit(EXIT_HELD)


def _settings(options: dict[str, Any]) -> Rebalance:
    capacities = {}
    for text in options["capacity"]:
        broker, equals, value = text.partition("=")
        if not (equals and broker.isdecimal() and value.isdecimal() and int(value) >= 1):
            raise click.UsageError(f"--capacity {text!r} is not ID=N, as in 3=200")
        capacities[int(broker)] = int(value)
    objective = Objective(
        statistic=Statistic(options["statistic"]),
        preferred_racks=tuple(options["preferred_rack"]),
        max_moves=options["max_moves"],
    )
    return Rebalance(
        objective=objective,
        capacities=capacities,
        excluded_topics=tuple(options["exclude"]),
        waves=RebalanceWaves(partitions=options["wave"], pause_seconds=options["pause"]),
    )


def _agreed(question: str) -> bool:
    """A person's yes; nobody there is a no."""
    return sys.stdin.isatty() and click.confirm(question)

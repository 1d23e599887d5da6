"""``bellwether rebalance``: request, show, approve and apply a load plan; through the operator or without it."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli import exit_status
from bellwether.cli.kafka_target import kafka_options
from bellwether.cli.kubernetes_target import connect_policy, policy_options
from bellwether.cli.lazy_group import LazyGroup
from bellwether.cli.option_lists import Option, with_options
from bellwether.core.model.undo_record import ApplicationEnd
from bellwether.core.settings.objective import Objective, Statistic
from bellwether.core.settings.rebalance import Rebalance, RebalanceWaves
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether.ports.rebalance import RunState
from bellwether_load.cli.approve import finish, show_left, show_run
from bellwether_load.plan.problem import LARGEST_CAPACITY

if TYPE_CHECKING:
    from bellwether_load.plan.rebalance_plan import RebalancePlan

_DEFAULTS = Rebalance()


def _by_hand(*names: str, help: str, **settings: Any) -> Option:  # noqa: A002 - as click names it
    return click.option(*names, help=f"{help} (--bootstrap).", show_default=True, **settings)


_BY_HAND: dict[str, Option] = {
    "approve": _by_hand("--approve", metavar="DIGEST", help="Apply the plan with this digest"),
    "store": _by_hand("--store", metavar="URI", help="Store of samples, loads and plans"),
    "record": _by_hand(
        "--record",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File of the undo record; required to apply a plan",
    ),
    "statistic": _by_hand(
        "--statistic",
        type=click.Choice([str(s) for s in Statistic]),
        default=str(_DEFAULTS.objective.statistic),
        help="Statistic of a partition's load history to balance by",
    ),
    "preferred_rack": _by_hand("--preferred-rack", multiple=True, help="Preferred rack of leaders; repeatable"),
    "max_moves": _by_hand("--max-moves", type=click.IntRange(1), help="Maximum number of leaders to move"),
    "exclude": _by_hand(
        "--exclude", multiple=True, metavar="TOPIC", help="Topic to exclude; * and ? are wildcards; repeatable"
    ),
    "capacity": _by_hand(
        "--capacity", multiple=True, metavar="ID=N", help="Relative capacity of a broker, default 100; repeatable"
    ),
    "request_capacity": _by_hand(
        "--request-capacity",
        multiple=True,
        metavar="ID=N",
        help="The same for requests, default its --capacity; repeatable",
    ),
    "request_bytes": _by_hand(
        "--request-bytes",
        type=click.IntRange(0, 1_000_000),
        default=_DEFAULTS.objective.request_bytes,
        help="Bytes/s that load a broker as much as one request/s; 0: requests do not count",
    ),
    "days": _by_hand("--days", default=14, help="Days of samples to use"),
    "wave_size": _by_hand(
        "--wave-size", type=click.IntRange(1), default=_DEFAULTS.waves.partitions, help="Partitions per wave"
    ),
    "wave_pause": _by_hand(
        "--wave-pause", type=click.IntRange(0), default=_DEFAULTS.waves.pause_seconds, help="Seconds between waves"
    ),
    "minimum_hours": _by_hand(
        "--minimum-hours",
        type=click.IntRange(0, 168),
        default=_DEFAULTS.minimum_hours,
        help="Hours of the week that must be measured for a proposal",
    ),
    "minimum_measured": _by_hand(
        "--minimum-measured",
        type=click.IntRange(0, 100),
        default=_DEFAULTS.minimum_measured_percent,
        help="Percent of the bytes that must be measured for a proposal",
    ),
}
"""Options of a rebalance without the operator; with it the LeaderRebalance has these settings."""


@click.group(cls=LazyGroup, groups={"Commands": {"show": "bellwether_load.cli.show:show"}}, invoke_without_command=True)
@policy_options
@click.option("--wait", "wait_seconds", default=1800, show_default=True, help="Seconds to wait.")
@click.option("--yes", is_flag=True, help="Approve the plan without confirmation.")
@click.option("--dry-run", is_flag=True, help="Compute and show the plan, and move nothing.")
@with_options(*_BY_HAND.values())
@kafka_options
def rebalance(**options: Any) -> None:
    """Balance leaders by measured load.

    Requests a plan from the operator, shows its improvement, and approves it after confirmation; `bellwether approve`
    does so later. With --bootstrap and --store the command does everything itself: it plans in this process and
    keeps the undo record in a file (--record); this also works while the Kubernetes API is unavailable.
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    if options["kafka"].servers and options["target"].policy:
        raise click.UsageError(
            "set either --policy NAME (through the operator) or --bootstrap HOST:PORT (without the operator)"
        )
    try:
        if options["kafka"].servers:
            _offline(options)
        else:
            _through_operator(options)
    except BellwetherError as error:
        raise click.ClickException(str(error)) from None


def _through_operator(options: dict[str, Any]) -> None:
    from bellwether_load.cli import plan_request

    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    given = [name for name in _BY_HAND if context.get_parameter_source(name) is not default]
    if given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"{named}: requires --bootstrap; otherwise the LeaderRebalance has the settings")
    api, namespace, policy = connect_policy(options["target"])
    seconds = options["wait_seconds"]
    if options["dry_run"] and plan_request.approves_itself(api, namespace, policy):
        raise Terminal(
            f"the LeaderRebalance of policy {namespace}/{policy} applies plans without approval (spec.approval:"
            " Automatic), so none can be requested as a dry run: use --bootstrap --dry-run"
        )
    token = SystemClock().now().isoformat(timespec="seconds")
    run = plan_request.request_plan(api, namespace, policy, token, seconds, click.echo)
    show_run(run)
    if run.state is RunState.PROPOSED:
        if options["dry_run"] or not (options["yes"] or _confirmed(f"approve plan {run.digest}?")):
            click.echo(f"to apply it: bellwether approve {run.digest} --policy {policy} -n {namespace}")
            return
    elif run.state not in (RunState.APPROVED, RunState.APPLYING, RunState.DONE):  # approved by the policy itself
        raise click.exceptions.Exit(exit_status.BLOCKED)
    finish(plan_request.approve(api, namespace, policy, run.digest, seconds, click.echo))


def _offline(options: dict[str, Any]) -> None:
    from bellwether_load.cli import offline_rebalance
    from bellwether_load.cli.show import show_story
    from bellwether_load.page.plan_summary import tell
    from bellwether_load.store.filesystems import Store
    from bellwether_load.store.plans.plan_files import read_moves, read_plan
    from bellwether_load.store.store_errors import StoreMissing

    if not options["store"]:
        raise click.UsageError("--bootstrap requires --store URI: the store of `bellwether sample`")
    record, digest = options["record"], options["approve"]
    if record is None and not options["dry_run"]:
        raise click.UsageError("set --record FILE (keeps the undo record and the progress) or --dry-run")
    if digest is not None and options["dry_run"]:
        raise click.UsageError("--approve and --dry-run exclude each other")
    settings = _settings(options)
    connection = options["kafka"].connection()
    inputs = offline_rebalance.OfflineRun(connection, options["store"], options["days"])
    store = Store.open(inputs.uri)
    if digest is None:
        found = offline_rebalance.plan_offline(inputs, record, settings, click.echo)
        plan = found.plan
        _require_evidence(plan, settings)
        show_story(tell(plan, read_moves(store, plan.digest)).verified(found.report), waves=settings.waves)
        if not plan.moved.partitions + plan.moved.reordered:
            click.echo("the plan moves nothing")
            return
        if options["dry_run"]:
            return
        if not options["yes"] and not _confirmed(f"apply plan {plan.digest}?"):
            click.echo(f"nothing was moved; to apply the plan, repeat the command with --approve {plan.digest}")
            return
        digest = plan.digest
    else:
        with suppress(StoreMissing):  # what applies the plan says so
            _require_evidence(read_plan(store, digest), settings)
    try:
        application = offline_rebalance.apply_offline(inputs, record, settings, digest, click.echo)
    except KeyboardInterrupt:
        click.echo(f"interrupted; to continue, repeat the command with --approve {digest}", err=True)
        raise click.Abort from None
    if application is not None:
        show_left(application.left, application.sample)
    if application is None or application.ended is not ApplicationEnd.DONE or application.left:
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _require_evidence(plan: RebalancePlan, settings: Rebalance) -> None:
    """Print what is missing and exit where the plan rests on too little."""
    if missing := plan.missing(settings):
        click.echo(f"{plan.evidence_line}\nno proposal: {missing}")
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _capacities(option: str, texts: tuple[str, ...]) -> dict[int, int]:
    found = {}
    for text in texts:
        broker, equals, value = text.partition("=")
        if not (equals and broker.isdecimal() and value.isdecimal() and 1 <= int(value) <= LARGEST_CAPACITY):
            most = f"{LARGEST_CAPACITY:,}"
            raise click.UsageError(f"{option} {text!r} is not ID=N with N from 1 to {most}: use a value such as 3=200")
        found[int(broker)] = int(value)
    return found


def _settings(options: dict[str, Any]) -> Rebalance:
    objective = Objective(
        statistic=Statistic(options["statistic"]),
        preferred_racks=tuple(options["preferred_rack"]),
        max_moves=options["max_moves"],
        request_bytes=options["request_bytes"],
    )
    return Rebalance(
        objective=objective,
        capacities=_capacities("--capacity", options["capacity"]),
        request_capacities=_capacities("--request-capacity", options["request_capacity"]),
        excluded_topics=tuple(options["exclude"]),
        minimum_hours=options["minimum_hours"],
        minimum_measured_percent=options["minimum_measured"],
        waves=RebalanceWaves(partitions=options["wave_size"], pause_seconds=options["wave_pause"]),
    )


def _confirmed(question: str) -> bool:
    """Ask for confirmation; without a terminal the answer is no."""
    return sys.stdin.isatty() and click.confirm(question)

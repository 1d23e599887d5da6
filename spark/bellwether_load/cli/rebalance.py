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
from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether.ports.rebalance import RunState
from bellwether_load.cli.approve import finish, show_left, show_run

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.spec.rebalance_spec import LeaderRebalanceSpec
    from bellwether_load.plan.rebalance_plan import RebalancePlan

_FILE = click.Path(dir_okay=False, path_type=Path)

_BY_HAND: dict[str, Option] = {
    "store": click.option("--store", metavar="URI", help="Store of samples, loads and plans (--bootstrap)."),
    "filename": click.option(
        "--filename",
        "-f",
        type=_FILE,
        help="LeaderRebalance (YAML) with the settings to use instead of the defaults: objective, historyDays,"
        " minimums and waves (--bootstrap).",
    ),
    "record": click.option(
        "--record", type=_FILE, help="File of the undo record; required to apply a plan (--bootstrap)."
    ),
    "approve": click.option("--approve", metavar="DIGEST", help="Apply the plan with this digest (--bootstrap)."),
}
"""Options of a rebalance without the operator."""


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
    from bellwether_load.page.plan_report import print_report
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
    spec = _spec(options["filename"])
    settings = spec.to_core()
    inputs = offline_rebalance.OfflineRun(options["kafka"].connection(), options["store"], spec.history_days)
    store = Store.open(inputs.uri)
    if digest is None:
        found = offline_rebalance.plan_offline(inputs, record, settings, click.echo)
        plan = found.plan
        _require_evidence(plan, settings)
        story = tell(plan, read_moves(store, plan.digest), store=options["store"]).verified(found.report)
        print_report(story, waves=settings.waves)
        if not plan.moved.partitions + plan.moved.reordered:
            click.echo("the plan moves nothing")
            return
        if options["dry_run"]:
            return
        if not options["yes"] and not _confirmed(f"apply plan {plan.digest}?"):
            click.echo("nothing was moved")
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


def _spec(file: Path | None) -> LeaderRebalanceSpec:
    """The settings of a LeaderRebalance in a file, or the defaults."""
    from bellwether.api.v1alpha1.spec.rebalance_spec import LeaderRebalanceSpec
    from bellwether.cli.policies.policy_files import only_rebalance

    if file is None:
        return LeaderRebalanceSpec(policy="command")
    try:
        return only_rebalance(file).spec
    except ValueError as error:
        raise Terminal(f"--filename: {error}") from None


def _require_evidence(plan: RebalancePlan, settings: Rebalance) -> None:
    """Print what is missing and exit where the plan rests on too little."""
    if missing := plan.missing(settings):
        click.echo(f"{plan.evidence_line}\nno proposal: {missing}")
        raise click.exceptions.Exit(exit_status.BLOCKED)


def _confirmed(question: str) -> bool:
    """Ask for confirmation; without a terminal the answer is no."""
    return sys.stdin.isatty() and click.confirm(question)

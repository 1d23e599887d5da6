"""``bellwether rebalance show``: show a load plan in the terminal, as a document or as an HTML page."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from bellwether.cli.kubernetes_target import Target, connect, policy_options
from bellwether.cli.output import print_document
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError, Terminal
from bellwether_load.page.plan_summary import Story, tell
from bellwether_load.plan.rebalance_plan import RebalancePlan

if TYPE_CHECKING:
    from bellwether_load.store.filesystems import Store


@click.command()
@click.argument("digest", required=False)
@click.option(
    "--store",
    "uri",
    required=True,
    metavar="URI",
    help="Store of samples, loads and plans; that of a policy is STORE/NAMESPACE/NAME.",
)
@policy_options
@click.option("--top", default=20, show_default=True, help="Maximum number of brokers and of moves to show.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="Output format; documents have no moves.",
)
def show(digest: str | None, uri: str, target: Target, top: int, output: str) -> None:
    """Show a load plan of a store: its moves and its improvement.

    Shows the balance before and after, and the gap to the best possible balance. Without DIGEST it shows the newest
    plan in the store, or with --policy the newest one of this policy.
    """
    from bellwether_load.page.plan_report import plan_page, print_report
    from bellwether_load.store.filesystems import Store
    from bellwether_load.store.plans import plan_files

    try:
        store = Store.open(uri)
        history = plan_files.plans(store)
        found = plan_files.read_plan(store, digest) if digest else newest(history, str(store), _policy(target))
        if output in ("json", "yaml"):
            from bellwether_load.plan.documents import PLAN

            print_document(PLAN.to_json(found), output)
            return
        story = _verified(store, tell(found, plan_files.read_moves(store, found.digest), history, str(store)))
        if output == "html":
            click.echo(plan_page(story, top), nl=False)
            return
    except BellwetherError as error:
        raise click.ClickException(printable(str(error))) from None
    print_report(story, top)


def newest(history: tuple[RebalancePlan, ...], store: str, policy: str | None) -> RebalancePlan:
    """The newest plan, of one policy if given. Terminal if there is none."""
    mine = [p for p in history if policy in (None, p.policy)]
    if not mine:
        others = ", ".join(sorted({p.policy for p in history}))
        missing = f"{store} contains no plan" + (
            f" of policy {policy}; it contains plans of {others}" if others else ""
        )
        raise Terminal(f"{missing}: run `bellwether rebalance`, or use another --store")
    return mine[-1]


def _verified(store: Store, story: Story) -> Story:
    """The summary with the result of verifying the plan from its inputs, if these are still in the store."""
    from rich.console import Console

    from bellwether_load.store.plans.plan_files import source
    from bellwether_load.store.plans.plan_verification import recheck_stored
    from bellwether_load.store.store_errors import StoreError

    with Console(stderr=True).status("verifying the plan"), suppress(StoreError):
        if (problem := source(store, story.plan)) is not None:
            return story.verified(recheck_stored(store, problem, story.plan), problem)
    return story


def _policy(target: Target) -> str | None:
    """Namespace and name of the policy that --policy names."""
    if target.policy is None:
        return None
    return f"{target.namespace or connect(target)[1]}/{target.policy}"

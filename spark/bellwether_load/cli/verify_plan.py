"""``bellwether verify-plan``: verify a load plan independently, from its inputs.

In: the folders of problem, loads and plan. Out: a table or a document; exit status 0 if every figure of the plan is
correct, 4 if the plan is rejected, 1 if an input cannot be read.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from bellwether.cli import exit_status
from bellwether.cli.output import OUTPUT, print_document, printed
from bellwether.foreign_text import printable
from bellwether.ports.errors import BellwetherError

if TYPE_CHECKING:
    from bellwether_load.verify.plan_verifier import Report

_UNITS = "(maximum, mean, item and bound: bytes/s per 100 units of capacity; moved load: hundredths of a byte/s)"


@click.command()
@click.option("--problem", required=True, metavar="URI", help="Folder of the problem: STORE/problems/NAME.")
@click.option("--loads", required=True, metavar="URI", help="Folder of the loads that the plan was computed from.")
@click.option("--plan", required=True, metavar="URI", help="Folder of the plan: STORE/plans/DIGEST.")
@OUTPUT
def verify_plan(problem: str, loads: str, plan: str, output: str) -> None:
    """Verify a load plan from its inputs, independently.

    Checks the digests, every move, the balance, and the proof of the bound. Uses only the moves and weights of the
    plan, and shares with the planner how inputs are read, not what is computed of them. Exit status: 0 if every figure
    of the plan is correct, 4 if the plan is rejected, 1 if an input cannot be read.
    """
    # Read as Arrow is loaded. Its own pool holds on to what it has freed: a fifth of the peak.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from rich.console import Console

    from bellwether_load.store.filesystems import Store
    from bellwether_load.store.plans.plan_verification import recheck

    try:
        with Console(stderr=True).status("adding up all partitions"):
            report = recheck(Store.open(problem), Store.open(loads), Store.open(plan))
    except BellwetherError as error:
        if output != "table":
            print_document({"passed": False, "unreadable": str(error)}, output)
        raise click.ClickException(printable(str(error))) from None
    if output != "table":
        print_document(report.document(), output)
    else:
        _show(report, folder=urlsplit(plan).path.rstrip("/").rsplit("/", 1)[-1])
    if not report.passed:
        raise click.exceptions.Exit(exit_status.FOUND)


def _show(report: Report, folder: str) -> None:
    rows = [(c.name, c.said, c.found, "ok" if c.passed else "rejected") for c in report.checks]
    printed(("CHECK", "IN THE PLAN", "RECOMPUTED", ""), rows)
    click.echo(_UNITS)
    if report.reasons:
        click.echo(printable(f"note: {report.reasons}"))
    for fault in report.faults:
        click.echo(printable(f"rejected: {fault}"))
    if report.passed:
        click.echo(f"plan {report.digest}: verified")
        if folder != report.digest:
            click.echo(f"note: the plan's folder has another name: {printable(folder)}")
    else:
        click.echo(printable(f"plan {report.digest}: rejected"))

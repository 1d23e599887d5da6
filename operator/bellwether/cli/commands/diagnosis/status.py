"""``bellwether status``: one screen on a policy: who is sick, why, since when, what is blocked, and what to do."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@policy_options
@click.option("--all-namespaces", "-A", "everywhere", is_flag=True, help="One line for each policy of all namespaces.")
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    help="Namespace of the operator's Leases.  [default: that of the operator that reconciled last]",
)
@click.option("--watch", "-w", is_flag=True, help="Refresh every two seconds until interrupted.")
@OUTPUT
def status(**options: Any) -> None:
    """Show what is wrong with a policy, and the remedy.

    Shows the brokers with verdict, reason, since when and leaders; what is blocked and why; partitions at risk; the
    operator and the probers with the age of their reports; the rebalance; and for each thing that is wrong what to do
    and the page of the runbook. It reads the Kubernetes API only.

    The exit status is 0 if the status could be read, whatever it says.
    """
    from bellwether.cli.diagnosis.status import status as run

    run(**options)

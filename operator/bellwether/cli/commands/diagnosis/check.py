"""``bellwether check``: check an installation: CRDs, permissions, operator and Leases."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands import completion
from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kubernetes_options import clusterwide, policy_option


@click.command()
@policy_option("Check only this LeadershipPolicy and its namespace.", "all policies")
@click.option(
    "--namespace",
    "-n",
    "namespaces",
    multiple=True,
    shell_complete=completion.namespaces,
    help="Check only this namespace; repeatable.  [default: all; with --policy that of the context]",
)
@clusterwide
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Namespace of the Leases of Kafka clusters.",
)
@click.option(
    "--operator", "address", metavar="URL", help="Operator's URL; checks /readyz.  [default: judge by Leases]"
)
@click.option(
    "--wait",
    "wait_seconds",
    type=click.IntRange(0, 3600),
    default=0,
    show_default=True,
    help="Retry for at most this many seconds until every check passes.",
)
@OUTPUT
def check(**options: Any) -> None:
    """Check that an installation works.

    Checks the CRDs, the permissions of this account, the operator's readiness, and that an operator renews the Lease of
    each Kafka cluster. Without --operator it fails if no Lease shows a running operator. Changes nothing. Run it with
    the operator's ServiceAccount, as `helm test` does. Exit status 4 if a check fails.
    """
    from bellwether.cli.diagnosis.check import check as run

    run(**options)

"""``bellwether check``: does an installation work: CRDs, permissions, operator and Leases."""

from __future__ import annotations

from typing import Any

import click


@click.command()
@click.option("--namespace", "-n", "namespaces", multiple=True, help="Namespaces of policies; repeat it. Default: all.")
@click.option(
    "--lease-namespace",
    envvar="POD_NAMESPACE",
    default="default",
    show_default=True,
    help="Where the Leases of Kafka clusters stand.",
)
@click.option("--operator", "address", metavar="URL", help="Where the operator serves /readyz.  [default: not asked]")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.IntRange(0, 3600),
    default=0,
    show_default=True,
    help="Seconds that it may take until all is well.",
)
def check(**options: Any) -> None:
    """Check that an installation works.

    Checks the definitions, the permissions of this account, the operator, and which operator leads each policy. Run it
    as the operator's ServiceAccount, as `helm test` does.
    """
    from bellwether.cli.diagnosis.check import check as run

    run(**options)

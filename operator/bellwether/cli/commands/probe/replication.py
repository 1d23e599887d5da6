"""``bellwether probe replication``: ask leaders and followers where their logs end, and name the followers that lag."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.probe.prober_options import shared_options


@click.command()
@shared_options
@click.option(
    "--source",
    metavar="NAME",
    default="replication",
    show_default=True,
    help="Stable name of this prober; replicas of one share it, and one of them reports.",
)
@kafka_options
def replication(**options: Any) -> None:
    """Find the followers that lag.

    Asks leaders and followers where their logs end. One prober serves a whole cluster; it needs a path to every
    broker's internal listener. With --once it watches the followers that are behind until they have caught up, or the
    policy's threshold has passed; --bootstrap and the TLS and SASL options then name a cluster without Kubernetes.
    """
    from bellwether.cli.probe.replication import replication as run

    run(**options)

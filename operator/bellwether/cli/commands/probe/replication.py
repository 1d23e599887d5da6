"""``bellwether probe replication``: compare log end offsets and report followers that lag."""

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
    help="Stable name of this prober; its replicas share it, and one of them reports.",
)
@kafka_options
def replication(**options: Any) -> None:
    """Measure replication lag and report slow followers.

    Compares the log end offsets of leaders and followers. One prober serves a whole cluster; it must reach every
    broker's internal listener. With --once it watches the followers that are behind until they have caught up or the
    policy's threshold has passed; with --bootstrap and the TLS and SASL options --once needs no Kubernetes.
    """
    from bellwether.cli.probe.replication import replication as run

    run(**options)

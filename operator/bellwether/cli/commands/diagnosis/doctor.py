"""``bellwether doctor``: report partitions at risk, the effect on clients, and the remedies."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.common_options import OUTPUT
from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.kubernetes_options import policy_options

SHOWN = 10
"""Number of partitions at risk that are shown one by one without ``--all``."""


@click.command()
@policy_options
@kafka_options
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help=f"Examine only this topic, and show its {SHOWN} worst partitions one by one; repeatable.",
)
@click.option("--all", "everything", is_flag=True, help="Show every partition at risk, one by one.")
@click.option("--store", "uri", metavar="URI", help="Store of `bellwether sample`; used to estimate data loss.")
@OUTPUT
@click.option(
    "--unclean-election",
    "lossy",
    metavar="TOPIC-PARTITION",
    help="Elect an out-of-sync replica as leader of this partition; records are lost. Shows the expected loss first;"
    " requires --accept-loss.",
)
@click.option("--accept-loss", is_flag=True, help="Accept the data loss; asks for confirmation by name.")
def doctor(**options: Any) -> None:
    """Report partitions at risk and the remedies.

    Examines the Kafka cluster of the policy with its addresses and Secrets, or that of --bootstrap; both: the policy's
    at other addresses. Reads the cluster's metadata, contacts every broker, and classifies every partition. For each
    cause it reports how many partitions are at risk, the effect on clients, what is safe to do, and the remedies with
    their cost. With a policy it also reports the leaders that the policy judges Sick or Down: Kafka lists them as
    alive, and clients do not reach them or find them slow; and slow brokers in the ISR, for which acks=all waits.

    \b
    Exit status:
      0  no partition is at risk, no unhealthy broker leads one, and acks=all waits for no slow broker
      1  the cluster could not be examined
      3  an unclean election was refused, or has not produced a leader
      4  partitions are at risk, led by an unhealthy broker or held back by a slow one; each has a leader
      5  a partition has no leader

    With --unclean-election it elects an out-of-sync replica as leader of one partition that has no eligible leader;
    records are lost. No other command and no controller of Bellwether does this.
    """
    from bellwether.cli.diagnosis.doctor import doctor as run

    run(**options)

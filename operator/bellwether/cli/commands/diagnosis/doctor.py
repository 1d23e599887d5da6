"""``bellwether doctor``: which partitions are at risk, what clients see, and what a person can do about it."""

from __future__ import annotations

from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options

SHOWN = 10
"""How many partitions at risk are shown where not all are asked for."""


@click.command()
@kafka_options
@click.option("--topic", "topics", multiple=True, help="Only this topic; may be given several times.")
@click.option("--all", "everything", is_flag=True, help=f"Show every partition at risk, not the {SHOWN} worst.")
@click.option("--store", "uri", metavar="URI", help="Samples of `bellwether sample`: they bound what would be lost.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--unclean-election",
    "lossy",
    metavar="TOPIC-PARTITION",
    help="Elect a leader for this partition that lacks records. Shows first what would be lost; needs --accept-loss.",
)
@click.option("--accept-loss", is_flag=True, help="Accept that loss; it is still asked for by name.")
def doctor(**options: Any) -> None:
    """List the partitions at risk, and what to do about each.

    Says what clients see, what is safe, and what each way out costs.

    \b
    Exit status:
      0  nothing is at risk
      1  something is at risk, and every partition is led
      3  a partition can be neither read nor written, or an unclean election was not held, or has no leader to show
      4  the cluster could not be examined

    With --unclean-election it elects a leader without whom records are lost, for one partition that nobody can lead
    otherwise. Nothing else in Bellwether ever does that.
    """
    from bellwether.cli.diagnosis.doctor import doctor as run

    run(**options)

"""``bellwether sample``: measure each minute where every partition's log ends and how large it is, and keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kafka_options import kafka_options

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--policy", metavar="[NAMESPACE/]NAME", help="The LeadershipPolicy whose cluster is sampled.")
@click.option("--namespace", "-n", default="default", show_default=True, help="The policy's namespace.")
@kafka_options
@click.option(
    "--store",
    "uri",
    metavar="URI",
    help="A directory, or s3://, gs://, abfs://, hdfs://.  [default: the policy's rebalance.history]",
)
@click.option("--period", type=click.IntRange(1, 3600), default=60, show_default=True, help="Seconds between rounds.")
@click.option(
    "--once", is_flag=True, help="Take one round, write it, print what each broker told; exit 1 on a failure."
)
@click.option(
    "--broker-timeout",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    help="Seconds after which a broker that says nothing is left out of the round.",
)
@click.option(
    "--retention-days",
    type=click.IntRange(1, 3660),
    help="How many days of samples are kept.  [default: those of the policy's history, or 14]",
)
@click.option("--prometheus", metavar="URL", help="A Prometheus that knows how much consumers read of each topic.")
@click.option(
    "--consume-query",
    metavar="PROMQL",
    help="Bytes/s to consumers, one series for each topic.  [default: BytesOutPerSec of the JMX exporter or of"
    " Strimzi's Metrics Reporter]",
)
@click.option("--prometheus-token-file", type=_FILE, help="File with the bearer token for Prometheus.")
@click.option("--prometheus-ca", type=_FILE, help="PEM file of the authorities that sign Prometheus' certificate.")
@click.option("--upkeep/--no-upkeep", default=True, show_default=True, help="Compact files and remove old days, too.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port.")
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    help="Serve /healthz and /readyz on this port, too; --metrics-port serves them in any case.",
)
@click.option("--log-format", type=click.Choice(["auto", "json", "console"]), default="auto", show_default=True)
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def sample(**options: Any) -> None:
    """Measure the load of every partition, each minute.

    Asks all leaders where their logs end and how large they are, and keeps the answers as Parquet. Nothing is installed
    on brokers, and nothing is changed in Kafka. It may be killed and started at any time, and run twice. Rebalancing
    reads what it has written.
    """
    from bellwether.cli.rebalance.sample import sample as run

    run(**options)

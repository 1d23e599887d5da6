"""``bellwether sample``: record the log end offset and log size of every partition once per minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.common_options import LOG_FORMAT, LOG_LEVEL, METADATA_LIMIT, METRICS_PORT, OUTPUT
from bellwether.cli.commands.kafka_options import kafka_options
from bellwether.cli.commands.policy_selection import selecting

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@selecting
@kafka_options
@click.option(
    "--store",
    "uri",
    metavar="URI",
    help="Store: a directory, s3://, gs://, abfs:// or hdfs://.  [default: with --load-config, the policy's own"
    " directory in the store that it names]",
)
@click.option(
    "--load-config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file of the operator with the stores that policies name.",
)
@click.option("--period", type=click.IntRange(1, 3600), default=60, show_default=True, help="Seconds between samples.")
@click.option(
    "--once", is_flag=True, help="Take one sample, write it, print the result per broker; exit status 4 on a failure."
)
@OUTPUT
@click.option(
    "--broker-timeout",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    help="Request timeout per broker, in seconds; a broker that does not answer is left out of the sample.",
)
@click.option(
    "--retention-days",
    type=click.IntRange(1, 3660),
    help="Retention of samples, in days.  [default: the policy's rebalance.historyDays, or 14]",
)
@click.option("--prometheus", metavar="URL", help="Prometheus with the consumer throughput of each topic.")
@click.option(
    "--consume-query",
    metavar="PROMQL",
    help="Query for bytes/s to consumers, one series per topic; $namespace and $policy are replaced by the policy's."
    "  [default: BytesOutPerSec of the JMX exporter or of"
    " Strimzi's Metrics Reporter]",
)
@click.option("--prometheus-token-file", type=_FILE, help="File with the bearer token for Prometheus.")
@click.option("--prometheus-username", help="User name for Prometheus (basic authentication).")
@click.option("--prometheus-password-file", type=_FILE, help="File with the password for Prometheus.")
@click.option(
    "--prometheus-header",
    multiple=True,
    metavar="NAME=VALUE",
    help="Header of each request to Prometheus, such as X-Scope-OrgID=orders; repeatable.",
)
@click.option("--prometheus-proxy", metavar="URL", help="HTTP proxy to Prometheus.")
@click.option("--prometheus-ca", type=_FILE, help="PEM file of the CA certificates of Prometheus.")
@click.option(
    "--compaction/--no-compaction", default=True, show_default=True, help="Compact files and delete expired days."
)
@METADATA_LIMIT
@METRICS_PORT
@click.option(
    "--health-port",
    type=click.IntRange(1, 65535),
    help="Additional port of /healthz and /readyz.",
)
@LOG_FORMAT
@LOG_LEVEL
def sample(**options: Any) -> None:
    """Record the load of every partition once per minute.

    Requests the log end offsets and log sizes from all leaders and writes them as Parquet files; `bellwether rebalance`
    reads them. Without --policy or --bootstrap it samples the clusters of all policies of the namespaces, each into the
    store that it names. Installs nothing on the brokers and changes nothing in Kafka. It can be stopped and restarted
    at any time, and two replicas may run.
    """
    from bellwether.cli.rebalance.sample import sample as run

    run(**options)

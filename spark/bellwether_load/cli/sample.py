"""``bellwether sample``: record the log end offset and log size of every partition once per minute."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli import exit_status
from bellwether.cli.kafka_target import BOOTSTRAP, KafkaTarget, kafka_options
from bellwether.cli.kubernetes_target import Target, connect
from bellwether.cli.output import OUTPUT, print_rows
from bellwether.cli.probe.prober_options import need, reported
from bellwether.cli.process_options import LOG_FORMAT, LOG_LEVEL, METADATA_LIMIT, METRICS_PORT, selecting
from bellwether.telemetry.heartbeat import STUCK_SECONDS
from bellwether_load.cli.prometheus_access import prometheus_access

if TYPE_CHECKING:
    from bellwether.probes.runtime.watched_policies import Selection
    from bellwether.telemetry.health_server import Health
    from bellwether.telemetry.metrics.metric_registry import JointRegistry
    from bellwether_load.sampling.cluster_sampler import Cluster, ClusterSampler, Settings
    from bellwether_load.sampling.rounds import Rounds
    from bellwether_load.store.filesystems import Store
    from bellwether_load.store.samples.sample_files import SampleWriter


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
@click.option("--period", type=click.IntRange(1, 300), default=60, show_default=True, help="Seconds between samples.")
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
    help="Retention of hourly rollups, in days; samples are kept for two days."
    "  [default: historyDays of the policy's LeaderRebalance, all until there is one; with --bootstrap 14]",
)
@click.option("--prometheus", metavar="URL", help="Prometheus with the consumer throughput of each topic.")
@click.option(
    "--consume-query",
    metavar="PROMQL",
    help="Query for bytes/s to consumers, one series per topic; $namespace and $policy are replaced by the policy's."
    "  [default: BytesOutPerSec of the JMX exporter or of"
    " Strimzi's Metrics Reporter]",
)
@click.option(
    "--request-query",
    metavar="PROMQL",
    help="Query for requests/s, likewise.  [default: TotalProduceRequestsPerSec and TotalFetchRequestsPerSec; with"
    " several policies requests are not measured]",
)
@click.option(
    "--prometheus-credentials",
    "credentials",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory, such as a mounted Secret, with the files token, or username and password, and ca.crt; each is"
    " optional.",
)
@click.option(
    "--prometheus-header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="Header of each request to Prometheus, such as X-Scope-OrgID=orders; repeatable.",
)
@METADATA_LIMIT
@METRICS_PORT
@LOG_FORMAT
@LOG_LEVEL
def sample(
    policy: str | None,
    target: Target,
    selection: Selection,
    uri: str | None,
    load_config: Path | None,
    period: int,
    once: bool,
    output: str,
    broker_timeout: float,
    retention_days: int | None,
    prometheus: str | None,
    consume_query: str | None,
    request_query: str | None,
    credentials: Path | None,
    headers: tuple[str, ...],
    metadata_mebibytes: int,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
    kafka: KafkaTarget,
) -> None:
    """Record the load of every partition once per minute.

    Requests the log end offsets and log sizes from all leaders and writes them as Parquet files; `bellwether rebalance`
    reads them. Without --policy or --bootstrap it samples the clusters of all policies of the namespaces, each into the
    store that it names. Installs nothing on the brokers and changes nothing in Kafka. It can be stopped and restarted
    at any time, and two replicas may run.
    """
    from bellwether.destinations import ANYWHERE
    from bellwether.probes.runtime.prober_process import serve, stop_on_signals
    from bellwether.probes.runtime.watched_policies import Selection
    from bellwether.telemetry.health_server import Health
    from bellwether.telemetry.logs import configure
    from bellwether.telemetry.metrics.metric_registry import JointRegistry
    from bellwether_load.api.load_config import LoadConfig
    from bellwether_load.sampling.cluster_sampler import Cluster, ClusterSampler, Consumers, Settings, read_limits
    from bellwether_load.sampling.sampler_metrics import SamplingMetrics
    from bellwether_load.sampling.topic_consumption import DEFAULT_QUERY, DEFAULT_REQUEST_QUERY

    configure(log_format, "warning" if once and log_level == "info" else log_level)
    by_hand = bool(kafka.servers)
    if by_hand and (policy or selection.namespaces or selection.everywhere):
        raise click.UsageError("Set either --policy, or --bootstrap or --command-config.")
    if not by_hand and kafka.command_config is not None:
        raise click.UsageError(f"--command-config requires {BOOTSTRAP}: with --policy the connection is the policy's.")
    if load_config is not None and by_hand:
        raise click.UsageError("--load-config requires --policy, which names a store in it: set --store instead.")
    if by_hand or policy:
        need(uri or (policy and load_config), "--store", "the store of the samples (or --policy with --load-config)")
    else:
        need(not once, "--policy", "the LeadershipPolicy to sample once (or --bootstrap)")
        _check_several(uri, load_config, prometheus, (consume_query or "", request_query or "$policy"))
    with reported():
        if prometheus is None and (credentials or headers):
            raise click.UsageError("The options --prometheus-... require --prometheus.")
        access = partial(prometheus_access, credentials, headers)
        access()  # a mistake ends the command
        if prometheus is not None and not prometheus.startswith(("http://", "https://")):
            raise click.UsageError(
                f"--prometheus {prometheus!r} is not a URL: use a value such as http://prometheus:9090."
            )
        consumers = Consumers(prometheus, consume_query or DEFAULT_QUERY, access)
        if request_query is None and (by_hand or policy):
            request_query = DEFAULT_REQUEST_QUERY
        settings = Settings(
            uri,
            LoadConfig.read(load_config) if load_config is not None else None,
            period,
            broker_timeout,
            retention_days,
            consumers,
            read_limits(period, metadata_mebibytes),
            Consumers(prometheus, request_query, access) if request_query else None,
        )
        if once:
            anywhere = Selection(ANYWHERE)  # a person named the policy
            cluster = (
                Cluster(kafka.connection) if by_hand else Cluster.of_policy(str(policy), *connect(target), anywhere)
            )
            sampler = ClusterSampler(settings, lambda: cluster, SamplingMetrics(), threading.Event())
            sys.exit(sampler.work(partial(_print_one, output)))
        health = Health()
        if by_hand:
            cluster, metrics = Cluster(kafka.connection), SamplingMetrics()
            serve(health, metrics.registry, metrics_port)
            alone = ClusterSampler(settings, lambda: cluster, metrics, stop_on_signals())
            health.watch(lambda: alone.problems(STUCK_SECONDS))
            alone.run()
        else:
            registry = JointRegistry("sampler")
            serve(health, registry, metrics_port)
            _sample_policies(target, selection, settings, registry, health)


def _check_several(uri: str | None, load_config: Path | None, prometheus: str | None, queries: tuple[str, ...]) -> None:
    """Refuse options that would mix the samples of several Kafka clusters."""
    from bellwether_load.sampling.cluster_sampler import MARKS

    if uri:
        raise click.UsageError(
            "--store requires --policy or --bootstrap: with --load-config each policy has a directory of its own."
        )
    need(load_config, "--load-config", "the stores that policies name (or --policy or --bootstrap, and --store)")
    if prometheus and not all(any(mark in query for mark in MARKS) for query in queries):
        raise click.UsageError(
            "--prometheus for several policies requires a --consume-query with $namespace or $policy, and so does"
            " --request-query: topics of different Kafka clusters may have the same name."
        )


def _sample_policies(
    target: Target, selection: Selection, settings: Settings, registry: JointRegistry, health: Health
) -> None:
    """Sample the cluster of every policy of the selection, each on threads of its own."""
    from bellwether.probes.runtime.prober import read_policy
    from bellwether.probes.runtime.prober_process import stop_on_signals
    from bellwether.probes.runtime.watched_policies import PolicyList, WatchedPolicies
    from bellwether_load.sampling.cluster_sampler import Cluster, ClusterSampler
    from bellwether_load.sampling.sampler_metrics import SamplingMetrics

    api, default = connect(target)
    if selection.policy is not None:
        read_policy(api, default, selection.policy)  # a name that is wrong ends the command instead of waiting

    def begin(namespace: str, name: str, stop: threading.Event) -> ClusterSampler:
        def cluster() -> Cluster:
            return Cluster.of_policy(name, api, namespace, selection)

        metrics = SamplingMetrics({"namespace": namespace, "policy": name})
        return ClusterSampler(settings, cluster, metrics, stop, registry)

    listed = PolicyList(api, default, selection)
    policies = WatchedPolicies(listed.read, begin, SystemClock())
    health.watch(policies.problems)
    health.require(listed.unread)
    policies.run(stop_on_signals())


def _print_one(output: str, _cluster: Cluster, rounds: Rounds, writer: SampleWriter, store: Store) -> int:
    """Take and write one sample, print the result per broker; returns the exit status. Raises Transient or Terminal."""
    found = rounds.take(SystemClock().now().replace(microsecond=0))
    size = writer.write(found.rows)
    print_rows(
        ("BROKER", "LEADERS", "OFFSETS", "SIZES", "MOVED", "MESSAGE"),
        [
            (str(number), str(one.asked), str(len(one.ends)), str(len(one.sizes)), str(one.moved), one.problem)
            for number, one in sorted(found.answers.items())
        ],
        output,
    )
    for what in ("metadata", "consumers", "requests"):
        if what in found.troubles:
            click.echo(f"{what}: {found.troubles[what]}", err=output != "table")
    leaderless = sum(leader < 0 for leader in found.rows.leader)
    click.echo(
        f"{len(found.rows)} partitions, {leaderless} without a leader, in {found.seconds:.1f} s; {size} bytes written"
        f" to {store}",
        err=output != "table",
    )
    return exit_status.FOUND if found.troubles else 0

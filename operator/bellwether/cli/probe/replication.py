"""``bellwether probe replication``: compare log end offsets and report followers that lag."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.probe.prober_options import ProberRun, prober_command
from bellwether.cli.process_options import METADATA_LIMIT
from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import Connection

if TYPE_CHECKING:
    from bellwether.adapters.kafka.connection.broker_pool import Limits
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.replication.lag_round import LagRounds
    from bellwether.probes.runtime.prober_process import PolicyProber


@prober_command(
    click.option(
        "--source",
        metavar="NAME",
        default="replication",
        show_default=True,
        help="Stable name of this prober; its replicas share it, and one of them reports.",
    ),
    METADATA_LIMIT,
    kafka=True,
)
def replication(run: ProberRun, source: str, metadata_mebibytes: int) -> None:
    """Measure replication lag and report slow followers.

    Compares the log end offsets of leaders and followers. One prober serves a whole cluster; it must reach every
    broker's internal listener. With --once it watches the followers that are behind until they have caught up or the
    policy's threshold has passed; with --bootstrap or --command-config --once needs no Kubernetes.
    """
    from bellwether.adapters.kafka.connection.broker_pool import Limits
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection

    limits = Limits(metadata_bytes=metadata_mebibytes << 20)
    run.need_policy()
    if run.kafka:
        sys.exit(_once(run.kafka, limits, ReplicationLag(), run.output))
    if run.once:
        found, secrets = run.read_policy()
        settings = found.policy().detection.replication_lag
        sys.exit(_once(connection(found.spec.kafka, secrets), limits, settings, run.output))
    process = run.process(SignalType.REPLICATION_LAG, "--source", source)
    process.run(lambda policy: _run(policy, limits))


def _run(policy: PolicyProber, limits: Limits) -> None:
    """Measure under the policy's settings until it has to end."""
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
    from bellwether.probes.replication.replication_probe import ReplicationProbe
    from bellwether.telemetry.metrics.probe_metrics import LagMetrics

    prober, metrics = policy.prober, LagMetrics(policy.metrics)
    running = ReplicationProbe(prober.source, prober.post, prober.forget, prober.brokers, policy.clock, metrics)
    used: tuple[Connection, LagRounds] | None = None

    def follow(found: LeadershipPolicy | None) -> bool:
        nonlocal used
        if found is None or not found.policy().detection.replication_lag.enabled:
            running.configure(None, ReplicationLag())
            used = None
            return False
        made = connection(found.spec.kafka, policy.secrets)
        if used is None or made != used[0]:
            used = made, _lag_rounds(made, limits)
        running.configure(used[1], found.policy().detection.replication_lag)
        return True

    running.start()
    policy.run(running, follow)


def _lag_rounds(made: Connection, limits: Limits) -> LagRounds:
    from bellwether.adapters.kafka.brokers.log_ends import LogEnds
    from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
    from bellwether.adapters.kafka.metadata_reader import KafkaReader
    from bellwether.probes.replication.lag_round import LagRounds

    return LagRounds(KafkaReader(BrokerPool(made, limits)), LogEnds(made), SystemClock())


def _once(made: Connection, limits: Limits, settings: ReplicationLag, output: str) -> int:
    from bellwether.cli.probe import measurement_table

    rounds = _lag_rounds(made, limits)
    try:
        return measurement_table.replication(rounds, settings, SystemClock(), output)
    finally:
        rounds.close()

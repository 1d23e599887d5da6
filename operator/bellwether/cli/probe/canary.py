"""``bellwether probe canary``: produce and fetch one small record per broker and second, as clients at this vantage."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.probe.prober_options import ProberRun, prober_command
from bellwether.core.settings.detection import CANARY_TOPIC, Canary, Detection
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient

if TYPE_CHECKING:
    from bellwether.adapters.kafka.canary_client import ConfluentCanary
    from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.runtime.prober_process import PolicyProber

REFRESH_SECONDS = 10.0


@prober_command(
    click.option("--vantage", metavar="NAME", help="Stable name of this vantage, such as eu-west-1a."),
    click.option("--topic", metavar="NAME", help="With --bootstrap: the topic.  [default: bellwether-canary]"),
    kafka=True,
)
def canary(run: ProberRun, vantage: str | None, topic: str | None) -> None:
    """Produce a record to every broker and fetch it.

    Measures once per second what clients at this vantage experience, through the external listener. The topic of
    detection.canary has one partition for each broker and must exist. Needs Read and Write on that topic.
    """
    from bellwether.adapters.kafka.canary_client import ConfluentCanary

    if topic and not run.kafka:
        raise click.UsageError("--topic requires --bootstrap: with --policy the topic is detection.canary.topic.")
    run.need_policy()
    if run.once:
        if run.kafka:
            outside, detection = run.kafka, Detection(canary=Canary(topic=topic or CANARY_TOPIC))
        else:
            found, secrets = run.read_policy()
            outside, detection = _outside(found, secrets), found.policy().detection
        client = ConfluentCanary(outside, detection.canary.topic, Canary.timeout_seconds)
        try:
            sys.exit(_once(client, detection.objectives, run.output))
        finally:
            client.close()
    run.process(SignalType.CANARY, "--vantage", vantage).run(_run)


def _run(policy: PolicyProber) -> None:
    """Measure under the policy's settings until it has to end."""
    running = CanaryRun(policy)
    running.probe.start()
    try:
        policy.run(running.probe, running.follow, running.refresh)
    finally:
        running.close()


@dataclass(frozen=True)
class _Used:
    """The client and what it was made of."""

    connection: Connection
    topic: str
    client: ConfluentCanary


class CanaryRun:
    """The probe of one policy, with the client that its present settings need."""

    def __init__(self, policy: PolicyProber) -> None:
        import structlog

        from bellwether.probes.canary.canary_probe import CanaryProbe
        from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics

        prober, metrics = policy.prober, CanaryMetrics(policy.metrics)
        self._prober = prober
        self._secrets = policy.secrets
        self._policy: LeadershipPolicy | None = None
        self._used: _Used | None = None
        self._log = structlog.get_logger(__name__)
        self._trouble = ""
        self.probe = CanaryProbe(prober.source, prober.post, prober.forget, policy.clock, metrics)

    def follow(self, found: LeadershipPolicy | None) -> bool:
        """Apply the policy's settings; returns whether to measure."""
        wanted = found is not None and found.policy().detection.canary.enabled
        self._policy = found if wanted else None
        if found is not None:
            self.probe.configure(found.policy().detection.objectives)
        return wanted

    def refresh(self) -> float:
        """Follow connection, topic and brokers; returns the seconds until this is due again."""
        from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
        from bellwether.adapters.kafka.canary_client import ConfluentCanary

        found, brokers = self._policy, self._prober.brokers()
        if found is None:
            self._use(None)
            self._hold(0)
            self.probe.refresh(None, {}, frozenset())
            return 0.5
        if brokers is None:
            return 1.0
        topic = found.policy().detection.canary.topic
        try:
            outside = _outside(found, self._secrets)
            if self._used is None or (outside, topic) != (self._used.connection, self._used.topic):
                self._hold(len(BrokerDirectory(outside).brokers()))  # before librdkafka has threads for them
                self._use(_Used(outside, topic, ConfluentCanary(outside, topic, Canary.timeout_seconds)))
            used = self._used
            partitions = used.client.partitions() if used is not None else {}
            self._hold(used.client.brokers if used is not None else 0)
        except Transient as error:
            self._say(str(error))  # brokers go on being measured by the partitions that are known
            return REFRESH_SECONDS / 2
        except Terminal as error:
            self._say(str(error))
            self._use(None)
            self.probe.refresh(None, {}, brokers, str(error))
            return REFRESH_SECONDS
        self._say("")
        self.probe.refresh(used.client if used is not None else None, partitions, brokers)
        return REFRESH_SECONDS

    def close(self) -> None:
        """Close the client."""
        self._policy = None
        self._use(None)

    def _hold(self, brokers: int) -> None:
        from bellwether.adapters.kafka.canary_client import BROKERS_HELD, MOST_BROKERS

        try:
            BROKERS_HELD.hold(self, brokers, MOST_BROKERS)
        except Terminal:
            self._use(None)
            raise

    def _use(self, used: _Used | None) -> None:
        before, self._used = self._used, used
        if before is not None and before is not used:
            before.client.close()

    def _say(self, trouble: str) -> None:
        """Log a problem once, not at each refresh."""
        if trouble and trouble != self._trouble:
            self._log.warning("canary_topic_not_read", error=trouble)
        self._trouble = trouble


def _once(client: ConfluentCanary, objectives: Objectives, output: str) -> int:
    from bellwether.cli.probe import measurement_table
    from bellwether.probes.canary.canary_probe import CanaryProbe
    from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics, ProbeMetrics

    clock, metrics, partitions = SystemClock(), CanaryMetrics(ProbeMetrics()), client.partitions()
    probe = CanaryProbe("once", lambda _signal: None, lambda _broker: None, clock, metrics)
    probe.configure(objectives)
    probe.refresh(client, partitions, frozenset(partitions))
    return measurement_table.canary(probe, partitions, objectives, clock, output)


def _outside(found: LeadershipPolicy, secrets: SecretReader) -> Connection:
    """Connection to the first external listener, by its bootstrap addresses or by those that the brokers advertise."""
    from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
    from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
    from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import sides
    from bellwether.probes.plugins.broker_listeners import Listeners

    settings = found.policy().detection.external_reachability
    both = sides(found.spec.kafka, secrets, settings.listeners, settings.bootstrap_servers)
    made, addresses, first = both.connection, both.outside, both.listeners[0]
    if not addresses:
        known = Listeners(BrokerDirectory(made).brokers, BrokerProbe(made), SystemClock()).refresh()
        addresses = tuple(sorted({said[first] for said in known.values() if first in said}))
    if not addresses:
        raise Transient(
            f"no broker reports the address of listener {first}: set detection.externalReachability.bootstrapServers"
        )
    return Connection(addresses, made.security, made.client_id)

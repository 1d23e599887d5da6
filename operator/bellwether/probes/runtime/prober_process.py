"""Process of a prober, shared by the commands of ``bellwether probe``: policies, metrics, signals, exit."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import structlog
from prometheus_client import CollectorRegistry

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.meta_properties import LogDirIdentity, same_broker
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.destinations import NOT_LOCAL
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient
from bellwether.probes.runtime.prober import Probe, Prober
from bellwether.probes.runtime.watched_policies import PolicyList, Selection, WatchedPolicies
from bellwether.telemetry.health_server import Health, HealthServer
from bellwether.telemetry.metrics.metric_registry import JointRegistry
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics

IDENTIFY_SECONDS = 2.0


@dataclass(frozen=True)
class PolicyProber:
    """A prober of one policy with its metrics. ``stop`` is set when it has to end."""

    prober: Prober
    metrics: ProbeMetrics
    clock: Clock
    stop: threading.Event
    secrets: SecretReader

    def run(
        self,
        probe: Probe,
        follow: Callable[[LeadershipPolicy | None], bool],
        refresh: Callable[[], float] | None = None,
    ) -> None:
        """Report until ``stop``, with ``follow`` as in ``Prober.run``. Raises ProbeDied.

        ``refresh`` updates the probe's brokers on a thread of its own, and returns the seconds until it is due again.
        """
        if refresh is not None:
            threading.Thread(target=self._repeat, args=(refresh,), name="brokers", daemon=True).start()
        try:
            self.prober.run(probe, follow, self.stop)
        finally:
            probe.stop()

    def _repeat(self, refresh: Callable[[], float]) -> None:
        while not self.stop.is_set():
            self.stop.wait(refresh())


@dataclass(frozen=True)
class SidecarProcess:
    """A process next to one broker, which serves metrics and health while it waits for what proves its broker.

    ``found`` is what was identified so far.
    """

    target: tuple[KubernetesClient, str]
    policy: str
    signal_type: str
    page: JointRegistry
    health: Health
    stop: threading.Event
    found: list[LogDirIdentity] = field(default_factory=list)

    @classmethod
    def begin(
        cls, target: tuple[KubernetesClient, str], policy: str, signal_type: str, port: int | None
    ) -> SidecarProcess:
        """Serve metrics and health, and handle SIGTERM and SIGINT. ``target`` has the policy's namespace."""
        _, namespace = target
        page = JointRegistry("prober", {"namespace": namespace, "policy": policy, "type": signal_type})
        process = cls(target, policy, signal_type, page, Health(), stop_on_signals())
        serve(process.health, page, port)
        return process

    def identify(self, read: Callable[[], LogDirIdentity]) -> LogDirIdentity | None:
        """Wait until the broker is known; None if the process has to stop first. Raises Terminal if there are two.

        A sidecar may start before its broker has formatted a new disk, and must not end because of that.
        """
        said = ""
        while not self.stop.is_set():
            try:
                self.found.append(identity := read())
                same_broker(self.found)
                return identity
            except Transient as error:
                if str(error) != said:
                    said = str(error)
                    structlog.get_logger(__name__).warning("broker_id_unknown", reason=said)
            self.stop.wait(IDENTIFY_SECONDS)
        return None

    def prober(
        self, source: str, identity: LogDirIdentity, what: str = "", *, further_types: Collection[str] = ()
    ) -> PolicyProber:
        """A prober of this broker with a Lease and metrics of its own. ``what`` is measured; empty: the directory."""
        api, namespace = self.target
        labels = {"namespace": namespace, "policy": self.policy, "type": self.signal_type, "source": source}
        metrics, clock = ProbeMetrics(labels), SystemClock()
        self.page.add(metrics.registry)
        self.health.watch(metrics.health.dead)
        where = f"broker {identity.broker} at {socket.gethostname()}: {f'{what}, ' if what else ''}{identity}"
        prober = Prober(
            api,
            namespace,
            self.policy,
            self.signal_type,
            source,
            clock,
            metrics,
            further_types=further_types,
            measured=where,
            identity=identity,
        )
        return PolicyProber(prober, metrics, clock, self.stop, SecretReader(api, namespace, destinations=NOT_LOCAL))


@dataclass(frozen=True)
class _Run:
    """``PolicyRun`` of a prober. Secrets' files and metrics go with it."""

    prober: PolicyProber
    measure: Callable[[PolicyProber], None]
    served: JointRegistry

    def run(self) -> None:
        """Measure until the prober's stop event is set."""
        self.served.add(self.prober.metrics.registry)
        try:
            self.measure(self.prober)
        finally:
            self.served.remove(self.prober.metrics.registry)
            self.prober.secrets.close()

    def problems(self, bound_seconds: float) -> list[str]:
        """Failures that only a restart fixes."""
        return self.prober.prober.problems(bound_seconds)


@dataclass(frozen=True)
class ProberProcess:
    """A prober of every policy of a selection: ``measure`` runs for each of them, on a thread of its own."""

    target: tuple[KubernetesClient, str]
    selection: Selection
    signal_type: str
    source: str
    metrics: JointRegistry
    health: Health
    many: bool = False

    @classmethod
    def begin(
        cls,
        target: tuple[KubernetesClient, str],
        selection: Selection,
        signal_type: str,
        source: str,
        port: int | None,
        *,
        many: bool = False,
    ) -> ProberProcess:
        """Serve metrics and health. ``target`` has the namespace of a selection that names none."""
        metrics, health = JointRegistry("prober", {"type": signal_type, "source": source}), Health()
        serve(health, metrics, port)
        return cls(target, selection, signal_type, source, metrics, health, many)

    def run(self, measure: Callable[[PolicyProber], None]) -> None:
        """Measure until SIGTERM or SIGINT."""
        api, default = self.target
        clock, stop, rules = SystemClock(), stop_on_signals(), self.selection

        def begin(namespace: str, policy: str, ended: threading.Event) -> _Run:
            labels = {"namespace": namespace, "policy": policy, "type": self.signal_type, "source": self.source}
            metrics = ProbeMetrics(labels)
            prober = Prober(api, namespace, policy, self.signal_type, self.source, clock, metrics, many=self.many)
            secrets = SecretReader(api, namespace, labelled=rules.labelled_secrets, destinations=rules.destinations)
            return _Run(PolicyProber(prober, metrics, clock, ended, secrets), measure, self.metrics)

        listed = PolicyList(api, default, self.selection)
        policies = WatchedPolicies(listed.read, begin, clock)
        self.health.watch(policies.problems)
        self.health.require(listed.unread)
        policies.run(stop)


def serve(health: Health, registry: CollectorRegistry, port: int | None) -> None:
    """Serve metrics and health on ``--metrics-port``, if there is one. Terminal if it cannot be opened."""
    if port is None:
        return
    try:
        HealthServer(health, port, registry)
    except OSError as error:
        raise Terminal(f"--metrics-port {port}: {error.strerror}; choose a free port") from error


def run_each(runs: Collection[Callable[[], None]], stop: threading.Event) -> None:
    """Run these at the same time. When the first one ends, all are stopped. Raises what one of them raised."""
    with ThreadPoolExecutor(len(runs), thread_name_prefix="prober") as pool:
        ends = [pool.submit(run) for run in runs]
        wait(ends, return_when=FIRST_COMPLETED)
        stop.set()
    for end in ends:
        end.result()


def stop_on_signals() -> threading.Event:
    """Event that is set on SIGTERM and SIGINT."""
    stop = threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        structlog.get_logger(__name__).info("process_stopping", signal=signal.Signals(number).name)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop

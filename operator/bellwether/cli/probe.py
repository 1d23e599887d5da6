"""``bellwether probe``: look at brokers from where this process stands, and say what was seen.

``reachability`` runs at a vantage outside, ``storage`` beside a broker on its volume. Both follow a LeadershipPolicy.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import structlog
from prometheus_client import start_http_server

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.probing import BrokerProbe
from bellwether.adapters.kafka.rosters import KafkaRoster
from bellwether.adapters.kubernetes.client import POLICIES, KubernetesClient, connect
from bellwether.adapters.kubernetes.connections import connection
from bellwether.adapters.kubernetes.credentials import SecretReader
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.cli import measurements
from bellwether.cli.probers import ProbeDied, Prober
from bellwether.connections import Connection
from bellwether.core.policies import Reachability, StorageLatency
from bellwether.core.signals import SignalType
from bellwether.ports import BellwetherError
from bellwether.probes.diskwrites import DiskWriter
from bellwether.probes.reachability import ReachabilityProbe
from bellwether.probes.rosters import TwoSides
from bellwether.probes.storage import StorageProbe
from bellwether.telemetry.logs import configure
from bellwether.telemetry.probing import ProbeMetrics

ROSTER_SECONDS = 10.0


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that both probes take."""
    for option in reversed(
        (
            click.option("--policy", metavar="NAME", help="The LeadershipPolicy to follow."),
            click.option("--namespace", "-n", default="default", show_default=True, help="The policy's namespace."),
            click.option(
                "--once", is_flag=True, help="Measure once, print a table, write nothing; exit 1 on a failure."
            ),
            click.option(
                "--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port."
            ),
            click.option(
                "--log-format", type=click.Choice(["auto", "json", "console"]), default="auto", show_default=True
            ),
            click.option(
                "--log-level",
                type=click.Choice(["debug", "info", "warning", "error"]),
                default="info",
                show_default=True,
            ),
        )
    ):
        command = option(command)
    return command


@click.group()
def probe() -> None:
    """Look at brokers from here, and report what was seen.

    Each prober writes its own entries of BrokerHealth.status.signals, when they change, and renews a Lease of its own:
    when it falls silent its entries count for nothing.
    """


@probe.command()
@shared_options
@click.option("--vantage", metavar="NAME", help="Stable name of this place, such as eu-west-1a.")
@click.option(
    "--no-internal",
    is_flag=True,
    help="This vantage has no path to the internal listener: ask no control, find the brokers from outside.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    multiple=True,
    help="With --once: ask this cluster, without Kubernetes, TLS or SASL. May be repeated.",
)
@click.option("--listener", help="With --bootstrap: name of the external listener.  [default: EXTERNAL]")
def reachability(
    policy: str | None,
    namespace: str,
    vantage: str | None,
    once: bool,
    no_internal: bool,
    bootstrap: tuple[str, ...],
    listener: str | None,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Ask every broker at its external address, and at its internal one as the control.

    The answer must come from that very broker: an open port does not count, nor does another broker behind the load
    balancer.
    """
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    if bootstrap and not once:
        raise click.UsageError("--bootstrap goes with --once: without Kubernetes there is nowhere to report to.")
    if listener and not bootstrap:
        raise click.UsageError("--listener goes with --bootstrap: a policy names its own.")
    _need(policy or bootstrap, "--policy", "the LeadershipPolicy to follow (or --once with --bootstrap)")
    with _reported():
        if bootstrap:
            settings = Reachability(listener=listener) if listener else Reachability()
            sys.exit(_once_reachability(Connection(bootstrap), settings, no_internal))
        api = connect()
        prober = _Reachability(api, namespace, str(policy), no_internal)
        if once:
            made, settings = prober.connection(_read(api, namespace, str(policy)))
            sys.exit(_once_reachability(made, settings, no_internal))
        _need(vantage, "--vantage", "a stable name for this place, such as eu-west-1a")
        prober.run(str(vantage), _metrics(metrics_port), _stop_on_signals())


@probe.command()
@shared_options
@click.option("--broker", type=click.IntRange(0), help="Id of the broker whose volume this is.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="The broker's log directory; a hidden file of 4 KiB is written there.",
)
@click.option("--source", metavar="NAME", help="Stable name of this prober.  [default: broker-<ID>]")
def storage(
    policy: str | None,
    namespace: str,
    broker: int | None,
    directory: Path | None,
    source: str | None,
    once: bool,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Time a small write with fdatasync in a broker's log directory, each second.

    A broker with several log directories needs one prober for each, told apart by --source.
    """
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    _need(directory, "--directory", "the broker's log directory")
    assert directory is not None  # noqa: S101 - _need has seen to it
    with _reported():
        if once:
            settings = StorageLatency()
            if policy:
                settings = _read(connect(), namespace, policy).policy().storage
            sys.exit(measurements.storage(DiskWriter(directory), str(directory), settings, SystemClock()))
        _need(policy, "--policy", "the LeadershipPolicy to follow")
        _need(broker is not None, "--broker", "the id of the broker whose volume this is")
        metrics, stop, clock = _metrics(metrics_port), _stop_on_signals(), SystemClock()
        number, name = int(broker or 0), source or f"broker-{broker}"
        prober = Prober(connect(), namespace, str(policy), SignalType.STORAGE_LATENCY, name, clock, metrics)
        settings = StorageLatency()
        running = StorageProbe(number, name, DiskWriter(directory), settings, prober.post, clock, metrics)

        def follow(found: LeadershipPolicy | None) -> bool:
            if found is None:
                return False
            wanted = found.policy().storage
            running.configure(wanted)
            return wanted.enabled

        running.start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


class _Reachability:
    """The reachability prober's parts, put together from what its policy says."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, no_internal: bool) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._no_internal = no_internal
        self._secrets = SecretReader(api, namespace, Path(tempfile.mkdtemp(prefix="bellwether-")))
        self._connection: Connection | None = None
        self._roster: TwoSides | None = None
        self._wanted = False

    def connection(self, found: LeadershipPolicy) -> tuple[Connection, Reachability]:
        """How to ask, and under which settings."""
        return connection(found.spec.kafka, self._secrets), found.policy().reachability

    def run(self, vantage: str, metrics: ProbeMetrics, stop: threading.Event) -> None:
        """Probe until ``stop``."""
        clock = SystemClock()
        prober = Prober(
            self._api, self._namespace, self._policy, SignalType.EXTERNAL_REACHABILITY, vantage, clock, metrics
        )
        asker = BrokerProbe(Connection(("unknown.invalid:9092",)))  # replaced before the first question is asked
        running = ReachabilityProbe(vantage, asker, Reachability(), prober.post, prober.forget, clock, metrics)

        def follow(found: LeadershipPolicy | None) -> bool:
            self._wanted = found is not None and found.spec.detection.external_reachability.enabled
            if found is None or not self._wanted:
                running.stop()
                return False
            made, settings = self.connection(found)
            if made != self._connection or self._roster is None:
                self._connection = made
                self._roster = _sides(made, settings, self._no_internal)
            running.configure(BrokerProbe(made), settings)
            return True

        def refresh() -> None:
            while not stop.is_set():
                roster = self._roster
                if roster is not None and self._wanted:
                    running.refresh(roster, prober.brokers())
                stop.wait(ROSTER_SECONDS if roster is not None else 0.2)

        threading.Thread(target=refresh, name="roster", daemon=True).start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()


def _sides(made: Connection, settings: Reachability, no_internal: bool) -> TwoSides:
    outside = settings.bootstrap_servers or (made.bootstrap if no_internal else ())
    external = KafkaRoster(Connection(tuple(outside), made.security, made.client_id)).brokers if outside else None
    return TwoSides(None if no_internal else KafkaRoster(made).brokers, external)


def _once_reachability(made: Connection, settings: Reachability, no_internal: bool) -> int:
    return measurements.reachability(_sides(made, settings, no_internal), BrokerProbe(made), settings)


def _read(api: KubernetesClient, namespace: str, policy: str) -> LeadershipPolicy:
    return LeadershipPolicy.read(api.get(POLICIES, namespace, policy))


def _need(value: object, option: str, what: str) -> None:
    if not value:
        raise click.UsageError(f"Missing option '{option}': {what}.")


class _reported:  # noqa: N801 - used as a with statement's word
    """Errors of the ports become one line for a person, and exit status 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BellwetherError | ProbeDied | ValueError):
            raise click.ClickException(str(error)) from error


def _metrics(port: int | None) -> ProbeMetrics:
    metrics = ProbeMetrics()
    if port is not None:
        try:
            start_http_server(port, registry=metrics.registry)
        except OSError as error:
            raise click.ClickException(f"--metrics-port {port}: {error.strerror}; choose a free port") from error
    return metrics


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        structlog.get_logger(__name__).info("stopping", signal=signal.Signals(number).name)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop

"""Process of a prober, shared by the commands of ``bellwether probe``: policy, metrics, signals, exit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

import click
import structlog
from prometheus_client import CollectorRegistry

from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.commands.probe.prober_options import HEALTH_PORT
from bellwether.cli.probe.prober import Probe, ProbeDied, Prober
from bellwether.core.settings.detection import Detection
from bellwether.ports.errors import BellwetherError
from bellwether.telemetry.health_server import Health, HealthServer
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics


class Settings(Protocol):
    """Settings of one signal type in a policy."""

    @property
    def enabled(self) -> bool:
        """Whether it is enabled."""
        ...


Chosen_contra = TypeVar("Chosen_contra", bound=Settings, contravariant=True)


class Sidecar(Probe, Protocol[Chosen_contra]):
    """A probe in the pod of one broker; only its settings come from the policy."""

    def configure(self, settings: Chosen_contra) -> None:
        """Apply these settings."""
        ...

    def start(self) -> None:
        """Start measuring."""
        ...

    def stop(self) -> None:
        """Stop measuring."""
        ...


def read_policy(api: KubernetesClient, namespace: str, policy: str) -> LeadershipPolicy:
    """The policy as it is now. Raises Transient or Terminal."""
    return LeadershipPolicy.read(api.get(POLICIES, namespace, policy))


def need(value: object, option: str, what: str) -> None:
    """Raise UsageError if an option is missing."""
    if not value:
        raise click.UsageError(f"Missing option '{option}': {what}.")


class reported:  # noqa: N801 - used as a with statement
    """Context that turns errors of the ports into one line and exit status 1."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, BellwetherError | ProbeDied | ValueError):
            raise click.ClickException(str(error)) from error


def serve_metrics(port: int | None, namespace: str, policy: str, signal_type: str, source: str) -> ProbeMetrics:
    """Create the prober's metrics and health, and serve them on ``port``, if given.

    Health is also served on ``--health-port``.
    """
    labels = {"namespace": namespace, "policy": policy, "type": signal_type, "source": source}
    metrics, context = ProbeMetrics(labels), click.get_current_context(silent=True)
    serve(metrics.health, metrics.registry, port, context.meta.get(HEALTH_PORT) if context is not None else None)
    return metrics


def serve(health: Health, registry: CollectorRegistry, metrics_port: int | None, health_port: int | None) -> None:
    """Serve metrics and health. ClickException names the option of a port that cannot be opened."""
    wanted = (("--metrics-port", metrics_port, registry), ("--health-port", health_port, None))
    for option, port, served in wanted:
        if port is None or (served is None and port == metrics_port):
            continue
        try:
            HealthServer(health, port, served)
        except OSError as error:
            raise click.ClickException(f"{option} {port}: {error.strerror}; choose a free port") from error


def stop_on_signals() -> threading.Event:
    """Event that is set on SIGTERM and SIGINT."""
    stop = threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        structlog.get_logger(__name__).info("process_stopping", signal=signal.Signals(number).name)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


def run_sidecar_prober(
    prober: Prober, probe: Sidecar[Chosen_contra], chosen: Callable[[Detection], Chosen_contra], stop: threading.Event
) -> None:
    """Measure until ``stop``, with the settings that ``chosen`` selects from the policy. Raises ProbeDied."""

    def follow(found: LeadershipPolicy | None) -> bool:
        if found is None:
            return False
        settings = chosen(found.policy().detection)
        probe.configure(settings)
        return settings.enabled

    probe.start()
    try:
        prober.run(probe, follow, stop)
    finally:
        probe.stop()

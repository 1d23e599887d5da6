"""``bellwether probe prometheus``: evaluate the policy's Prometheus rules and report signals."""

from __future__ import annotations

import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.spec.detection_sources import Prometheus
from bellwether.api.v1alpha1.spec.promql import Scope
from bellwether.api.v1alpha1.spec.query_presets import PRESETS, Preset
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import need, read_policy, reported, serve_metrics, stop_on_signals
from bellwether.core.settings import detection
from bellwether.core.signals import SignalType
from bellwether.ports.errors import Terminal
from bellwether.probes.prometheus.prometheus_probe import PrometheusProbe, QueryAnswer, QueryClient
from bellwether.telemetry.logs import configure
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from bellwether.telemetry.metrics.query_metrics import QueryMetrics

# Names the prober in its Lease; the source of each signal is its rule.
SOURCE = "rules"
BROKERS_SECONDS = 10.0


def prometheus(
    policy: str | None,
    namespace: str,
    once: bool,
    presets: bool,
    metrics_port: int | None,
    log_format: Any,
    log_level: str,
) -> None:
    """Evaluate the rules in detection.prometheus of the policy, once per period."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    if presets:
        click.echo("\n\n".join(described(preset) for preset in PRESETS))
        return
    need(policy, "--policy", "the LeadershipPolicy to read rules from (or --presets)")
    with reported():
        api = connect()
        prober = _Rules(api, namespace, str(policy))
        if once:
            sys.exit(prober.once())
        metrics = serve_metrics(metrics_port, namespace, str(policy), SignalType.PROMETHEUS, SOURCE)
        prober.run(metrics, stop_on_signals())


def described(preset: Preset) -> str:
    """Text of one preset: meaning, initial settings, and the query for each exporter."""
    rule = f"comparison: {preset.comparison}, threshold: '{preset.threshold}'"
    rule += f", peerRatio: {preset.peer_ratio}" if preset.peer_ratio else ""
    rule += ", leadersOnly: true" if preset.leaders_only else ""
    lines = [f"{preset.name} ({preset.unit})", *textwrap.wrap(preset.sentence, 110), f"start with {rule}"]
    lines += textwrap.wrap(f"needs {preset.needs}", 110) if preset.needs else []
    lines += [f"{name}: {preset.query(Scope(), name)}" for name, _ in preset.dialects]
    return "\n  ".join(lines)


class _Unable:
    """Client of a Prometheus that cannot be queried, for example without its Secret; each query raises the error."""

    def __init__(self, error: Terminal) -> None:
        self._error = error

    def ask(self, query: str, label: str, timeout_seconds: float) -> QueryAnswer:  # noqa: ARG002 - the port's signature
        """Raise Terminal."""
        raise Terminal(f"cannot be queried: {self._error}")


class _Rules:
    """The prober, configured from its policy."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str) -> None:
        self._api = api
        self._namespace = namespace
        self._policy = policy
        self._secrets = SecretReader(api, namespace)
        self._client: PrometheusClient | None = None
        self._made_of: tuple[str, str, Path | None] | None = None

    def once(self) -> int:
        """Evaluate every rule once; returns the exit status."""
        found = read_policy(self._api, self._namespace, self._policy)
        section = found.spec.detection.prometheus
        if section is None:
            raise Terminal(f"policy {self._namespace}/{self._policy} has no spec.detection.prometheus: add one")
        known = self._prober(ProbeMetrics()).brokers() or ()
        return measurement_table.prometheus(self._asker(section), section.to_core(), known)

    def run(self, metrics: ProbeMetrics, stop: threading.Event) -> None:
        """Evaluate the rules until ``stop``."""
        prober = self._prober(metrics)
        running = PrometheusProbe(prober.post, SystemClock(), QueryMetrics(metrics))

        def follow(found: LeadershipPolicy | None) -> bool:
            section = found.spec.detection.prometheus if found is not None else None
            if section is None:
                running.configure(_Unable(Terminal("no rules")), detection.Prometheus())
                prober.keep(())
                return False
            settings = section.to_core()
            running.configure(self._asker(section), settings)
            prober.keep([rule.name for rule in settings.rules])
            return True

        def refresh() -> None:
            while not stop.is_set():
                known = prober.brokers()
                if known is not None:
                    running.know(known)
                stop.wait(BROKERS_SECONDS if known is not None else 1.0)

        threading.Thread(target=refresh, name="brokers", daemon=True).start()
        running.start()
        try:
            prober.run(running, follow, stop)
        finally:
            running.stop()

    def _prober(self, metrics: ProbeMetrics) -> Prober:
        return Prober(
            self._api,
            self._namespace,
            self._policy,
            SignalType.PROMETHEUS,
            SOURCE,
            SystemClock(),
            metrics,
            many=True,
        )

    def _asker(self, section: Prometheus) -> QueryClient:
        """Client for the present policy; a new token or certificate creates a new one."""
        token, authority = section.bearer_token_secret_ref, section.ca_secret_ref
        try:
            made_of = (
                section.url,
                self._secrets.value(token.name, token.key) if token is not None else "",
                self._secrets.file(authority.name, authority.key) if authority is not None else None,
            )
        except Terminal as error:
            return _Unable(error)
        if self._client is None or made_of != self._made_of:
            url, secret, ca = made_of
            self._client, self._made_of = PrometheusClient(url, token=secret, ca=ca), made_of
        return self._client

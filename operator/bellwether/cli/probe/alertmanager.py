"""``bellwether probe alertmanager``: receive alerts by webhook and report them as signals."""

from __future__ import annotations

import ipaddress
import threading
from pathlib import Path

import click
import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.adapters.webhook_auth import ServerFiles, TokenFile
from bellwether.adapters.webhook_server import Webhook
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import POLICY_NEEDED, need, reported, serve_metrics, stop_on_signals
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import split_address
from bellwether.probes.alertmanager.alert_receiver import Alerts
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from bellwether.telemetry.metrics.webhook_metrics import WebhookMetrics

SOURCE = "webhook"
BROKERS_SECONDS = 5.0

_FILE = click.Path(dir_okay=False, path_type=Path)


def alertmanager(
    policy: str | None,
    target: Target,
    once: bool,
    output: str,  # noqa: ARG001 - an option of every prober
    listen: str,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    insecure_no_auth: bool,
    forget_after_seconds: int,
    metrics_port: int | None,
) -> None:
    """Receive alerts from Alertmanager, and report those in detection.alertmanager of the policy."""
    if once:
        raise click.UsageError("--once is not supported: Alertmanager decides when it sends.")
    need(policy, "--policy", POLICY_NEEDED)
    host, port = _address(listen)
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key must be set together.")
    if insecure_no_auth and token_file:
        raise click.UsageError("--token-file and --insecure-no-auth exclude each other.")
    if insecure_no_auth and not _loopback(host):
        raise click.UsageError("--insecure-no-auth requires a loopback address, such as --listen 127.0.0.1:9098.")
    if not insecure_no_auth:
        need(token_file, "--token-file", "alerts can move leaders, so senders must authenticate")
    with reported():
        token = TokenFile(token_file) if token_file else None
        files = ServerFiles(tls_cert, tls_key) if tls_cert and tls_key else None
        if token is not None:
            token.load()
        if files is not None:
            files.context()
        if token is not None and files is None and not _loopback(host):
            structlog.get_logger(__name__).warning("token_sent_unencrypted", remedy="set --tls-cert and --tls-key")
        api, namespace = connect(target)
        metrics = serve_metrics(metrics_port, namespace, str(policy), SignalType.ALERTMANAGER, SOURCE)
        receiver = _Receiver(api, namespace, str(policy), metrics, forget_after_seconds)
        receiver.run(host, port, token, files, stop_on_signals())


class _Receiver:
    """The prober and its webhook. As a probe it is alive while the webhook serves and alerts are processed."""

    def __init__(
        self, api: KubernetesClient, namespace: str, policy: str, metrics: ProbeMetrics, forget_after_seconds: int
    ) -> None:
        self._clock = SystemClock()
        self._metrics = WebhookMetrics(metrics)
        self._prober = Prober(api, namespace, policy, SignalType.ALERTMANAGER, SOURCE, self._clock, metrics, many=True)
        self._alerts = Alerts(
            self._prober.standing,
            self._prober.leads,
            self._prober.post,
            self._prober.forget,
            self._clock,
            self._metrics,
            forget_after_seconds=float(forget_after_seconds),
        )
        self._webhook: Webhook | None = None
        self._wanted = False
        metrics.health.require(lambda: [] if self._alerts.ready() else ["not reporting for this policy now"])

    def run(
        self, host: str, port: int, token: TokenFile | None, files: ServerFiles | None, stop: threading.Event
    ) -> None:
        """Serve until ``stop``."""
        self._webhook = Webhook(
            host,
            port,
            self._alerts.receive,
            token,
            files,
            self._clock,
            on_answer=self._metrics.answered,
        )
        self._webhook.start()
        self._alerts.start()
        structlog.get_logger(__name__).info("webhook_listening", port=self._webhook.port, tls=files is not None)
        ended = threading.Event()

        def end() -> None:
            # Report accepted alerts first: nothing is reported after the prober has stopped.
            stop.wait()
            self._close()
            ended.set()

        threading.Thread(target=end, name="end", daemon=True).start()
        threading.Thread(target=lambda: self._follow_brokers(stop), name="brokers", daemon=True).start()
        try:
            self._prober.run(self, self._follow, ended)
        finally:
            self._close()

    def repeat(self) -> None:
        """Report the present state again."""
        self._alerts.repeat()

    def alive(self) -> bool:
        """Whether alerts would be received and reported."""
        return self._alerts.alive() and self._webhook is not None and self._webhook.alive()

    def _follow(self, found: LeadershipPolicy | None) -> bool:
        settings = None if found is None else found.policy().detection.alertmanager
        self._wanted = settings is not None and bool(settings.alerts)
        self._alerts.configure(settings if self._wanted else None)
        if settings is not None:
            self._prober.keep(settings.alerts)
        return self._wanted

    def _follow_brokers(self, stop: threading.Event) -> None:
        while not stop.is_set():
            there = self._prober.brokers() if self._wanted else None
            if there is not None:
                self._alerts.refresh(there)
            stop.wait(BROKERS_SECONDS if there is not None else 0.5)

    def _close(self) -> None:
        if self._webhook is not None:
            self._webhook.stop()
        self._alerts.stop()


def _address(listen: str) -> tuple[str, int]:
    try:
        host, port = split_address(listen if not listen.startswith(":") else f"every{listen}")
    except ValueError:
        raise click.UsageError(f"--listen {listen!r} is not HOST:PORT or :PORT: use a value such as :9098") from None
    return ("" if listen.startswith(":") else host), port


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

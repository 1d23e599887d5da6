"""``bellwether probe alertmanager``: receive alerts by webhook and report them as signals."""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import replace
from pathlib import Path

import click
import structlog

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.webhook_auth import ServerFiles, TokenFile
from bellwether.adapters.webhook_server import Webhook
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.commands.policy_selection import Selection
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe.prober_process import PolicyProber, ProberProcess, need, reported
from bellwether.core.signals import SignalType
from bellwether.kafka_connection import split_address
from bellwether.probes.alertmanager.alert_receiver import Alerts
from bellwether.probes.alertmanager.alert_router import AlertRouter
from bellwether.telemetry.metrics.webhook_metrics import WebhookMetrics, WebhookServerMetrics

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
    selection: Selection,
) -> None:
    """Receive alerts from Alertmanager, and report those that policies name in detection.alertmanager."""
    if once:
        raise click.UsageError("--once is not supported: Alertmanager decides when it sends.")
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
        default = (connect(target)[1], policy) if policy else None
        process = ProberProcess.begin(selection, SignalType.ALERTMANAGER, SOURCE, metrics_port, many=True)
        metrics = WebhookServerMetrics(process.metrics)
        router = AlertRouter(default, metrics.unclaimed)
        webhook = Webhook(host, port, router.receive, token, files, SystemClock(), on_answer=metrics.answered)
        process.health.require(router.problems)
        process.health.watch(lambda: [] if webhook.alive() else ["the webhook does not serve"])
        webhook.start()
        structlog.get_logger(__name__).info("webhook_listening", port=webhook.port, tls=files is not None)
        try:
            process.run(lambda one: _Receiver(one, webhook, forget_after_seconds).run(router), router.expect)
        finally:
            webhook.stop()


class _Receiver:
    """The alerts of one policy. As a probe it is alive while the webhook serves and alerts are processed."""

    def __init__(self, policy: PolicyProber, webhook: Webhook, forget_after_seconds: int) -> None:
        self._policy = policy
        self._webhook = webhook
        prober = policy.prober
        self.alerts = Alerts(
            prober.standing,
            prober.leads,
            prober.post,
            prober.forget,
            policy.clock,
            WebhookMetrics(policy.metrics),
            forget_after_seconds=float(forget_after_seconds),
        )
        self._wanted = False

    def run(self, router: AlertRouter) -> None:
        """Take alerts from the router until the policy's run has to end."""
        policy, key = self._policy, self._policy.prober.policy
        ended = threading.Event()

        def end() -> None:
            # Report accepted alerts first: nothing is reported after the prober has stopped.
            policy.stop.wait()
            router.remove(key)
            self.alerts.stop()
            ended.set()

        self.alerts.start()
        router.add(key, self.alerts)
        threading.Thread(target=end, name="end", daemon=True).start()
        try:
            replace(policy, stop=ended).run(self, self._follow, self._refresh)
        finally:
            policy.stop.set()

    def repeat(self) -> None:
        """Report the present state again."""
        self.alerts.repeat()

    def alive(self) -> bool:
        """Whether alerts would be received and reported."""
        return self.alerts.alive() and self._webhook.alive()

    def stop(self) -> None:
        """Post what is pending, and stop."""
        self.alerts.stop()

    def _follow(self, found: LeadershipPolicy | None) -> bool:
        settings = None if found is None else found.policy().detection.alertmanager
        self._wanted = settings is not None and bool(settings.alerts)
        self.alerts.configure(settings if self._wanted else None)
        if settings is not None:
            self._policy.prober.keep(settings.alerts)
        return self._wanted

    def _refresh(self) -> float:
        there = self._policy.prober.hosts() if self._wanted else None
        if there is not None:
            self.alerts.refresh(there)
        return BROKERS_SECONDS if there is not None else 0.5


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

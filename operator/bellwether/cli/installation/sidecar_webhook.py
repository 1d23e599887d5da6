"""``bellwether sidecar-webhook``: serve the admission webhook that adds sidecars to brokers' pods."""

from __future__ import annotations

from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.sidecar_injection import answer, read_sidecars
from bellwether.adapters.server_certificate import ServerFiles
from bellwether.adapters.webhook_server import Webhook
from bellwether.cli.probe.prober_process import reported, serve, stop_on_signals
from bellwether.telemetry.health_server import Health

PATH = "/sidecars"


def sidecar_webhook(port: int, tls_cert: Path, tls_key: Path, sidecars: str, metrics_port: int | None) -> None:
    """Answer the API server until SIGTERM or SIGINT."""
    with reported():
        added = read_sidecars(sidecars)
        files = ServerFiles(tls_cert, tls_key)
        files.context()
        stop, health = stop_on_signals(), Health()
        # The API server does not authenticate itself; the answer reveals nothing but the sidecars.
        webhook = Webhook("", port, PATH, lambda body: answer(body, added), files, SystemClock())
        health.watch(lambda: [] if webhook.alive() else ["the webhook does not serve"])
        serve(health, CollectorRegistry(), metrics_port, None)
        webhook.start()
        structlog.get_logger(__name__).info("webhook_listening", port=webhook.port, accounts=sorted(added))
        try:
            stop.wait()
        finally:
            webhook.stop()

"""``bellwether sidecar-webhook``: serve the admission webhook that adds sidecars to brokers' pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.cli.probe.prober_options import reported
from bellwether.cli.process_options import LOG_FORMAT, LOG_LEVEL, METRICS_PORT

PATH = "/sidecars"
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), default=9443, show_default=True, help="Port of the webhook.")
@click.option("--tls-cert", type=_FILE, required=True, help="PEM file of the webhook's certificate.")
@click.option("--tls-key", type=_FILE, required=True, help="PEM file of the certificate's private key.")
@click.option(
    "--sidecars",
    metavar="JSON",
    required=True,
    help="What the pods of each ServiceAccount get: a map from its name to containers, imagePullSecrets and"
    " shareProcessNamespace.",
)
@METRICS_PORT
@LOG_FORMAT
@LOG_LEVEL
def sidecar_webhook(
    port: int, tls_cert: Path, tls_key: Path, sidecars: str, metrics_port: int | None, log_format: Any, log_level: str
) -> None:
    """Add sidecars to pods of brokers when they are created.

    An admission webhook for API servers without MutatingAdmissionPolicy (before Kubernetes 1.36). It answers POST
    /sidecars with a patch, allows every pod and needs no permissions. The chart installs it
    (sidecars.injection).
    """
    import structlog
    from prometheus_client import CollectorRegistry

    from bellwether.adapters.kubernetes.admission_server import ServerFiles, Webhook
    from bellwether.adapters.kubernetes.sidecar_injection import answer, read_sidecars
    from bellwether.probes.runtime.prober_process import serve, stop_on_signals
    from bellwether.telemetry.health_server import Health
    from bellwether.telemetry.logs import configure

    configure(log_format, log_level)
    with reported():
        added = read_sidecars(sidecars)
        files = ServerFiles(tls_cert, tls_key)
        files.context()
        stop, health = stop_on_signals(), Health()
        # The API server does not authenticate itself; the answer reveals nothing but the sidecars.
        webhook = Webhook("", port, PATH, lambda body: answer(body, added), files, SystemClock())
        health.watch(lambda: [] if webhook.alive() else ["the webhook does not serve"])
        serve(health, CollectorRegistry(), metrics_port)
        webhook.start()
        structlog.get_logger(__name__).info("webhook_listening", port=webhook.port, accounts=sorted(added))
        try:
            stop.wait()
        finally:
            webhook.stop()

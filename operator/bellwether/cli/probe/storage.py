"""``bellwether probe storage``: measure the latency of durable writes in a broker's log directory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import Prober
from bellwether.cli.probe.prober_process import (
    need,
    read_policy,
    reported,
    run_sidecar_prober,
    serve_metrics,
    stop_on_signals,
)
from bellwether.core.settings.detection import StorageLatency
from bellwether.core.signals import SignalType
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.probes.storage.storage_probe import StorageProbe
from bellwether.telemetry.logs import configure


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
    """Measure one small write with fdatasync per second in a broker's log directory."""
    configure(log_format, "warning" if once and log_level == "info" else log_level)
    need(directory, "--directory", "the broker's log directory")
    assert directory is not None  # noqa: S101 - for the type checker
    with reported():
        if once:
            settings = StorageLatency()
            if policy:
                settings = read_policy(connect(), namespace, policy).policy().detection.storage
            sys.exit(measurement_table.storage(DiskWriter(directory), str(directory), settings, SystemClock()))
        need(policy, "--policy", "the LeadershipPolicy to read settings from")
        need(broker is not None, "--broker", "the id of the broker that owns the volume")
        number, name = int(broker or 0), source or f"broker-{broker}"
        metrics = serve_metrics(metrics_port, namespace, str(policy), SignalType.STORAGE_LATENCY, name)
        stop, clock = stop_on_signals(), SystemClock()
        prober = Prober(connect(), namespace, str(policy), SignalType.STORAGE_LATENCY, name, clock, metrics)
        settings = StorageLatency()
        running = StorageProbe(number, name, DiskWriter(directory), settings, prober.post, clock, metrics)
        run_sidecar_prober(prober, running, lambda detection: detection.storage, stop)

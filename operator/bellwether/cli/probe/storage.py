"""``bellwether probe storage``: measure the latency of durable writes in a broker's log directory."""

from __future__ import annotations

import sys
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import connect
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import read_policy
from bellwether.cli.probe.prober_process import POLICY_NEEDED, ProberProcess, need, reported
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import SignalType
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.probes.storage.storage_probe import StorageProbe


def storage(
    policy: str | None,
    namespace: str,
    broker: int | None,
    directory: Path | None,
    source: str | None,
    once: bool,
    metrics_port: int | None,
) -> None:
    """Measure one small write with fdatasync per second in a broker's log directory."""
    need(directory, "--directory", "the broker's log directory")
    assert directory is not None  # noqa: S101 - for the type checker
    with reported():
        if once:
            objectives = Objectives()
            if policy:
                objectives = read_policy(connect(), namespace, policy).policy().detection.objectives
            sys.exit(measurement_table.storage(DiskWriter(directory), str(directory), objectives, SystemClock()))
        need(policy, "--policy", POLICY_NEEDED)
        need(broker is not None, "--broker", "the id of the broker that owns the volume")
        name, kind = source or f"broker-{broker}", SignalType.STORAGE_LATENCY
        process = ProberProcess.begin(namespace, str(policy), kind, name, metrics_port)
        writer, post = DiskWriter(directory), process.prober.post
        running = StorageProbe(int(broker or 0), name, writer, Objectives(), post, process.clock, process.metrics)
        process.run_sidecar(running, lambda detection: (detection.objectives, detection.storage.enabled))

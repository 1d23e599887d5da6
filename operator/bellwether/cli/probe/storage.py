"""``bellwether probe storage``: measure the latency of durable writes and direct reads in a broker's log directory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from bellwether.adapters.clocks import SystemClock
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.kubernetes_target import connect
from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.prober import read_policy
from bellwether.cli.probe.prober_process import POLICY_NEEDED, PolicyProber, need, reported
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Signal, SignalType
from bellwether.probes.storage.disk_read import DiskReader
from bellwether.probes.storage.disk_write import DiskWriter
from bellwether.probes.storage.read_probe import ReadProbe
from bellwether.probes.storage.storage_probe import StorageProbe


def storage(
    policy: str | None,
    target: Target,
    broker: int | None,
    directory: Path | None,
    log_dir: str | None,
    source: str | None,
    once: bool,
    output: str,
    metrics_port: int | None,
) -> None:
    """Measure one small write with fdatasync and one direct read per second in a broker's log directory."""
    need(directory, "--directory", "the broker's log directory")
    assert directory is not None  # noqa: S101 - for the type checker
    with reported():
        if once:
            detection = read_policy(*connect(target), policy).policy().detection if policy else Detection()
            reader = DiskReader(directory) if detection.read_latency.enabled else None
            sys.exit(
                measurement_table.storage(
                    DiskWriter(directory), reader, str(directory), detection, SystemClock(), output
                )
            )
        need(policy, "--policy", POLICY_NEEDED)
        need(broker is not None, "--broker", "the id of the broker that owns the volume")
        name = source or f"broker-{broker}"
        process = PolicyProber.begin(
            target,
            str(policy),
            SignalType.STORAGE_LATENCY,
            name,
            metrics_port,
            further_types=(SignalType.READ_LATENCY,),
        )
        running = _DiskProbes(process, int(broker or 0), name, directory, log_dir or str(directory.absolute()))
        running.start()
        process.run(running, running.follow)


class _DiskProbes:
    """The writes and the reads of one log directory, each on threads of its own."""

    def __init__(self, process: PolicyProber, broker: int, source: str, directory: Path, log_dir: str) -> None:
        clock, metrics = process.clock, process.metrics

        def post(signal: Signal) -> None:
            process.prober.post(replace(signal, directory=log_dir))

        self._writes = StorageProbe(broker, source, DiskWriter(directory), Objectives(), post, clock, metrics)
        self._reads = ReadProbe(broker, source, DiskReader(directory), post, clock, metrics)

    def follow(self, found: LeadershipPolicy | None) -> bool:
        """Apply the policy's settings; returns whether to measure."""
        if found is None:
            return False
        settings = found.policy().detection
        self._writes.configure(settings.objectives)
        self._reads.configure(settings.read_latency, settings.objectives)
        return settings.storage.enabled or settings.read_latency.enabled

    def start(self) -> None:
        """Start measuring."""
        self._writes.start()
        self._reads.start()

    def repeat(self) -> None:
        """Report the present state of both again."""
        self._writes.repeat()
        self._reads.repeat()

    def alive(self) -> bool:
        """Whether both are measuring."""
        return self._writes.alive() and self._reads.alive()

    def stop(self) -> None:
        """Stop both."""
        self._writes.stop()
        self._reads.stop()

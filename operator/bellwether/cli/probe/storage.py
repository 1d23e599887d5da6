"""``bellwether probe storage``: measure the latency of appends, syncs and direct reads in a broker's log directories.

In: the directories, whose ``meta.properties`` names the broker. Out: signals, each directory's with its own source and
Lease: a hanging disk delays no other.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.meta_properties import read_log_dir
from bellwether.cli.probe.prober_options import (
    SIDECAR_SOURCE,
    LogDirectory,
    ProberRun,
    directories_option,
    need,
    prober_command,
)
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Signal, SignalType
from bellwether.probes.storage.disk_read import DiskReader
from bellwether.probes.storage.disk_write import DiskWriter

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.probes.runtime.prober_process import SidecarProcess
    from bellwether.probes.storage.read_probe import ReadProbe
    from bellwether.probes.storage.write_probe import WriteProbe


@prober_command(
    directories_option(
        "Log directory of the broker, whose meta.properties names it; the prober writes two hidden files there, and"
        " reads segments. Repeatable: each of several directories needs a NAME, and its signals have the source"
        " <--source>-NAME."
    ),
    click.option(
        "--log-dir",
        metavar="PATH",
        help="With one directory: its path in the broker, if it is mounted elsewhere there.  [default: --directory]",
    ),
    SIDECAR_SOURCE,
    sidecar=True,
)
def storage(run: ProberRun, directories: Sequence[LogDirectory], log_dir: str | None, source: str | None) -> None:
    """Measure write and read latency of log directories.

    Once per second it appends 4 KiB, as a broker does, syncs 4 KiB apart from that, and reads 4 KiB of an old segment
    directly from the disk. Late appends and reads are harm; slow syncs make the broker Suspect. If a broker with
    several log directories (JBOD) has all of them measured, a bad directory demotes only the partitions in it.
    """
    from bellwether.cli.probe import measurement_table

    need(directories, "--directory", "the broker's log directory")
    _check(directories, log_dir)
    if run.once:
        detection = run.detection()
        reads = detection.read_latency.enabled
        disks = {str(one.path): (DiskWriter(one.path), DiskReader(one.path) if reads else None) for one in directories}
        sys.exit(measurement_table.storage(disks, detection, SystemClock(), run.output))
    measure(run.sidecar(SignalType.STORAGE_LATENCY), directories, source, log_dir)


def measure(
    process: SidecarProcess, directories: Sequence[LogDirectory], source: str | None = None, log_dir: str | None = None
) -> None:
    """Measure each directory until the process has to stop. Raises ProbeDied, and Terminal for those of two brokers."""
    from bellwether.probes.runtime.prober_process import run_each
    from bellwether.probes.storage.read_probe import ReadProbe
    from bellwether.probes.storage.write_probe import WriteProbe

    def one(directory: LogDirectory) -> None:
        path = directory.path.absolute()
        identity = process.identify(lambda: read_log_dir(path))
        if identity is None:
            return
        base = source or f"broker-{identity.broker}"
        name = f"{base}-{directory.name}" if directory.name else base
        prober = process.prober(name, identity, further_types=(SignalType.READ_LATENCY,))
        clock, metrics, verify, broker = prober.clock, prober.metrics, prober.prober.verify, identity.broker

        def post(signal: Signal) -> None:
            prober.prober.post(replace(signal, directory=log_dir or str(path)))

        writes = WriteProbe(broker, name, DiskWriter(directory.path), Objectives(), post, clock, metrics, verify)
        reads = ReadProbe(broker, name, DiskReader(directory.path), post, clock, metrics, verify)
        writes.start()
        reads.start()
        both = _DiskProbes(writes, reads)
        prober.run(both, both.follow)

    run_each([partial(one, directory) for directory in directories], process.stop)


def _check(directories: Sequence[LogDirectory], log_dir: str | None) -> None:
    """UsageError if signals of several directories could not be distinguished."""
    if len(directories) == 1:
        return
    if log_dir:
        raise click.UsageError(
            f"--log-dir {log_dir}: {len(directories)} directories are given, and it is the path of one: mount each"
            " where the broker has it, or start a prober for each"
        )
    for one in directories:
        if not one.name:
            raise click.UsageError(
                f"--directory {one.path}: it is one of {len(directories)} directories, and its signals need a source of"
                f" their own: give it a name, such as {one.path.name or 'data'}={one.path}"
            )
    for what, values in (("name", [d.name for d in directories]), ("path", [str(d.path) for d in directories])):
        (value, times), *_ = Counter(values).most_common(1)
        if times > 1:
            raise click.UsageError(
                f"--directory: {times} directories have the {what} {value}: give each directory once, with its own name"
            )


@dataclass(frozen=True)
class _DiskProbes:
    """The writes and the reads of one log directory, each on threads of its own."""

    writes: WriteProbe
    reads: ReadProbe

    def follow(self, found: LeadershipPolicy | None) -> bool:
        """Apply the policy's settings; returns whether to measure."""
        if found is None:
            return False
        settings = found.policy().detection
        self.writes.configure(settings.objectives)
        self.reads.configure(settings.read_latency, settings.objectives)
        return settings.storage_latency.enabled or settings.read_latency.enabled

    def repeat(self) -> None:
        """Report the present state of both again."""
        self.writes.repeat()
        self.reads.repeat()

    def alive(self) -> bool:
        """Whether both are measuring."""
        return self.writes.alive() and self.reads.alive()

    def stop(self) -> None:
        """Stop both."""
        self.writes.stop()
        self.reads.stop()

"""Log directories of brokers: which replicas lie in which directory, and which directories are demoted.

In: directories as DescribeLogDirs names them (KIP-113), and as a prober names the one that it measures. Pure values. A
broker may have several (JBOD); where a replica lies is unknown until that broker has answered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.signals import Reading, Signal

Placement = Mapping[str, frozenset[TopicPartition]]
"""Partitions of one broker by log directory."""


class LogDir(NamedTuple):
    """A log directory of a broker, by the path that its prober reports."""

    broker: int
    path: str

    def __str__(self) -> str:
        return f"{self.path} of broker {self.broker}"


@dataclass(frozen=True, slots=True)
class DemotedLogDir:
    """A log directory whose replicas are kept from leading, and why. ``signal`` is the type that has to pass again."""

    broker: int
    path: str
    reason: str
    message: str
    since: datetime
    signal: str

    @property
    def log_dir(self) -> LogDir:
        """The directory."""
        return LogDir(self.broker, self.path)


def partitions_in(path: str, placement: Placement) -> frozenset[TopicPartition] | None:
    """Partitions in a directory, or in the log directories below it, as where it is the mount point of a volume.

    None if the broker names no such directory.
    """
    below = f"{path.rstrip('/')}/"
    found = [names for directory, names in placement.items() if directory == path or directory.startswith(below)]
    return frozenset().union(*found) if found else None


REFRESH_SECONDS = 300.0
"""How old a broker's answer may become while all of its directories are well."""

RETRY_SECONDS = 30.0
"""The same while one fails, and how long a broker that gave no answer is left alone."""

READS_AT_ONCE = 4
"""How many brokers are asked in one reconcile, as each may take seconds."""


@dataclass(frozen=True)
class LogDirCache:
    """What brokers with several directories have answered, and when each was asked last, in monotonic seconds.

    An answer is kept while there is no newer one: a broker whose disk hangs may not answer any more.
    """

    placements: Mapping[int, Placement] = field(default_factory=dict)
    asked_at: Mapping[int, float] = field(default_factory=dict)

    def due(self, signals: Iterable[Signal], live: Collection[int], now: float) -> list[int]:
        """Brokers to ask now, those with a failing directory first."""
        directories: defaultdict[int, set[str]] = defaultdict(set)
        failing = set()
        for signal in signals:
            if signal.directory and signal.broker in live:
                directories[signal.broker].add(signal.directory)
                if signal.reading is Reading.FAILING:
                    failing.add(signal.broker)
        found = []
        for broker, paths in directories.items():
            soon = broker in failing or broker not in self.placements
            last = self.asked_at.get(broker)
            if len(paths) > 1 and (last is None or now - last >= (RETRY_SECONDS if soon else REFRESH_SECONDS)):
                found.append((broker not in failing, -1.0 if last is None else last, broker))
        return [broker for _, _, broker in sorted(found)][:READS_AT_ONCE]

    def after(self, broker: int, placement: Placement | None, now: float) -> LogDirCache:
        """The cache after a broker was asked; None: it gave no answer."""
        placements = self.placements if placement is None else {**self.placements, broker: placement}
        return LogDirCache(placements, {**self.asked_at, broker: now})

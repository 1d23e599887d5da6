"""The words for what happens to a cluster: an episode and its effects on paths, disks and membership.

``noise`` and ``injected`` draw them, ``paths`` and ``disks`` make of the effects what a prober would see. Nothing here
knows a detector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from monthsim.assumptions import VANTAGES, Assumptions

SESSION_SECONDS = 9.0
"""Kafka's broker.session.timeout.ms: a broker that has gone silent is fenced so many seconds later."""
FENCED_SECONDS = 10.0
"""Kafka fences a broker that leads so long after its disk and its metadata log have stalled: 9 to 11 s, measured."""
ALL_VANTAGES = tuple(range(VANTAGES))


class Kind(StrEnum):
    """What an episode is; the second group are real faults."""

    GC_PAUSE = "gc pause"
    VM_FREEZE = "machine frozen"
    CRASH = "crash and restart"
    ROLLING_RESTART = "rolling restart"
    VANTAGE_OUTAGE = "vantage cut off"
    PATH_OUTAGE = "vantage cut off from a rack"
    LOSS_BURST = "packet loss at a vantage"
    SHARED_LOSS = "packet loss at every vantage"
    SILENT_PROBER = "prober gone"
    EVERYBODY_CUT = "external path of all brokers gone"
    DISK_HICCUP = "disk hiccup"
    BURSTY_DISK = "bursty disk"
    SLOW_SYNCS = "slow syncs"
    TRAFFIC_WAVE = "traffic wave"

    EXTERNAL_CUT = "external cut"
    EXTERNAL_BLACKHOLE = "external blackhole"
    ZONE_CUT = "external cut of a rack"
    FREEZING = "freezes again and again"
    DISK_SLOW = "disk slow"
    DISK_STALLED = "disk stalled"
    DISK_DEGRADED = "disk slow for minutes"
    BROKER_DOWN = "broker down"


EXTERNAL_FAULTS = frozenset({Kind.EXTERNAL_CUT, Kind.EXTERNAL_BLACKHOLE, Kind.ZONE_CUT})
DISK_FAULTS = frozenset({Kind.DISK_SLOW, Kind.DISK_STALLED, Kind.DISK_DEGRADED})
FAULTS = EXTERNAL_FAULTS | DISK_FAULTS | {Kind.FREEZING, Kind.BROKER_DOWN}


class Path(StrEnum):
    """What a question meets on its way."""

    REFUSED = "refused"
    DROPPED = "dropped"
    FROZEN = "frozen"
    LOSSY = "lossy"


class Disk(StrEnum):
    """What a write meets."""

    SLOW = "slow"
    STALLED = "stalled"
    BURSTY = "bursty"
    WAVE = "wave"
    SYNCS = "syncs"


@dataclass(frozen=True, slots=True)
class PathEffect:
    """``level`` is the share of packets lost (LOSSY only)."""

    start: float
    end: float
    what: Path
    brokers: tuple[int, ...]
    vantages: tuple[int, ...]
    external: bool = True
    internal: bool = True
    level: float = 0.0


@dataclass(frozen=True, slots=True)
class DiskEffect:
    """``levels`` are seconds for a write (SLOW, BURSTY) or a sync (SYNCS), or a factor (WAVE), one for each broker."""

    start: float
    end: float
    what: Disk
    brokers: tuple[int, ...]
    levels: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Absence:
    """A broker fenced, or a vantage's prober silent (``who`` is the broker or the vantage)."""

    start: float
    end: float
    who: int


@dataclass(frozen=True, slots=True)
class Episode:
    """One thing that happened. ``brokers`` are those that it is about."""

    kind: Kind
    start: float
    end: float
    brokers: tuple[int, ...]
    paths: tuple[PathEffect, ...] = ()
    disks: tuple[DiskEffect, ...] = ()
    fenced: tuple[Absence, ...] = ()
    silent: tuple[Absence, ...] = ()
    bytes_factor: float = 1.0


@dataclass(frozen=True)
class Month:
    """A cluster's month. ``usual_seconds`` is each disk's own median; ``phases`` are the probers' offsets.

    ``fetcher_appends`` is how often a second each replica fetcher appends. ``metadata_hangs``: a broker's metadata log
    is on the device of its data, and hangs with it.
    """

    brokers: int
    episodes: tuple[Episode, ...]
    usual_seconds: tuple[float, ...]
    phases: NDArray[np.float64]
    delays: tuple[float, ...]
    world: Assumptions
    seed: tuple[int, ...] = field(default=())
    fetcher_appends: float = 20.0
    metadata_hangs: bool = False

"""Settings of a LeadershipPolicy, with defaults that are safe on a three-broker cluster.

The Kubernetes models in ``api/v1alpha1`` take their defaults from here and are converted to these values, so each
default is defined once. Durations carry their unit in the name; the field names follow Kubernetes probes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from bellwether.core.settings.capacity import UNBOUNDED, Capacity
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.placement import Placement
from bellwether.core.settings.rebalance import Rebalance


class Mode(StrEnum):
    """Whether a policy acts, or only reports what it would do."""

    OBSERVE = "Observe"
    ENFORCE = "Enforce"


class DeletionPolicy(StrEnum):
    """What happens to displaced replica orders when the policy is deleted."""

    RESTORE = "Restore"
    ABANDON = "Abandon"


class WhenExceeded(StrEnum):
    """What to do when more brokers are sick than the cap allows: demote no new broker, or the most severe first."""

    HOLD = "Hold"
    WORST_FIRST = "WorstFirst"


class PromotionMode(StrEnum):
    """Whether a recovered broker gets its leaders back automatically."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class QuarantineMode(StrEnum):
    """Whether the process of a demoted broker may be paused."""

    OFF = "Off"
    ENABLED = "Enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demotion:
    """How many brokers may be demoted at once, and how long a broker must be sick first."""

    dwell_seconds: int = 2
    max_brokers: int | str = "20%"
    when_exceeded: WhenExceeded = WhenExceeded.WORST_FIRST
    max_failure_domains: int = 1
    capacity: Capacity = UNBOUNDED

    def cap(self, brokers: int) -> int:
        """The cap as a number for a cluster of ``brokers``; a percentage rounds down, with a floor of one."""
        if isinstance(self.max_brokers, int):
            return self.max_brokers
        return max(1, math.floor(brokers * int(self.max_brokers.rstrip("%")) / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionWaves:
    """Steps in which a broker gets its leaders back.

    ``steps`` are rising percentages that end at 100; a step comes at least ``pause_seconds`` after the last one. A
    broker with at most ``skip_up_to_leaders`` leaders to get back gets them at once. ``min_downtime_seconds`` is how
    long a broker must have been down for its leaders to return in steps as well; 0 leaves them to Kafka.
    """

    steps: tuple[int, ...] = (10, 50, 100)
    pause_seconds: int = 60
    skip_up_to_leaders: int = 20
    min_downtime_seconds: int = 0

    def after(self, share: int) -> int:
        """The share of the next step, in percent."""
        return next((step for step in self.steps if step > share), 100)

    def number(self, share: int) -> int:
        """How many steps a share has completed; 0 before the first one."""
        return sum(step <= share for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """When a demoted broker gets its leaders back.

    A broker that is demoted again within ``flap_window_seconds`` of its last promotion must stay healthy twice as long
    as before, at most ``max_stabilization_seconds`` (exponential damping, as for BGP route flaps, RFC 2439).
    """

    mode: PromotionMode = PromotionMode.AUTOMATIC
    stabilization_seconds: int = 60
    flap_window_seconds: int = 3600
    max_stabilization_seconds: int = 3600
    waves: PromotionWaves = field(default_factory=PromotionWaves)

    def stabilization(self, demotions: int) -> int:
        """Seconds for which a broker must stay healthy, at its nth demotion in short succession."""
        grown = self.stabilization_seconds << min(max(0, demotions - 1), 20)
        return max(self.stabilization_seconds, min(grown, self.max_stabilization_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Batch sizes of reorders and elections, and the interval of periodic preferred leader elections.

    Every ``interval_seconds``, partitions not led by their preferred replica get an election if that broker is healthy;
    0: never.
    """

    batch_size: int = 1000
    internal_batch_size: int = 50
    interval_seconds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """When a demoted broker that still delays ``acks=all`` may be paused, and for how long.

    Every partition of the broker must keep min.insync.replicas live ISR members, and ``spare_isr_members`` more.
    """

    mode: QuarantineMode = QuarantineMode.OFF
    after_seconds: int = 30
    limit_seconds: int = 600
    spare_isr_members: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Settings of one LeadershipPolicy."""

    name: str
    namespace: str = "default"
    mode: Mode = Mode.OBSERVE
    suspend: bool = False
    deletion_policy: DeletionPolicy = DeletionPolicy.RESTORE
    deletion_timeout_seconds: int = 120
    detection: Detection = field(default_factory=Detection)
    demotion: Demotion = field(default_factory=Demotion)
    promotion: Promotion = field(default_factory=Promotion)
    election: Election = field(default_factory=Election)
    rebalance: Rebalance | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)
    placement: Placement | None = None
    session_timeout_seconds: int = 9

    @property
    def acts(self) -> bool:
        """Whether this policy may change anything in Kafka."""
        return self.mode is Mode.ENFORCE and not self.suspend

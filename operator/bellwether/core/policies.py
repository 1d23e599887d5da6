"""What a policy asks for, as values, with the defaults that are safe on a three-broker cluster.

The Kubernetes models in ``api/v1alpha1`` take their defaults from here and turn into these values at the edge, so a
default is written once. Durations carry their unit in the name; the words of the probes are Kubernetes' own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from bellwether.core.balancing import Rebalance
from bellwether.core.detection import Detection


class Mode(StrEnum):
    """Whether a policy acts, or only says what it would do."""

    OBSERVE = "Observe"
    ENFORCE = "Enforce"


class DeletionPolicy(StrEnum):
    """What happens to displaced orders when the policy is deleted."""

    RESTORE = "Restore"
    ABANDON = "Abandon"


class WhenExceeded(StrEnum):
    """What to do when more brokers are sick than the cap allows: nobody new, or the most severe first."""

    HOLD = "Hold"
    WORST_FIRST = "WorstFirst"


class PromotionMode(StrEnum):
    """Whether a recovered broker gets its leaders back by itself."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demotion:
    """How many brokers may be kept from leading at once, and how long a broker must be sick before it is."""

    dwell_seconds: int = 2
    max_brokers: int | str = "20%"
    when_exceeded: WhenExceeded = WhenExceeded.WORST_FIRST
    max_failure_domains: int = 1

    def cap(self, brokers: int) -> int:
        """The cap as a number for a cluster of ``brokers``; a percentage rounds down, with a floor of one."""
        if isinstance(self.max_brokers, int):
            return self.max_brokers
        return max(1, math.floor(brokers * int(self.max_brokers.rstrip("%")) / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """When a demoted broker gets its leaders back.

    A broker that is demoted again within ``flap_window_seconds`` of its last promotion must stay well twice as long as
    before, ``longest_stabilization_seconds`` at most (damping as BGP damps a flapping route, RFC 2439).
    """

    mode: PromotionMode = PromotionMode.AUTOMATIC
    stabilization_seconds: int = 60
    flap_window_seconds: int = 3600
    longest_stabilization_seconds: int = 3600

    def stabilization(self, demotions: int) -> int:
        """How long a broker must stay well, in seconds, at its so-manieth demotion in short succession."""
        grown = self.stabilization_seconds << min(max(0, demotions - 1), 20)
        return max(self.stabilization_seconds, min(grown, self.longest_stabilization_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """How large the batches are that reorder and elect."""

    batch_size: int = 1000
    internal_batch_size: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One LeadershipPolicy, as the cycle sees it."""

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
    session_timeout_seconds: int = 9

    @property
    def acts(self) -> bool:
        """Whether this policy may change anything in Kafka."""
        return self.mode is Mode.ENFORCE and not self.suspend

"""What a policy asks for, as values, with the defaults that are safe on a three-broker cluster.

The Kubernetes models in ``api/v1alpha1`` take their defaults from here and turn into these values at the edge, so a
default is written once. Durations carry their unit in the name; the words of the probes are Kubernetes' own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum


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
class Reachability:
    """How external reachability is probed and judged; no ``bootstrap_servers`` means those of the policy itself."""

    enabled: bool = True
    listener: str = "EXTERNAL"
    bootstrap_servers: tuple[str, ...] = ()
    vantages: tuple[str, ...] = ()
    period_seconds: int = 1
    timeout_seconds: int = 2
    failure_threshold: int = 3
    success_threshold: int = 3
    stale_after_seconds: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageLatency:
    """How the latency of a broker's log directory is probed and judged."""

    enabled: bool = True
    period_seconds: int = 1
    timeout_seconds: int = 5
    threshold_milliseconds: int = 50
    window_samples: int = 10
    failure_threshold: int = 5
    success_threshold: int = 5
    stale_after_seconds: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Demotion:
    """How many brokers may be kept from leading at once."""

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
    """When a demoted broker gets its leaders back."""

    mode: PromotionMode = PromotionMode.AUTOMATIC
    stabilization_seconds: int = 60


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
    reachability: Reachability = field(default_factory=Reachability)
    storage: StorageLatency = field(default_factory=StorageLatency)
    demotion: Demotion = field(default_factory=Demotion)
    promotion: Promotion = field(default_factory=Promotion)
    election: Election = field(default_factory=Election)
    session_timeout_seconds: int = 9

    @property
    def acts(self) -> bool:
        """Whether this policy may change anything in Kafka."""
        return self.mode is Mode.ENFORCE and not self.suspend

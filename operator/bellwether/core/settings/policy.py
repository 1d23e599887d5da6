"""Settings of a LeadershipPolicy, with defaults that are safe on a three-broker cluster.

The Kubernetes models in ``api/v1alpha1`` are made from these classes, so each setting is defined once. Durations carry
their unit in the name; the field names follow Kubernetes probes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from bellwether.core.settings.detection import Detection
from bellwether.core.settings.placement import EVERY_TOPIC, Placement, Scope
from bellwether.core.settings.rebalance import Rebalance
from bellwether.core.settings.setting import INTERNAL, SETTING, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Limits per broker during a demotion; None: no limit.

    ``max_load`` is in bytes/s for a broker of capacity ``WHOLE``, and proportional for other brokers. It limits the
    total load of a broker: leading and following.
    """

    max_leaders: int | None = None
    max_load: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether there is any limit."""
        return self.max_leaders is not None or self.max_load is not None

    def __str__(self) -> str:
        """The limits as their fields have them."""
        limits = {"maxLeaders": self.max_leaders, "maxBytesPerSecond": self.max_load}
        return " and ".join(f"spec.demotion.capacity.{field} ({n})" for field, n in limits.items() if n is not None)


UNBOUNDED = Capacity()


class Mode(StrEnum):
    """Whether a policy acts, or only reports what it would do."""

    OBSERVE = "Observe"
    ENFORCE = "Enforce"


class DeletionPolicy(StrEnum):
    """What happens to displaced replica orders when the policy is deleted."""

    RESTORE = "Restore"
    ABANDON = "Abandon"


class PromotionMode(StrEnum):
    """Whether a recovered broker gets its leaders back automatically."""

    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class ProducerAcks(StrEnum):
    """What most producers wait for: Kafka's default is ``acks=all``."""

    ALL = "All"
    ONE = "One"


class QuarantineMode(StrEnum):
    """Whether a broker may be held in a controlled shutdown."""

    OFF = "Off"
    ENABLED = "Enabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demotion:
    """How many brokers signals may demote at once, and how long a broker must be sick first."""

    dwell_seconds: Annotated[int, Setting(0, 3600)] = 1
    """Seconds from the first report of harm to a broker's clients until it may be demoted, so that signals of a common
    cause can arrive. Half of it is enough while every other broker is Healthy.
    """
    max_brokers: int | str = "20%"
    producer_acks: Annotated[ProducerAcks, SETTING] = ProducerAcks.ALL
    """What most producers wait for. All, Kafka's default: a broker with slow writes is not demoted where acks=all would
    wait for it as a follower. One: it is demoted in any case, which relieves acks=1 alone, unless the Prometheus preset
    ProduceRemoteTimeP50 shows that produce requests wait for followers.
    """
    capacity: Capacity = UNBOUNDED

    def cap(self, brokers: int) -> int:
        """The cap as a number for a cluster of ``brokers``; a percentage rounds down, with a floor of one."""
        if isinstance(self.max_brokers, int):
            return self.max_brokers
        return max(1, math.floor(brokers * int(self.max_brokers.rstrip("%")) / 100))

    def cap_words(self, brokers: int) -> str:
        """The cap as its field has it, and what it comes to in a cluster of ``brokers``."""
        comes_to = "" if isinstance(self.max_brokers, int) else f" ({self.cap(brokers)} of {brokers} brokers)"
        return f"spec.demotion.maxBrokers is {self.max_brokers}{comes_to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionWaves:
    """Steps in which a broker gets its leaders back: rising percentages that end at 100."""

    steps: tuple[int, ...] = (10, 50, 100)
    pause_seconds: Annotated[int, Setting(0, 86400)] = 60
    """Seconds between two steps. The next step also requires that the broker is healthy, does not lag, and is in the
    ISR of the partitions of that step.
    """
    skip_up_to_leaders: Annotated[int, Setting(0, 1_000_000)] = 20
    """If a broker has at most so many leaders to get back, they are restored at once."""
    min_downtime_seconds: Annotated[int, Setting(0, 86400)] = 0
    """Seconds of downtime (fenced or not registered) from which on a returning broker gets its leaders back in steps as
    well; its partitions are reordered while it is down. 0 leaves this to Kafka, which restores them at once.
    """

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

    mode: Annotated[PromotionMode, SETTING] = PromotionMode.AUTOMATIC
    """Automatic promotes a recovered broker; Manual waits for an override with state Promoted."""
    stabilization_seconds: Annotated[int, Setting(0, 86400)] = 60
    """Seconds for which every signal of a demoted broker must pass before it is promoted."""
    flap_window_seconds: Annotated[int, INTERNAL] = 3600
    max_stabilization_seconds: Annotated[int, Setting(0, 604800)] = 3600
    """Maximum stabilization time of a flapping broker, in seconds: a broker that is demoted again within an hour of its
    promotion must be healthy for twice as long each time. If stabilizationSeconds is longer, that applies; 0 disables
    the doubling.
    """
    waves: PromotionWaves = field(default_factory=PromotionWaves)

    def stabilization(self, demotions: int) -> int:
        """Seconds for which a broker must stay healthy, at its nth demotion in short succession."""
        grown = self.stabilization_seconds << min(max(0, demotions - 1), 20)
        return max(self.stabilization_seconds, min(grown, self.max_stabilization_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """Batch sizes of reorders and elections, and the interval of periodic preferred leader elections.

    ``internal_batch_size`` is for internal topics, where each election moves a coordinator that reloads its state.
    """

    interval_seconds: Annotated[int, Setting(0, 604800)] = 0
    """Interval of the periodic preferred leader election, in seconds: leadership moves to the first replica of the
    order where that replica is healthy and in the ISR. 0 disables it.
    """
    batch_size: Annotated[int, Setting(1, 5000)] = 2000
    """Maximum number of partitions in one request. Kafka's controller rejects operations of more than 10,000 records.
    """
    internal_batch_size: Annotated[int, INTERNAL] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """When a broker whose slow disk delays ``acks=all`` may be held in a controlled shutdown, and for how long."""

    mode: Annotated[QuarantineMode, SETTING] = QuarantineMode.OFF
    """Enabled lets the quarantine agent hold such a broker in a controlled shutdown, one broker at a time, so that it
    leads nothing and is in no ISR. It requires the quarantine agent and the storage prober next to every broker. Off
    holds no broker.
    """
    limit_seconds: Annotated[int, Setting(30, 86400)] = 600
    """Maximum time for which a broker is held, in seconds. After a quarantine that ended early, the next one starts no
    sooner than this.
    """
    spare_isr_members: Annotated[int, Setting(0, 10)] = 0
    """Number of live ISR members beyond min.insync.replicas that every partition of the broker must keep without it.
    With 0 a broker is held where it could be restarted; it is let go at once on any further loss.
    """


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
    scope: Scope = EVERY_TOPIC
    session_timeout_seconds: Annotated[int, INTERNAL] = 9

    @property
    def fencing_seconds(self) -> float:
        """Seconds after which a broker that stopped is fenced, and the others show it.

        The controller checks eight times per session timeout and fences one broker per check (QuorumController,
        maybeFenceStaleBroker); then metadata spreads. Half of the timeout is left for that.
        """
        return 1.5 * self.session_timeout_seconds

    @property
    def acts(self) -> bool:
        """Whether this policy may change anything in Kafka."""
        return self.mode is Mode.ENFORCE and not self.suspend

    @property
    def inactivity(self) -> str:
        """Why this policy changes nothing in Kafka, as a sentence; empty if it acts."""
        if self.suspend:
            return "The policy is suspended (spec.suspend): nothing is moved or restored."
        return "" if self.acts else "The policy is in Observe mode: it reports and changes nothing."

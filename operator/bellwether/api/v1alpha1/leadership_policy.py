"""LeadershipPolicy: what a person asks for one Kafka cluster, and its status.

Read by the controllers, the probers and the CLI; turns into ``core.settings.policy.Policy`` at the edge.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bellwether.api.v1alpha1.base_model import Model, Object, Rule, integer
from bellwether.api.v1alpha1.spec.detection_spec import Detection
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka
from bellwether.api.v1alpha1.spec.maintenance_spec import Maintenance
from bellwether.api.v1alpha1.spec.placement_spec import Capacity, Placement
from bellwether.api.v1alpha1.spec.quarantine_spec import Quarantine
from bellwether.api.v1alpha1.spec.rebalance_spec import Rebalance
from bellwether.api.v1alpha1.spec.waves_spec import Waves
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus
from bellwether.core.settings import policy as core_policy
from bellwether.core.settings.capacity import UNBOUNDED

_DEFAULTS = core_policy.Policy(name="")
_CAP = "^([1-9]|[1-4][0-9])%$"


def _cap_holds(demotion: Demotion) -> bool:
    cap = demotion.max_brokers
    return 1 <= cap <= 1000 if isinstance(cap, int) else re.fullmatch(_CAP, cap) is not None


class Demotion(Model):
    """How many brokers may be kept from leading at once, and how long a broker must be sick before it is."""

    dwell_seconds: int = integer(
        _DEFAULTS.demotion.dwell_seconds,
        0,
        3600,
        "How long a broker must be Sick before it is demoted: time for the signals of a common cause to come in.",
    )
    max_brokers: Annotated[int, Field(strict=True)] | str = Field(
        default=_DEFAULTS.demotion.max_brokers,
        description="How many brokers may be unable to lead at once (down, fenced, demoted by anyone): a number, or a"
        " percentage of the brokers, rounded down, at least one. A person's override is not bound by it.",
        json_schema_extra={"maxLength": 3},
    )
    when_exceeded: core_policy.WhenExceeded = Field(
        default=_DEFAULTS.demotion.when_exceeded,
        description="What to do when more brokers are sick than maxBrokers allows: Hold demotes nobody new, WorstFirst"
        " the most severe ones up to the cap. From half of the brokers on nobody new is demoted either way.",
    )
    max_failure_domains: int = integer(
        _DEFAULTS.demotion.max_failure_domains,
        1,
        100,
        "Sick brokers of so many racks, all other racks being well, count as one cause and may exceed maxBrokers.",
    )
    capacity: Capacity | None = Field(
        default=None,
        description="What a broker can carry. Absent: anything. Where others cannot carry what a demoted broker leads,"
        " it is demoted in part, the sickest broker first; the rest stays and is counted as CapacityReached.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"type(self.maxBrokers) == string ? self.maxBrokers.matches('{_CAP}')"
            " : self.maxBrokers >= 1 && self.maxBrokers <= 1000",
            message="must be a number from 1 to 1000, or a percentage from 1% to 49%, such as 20%",
            holds=_cap_holds,
            field="maxBrokers",
        ),
    )

    def to_core(self) -> core_policy.Demotion:
        """The same as a value of the core."""
        given = {**dict(self), "capacity": self.capacity.to_core() if self.capacity is not None else UNBOUNDED}
        return core_policy.Demotion(**given)


class Promotion(Model):
    """When a demoted broker gets its leaders back."""

    mode: core_policy.PromotionMode = Field(
        default=_DEFAULTS.promotion.mode,
        description="Automatic gives a recovered broker its leaders back; Manual waits for a person's override"
        " Promoted.",
    )
    stabilization_seconds: int = integer(
        _DEFAULTS.promotion.stabilization_seconds,
        0,
        86400,
        "How long every signal of a demoted broker must pass before it counts as healthy.",
    )
    flap_window_seconds: int = integer(
        _DEFAULTS.promotion.flap_window_seconds,
        0,
        604800,
        "A broker that is demoted again within this time of its last promotion flaps: each time it must stay well twice"
        " as long. 0 switches that off.",
    )
    max_stabilization_seconds: int = integer(
        _DEFAULTS.promotion.max_stabilization_seconds,
        0,
        604800,
        "The longest that a flapping broker must stay well; stabilizationSeconds where that is longer.",
    )
    waves: Waves = Field(default_factory=Waves, description="In which steps the broker gets its leaders back.")

    def to_core(self) -> core_policy.Promotion:
        """The same as a value of the core."""
        return core_policy.Promotion(**{**dict(self), "waves": self.waves.to_core()})


class Election(Model):
    """How large the batches are that reorder and elect, and how often leaders are brought back where they belong."""

    interval_seconds: int = integer(
        _DEFAULTS.election.interval_seconds,
        0,
        604800,
        "How often leaders that are not the first in their replica order are moved back to that one, where it is in the"
        " ISR and well. 0, the default, never does.",
    )

    batch_size: int = integer(
        _DEFAULTS.election.batch_size,
        1,
        5000,
        "Partitions in one request; Kafka's controller refuses more than 10,000 records in one operation.",
    )
    internal_batch_size: int = integer(
        _DEFAULTS.election.internal_batch_size,
        1,
        1000,
        "Partitions of internal topics in one request; each moves a coordinator, which reloads its log.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.intervalSeconds == 0 || self.intervalSeconds >= 5",
            message="must be 0, which switches it off, or at least 5",
            holds=lambda election: election.interval_seconds == 0 or election.interval_seconds >= 5,
            field="intervalSeconds",
        ),
    )

    def to_core(self) -> core_policy.Election:
        """The same as a value of the core."""
        return core_policy.Election(**dict(self))


class LeadershipPolicySpec(Model):
    """What is asked for."""

    kafka: Kafka = Field(description="How to reach the Kafka cluster.")
    mode: core_policy.Mode = Field(
        description="Observe judges, plans and reports, and changes nothing; Enforce moves leaders. Required, so that a"
        " person chooses."
    )
    suspend: bool = Field(
        default=_DEFAULTS.suspend, strict=True, description="Freeze: neither move nor restore until it is false again."
    )
    deletion_policy: core_policy.DeletionPolicy = Field(
        default=_DEFAULTS.deletion_policy,
        description="What happens to displaced replica orders when the policy is deleted: Restore puts those of healthy"
        " brokers back, Abandon leaves them all.",
    )
    deletion_timeout_seconds: int = integer(
        _DEFAULTS.deletion_timeout_seconds,
        1,
        86400,
        "How long deletion may take to restore; then the policy goes and the undo record is exported.",
    )
    detection: Detection = Field(default_factory=Detection, description="What counts as sick, per kind of signal.")
    demotion: Demotion = Field(
        default_factory=Demotion, description="How many brokers may be kept from leading at once."
    )
    promotion: Promotion = Field(default_factory=Promotion, description="When a demoted broker gets its leaders back.")
    election: Election = Field(
        default_factory=Election, description="How large the batches are that reorder and elect."
    )
    quarantine: Quarantine = Field(
        default_factory=Quarantine,
        description="Whether a demoted broker that still holds acks=all back may have its process paused.",
    )
    rebalance: Rebalance | None = Field(
        default=None, description="How leaders are spread by measured load. Absent: they are not."
    )
    placement: Placement | None = Field(
        default=None, description="Which racks are to lead. Absent: leaders stay where replica orders have them."
    )
    maintenance: Maintenance | None = Field(
        default=None, description="Restarts that nobody announces. Absent: none is told from other trouble."
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.maintenance) || !has(self.maintenance.pods) || has(self.kafka.strimzi)"
            " || has(self.maintenance.pods.selector)",
            message="is needed: the labels of the brokers' pods, such as app=kafka (or name the cluster by"
            " spec.kafka.strimzi, whose pods are known)",
            holds=lambda spec: spec.pods_known(),
            field="maintenance.pods.selector",
        ),
        Rule(
            cel="!has(self.placement) || !has(self.rebalance) || !has(self.rebalance.objective)"
            " || !has(self.rebalance.objective.preferredRacks) || size(self.rebalance.objective.preferredRacks) == 0",
            message="must go where spec.placement is: that says which racks lead, and load plans keep to it",
            holds=lambda spec: (
                spec.placement is None or spec.rebalance is None or not spec.rebalance.objective.preferred_racks
            ),
            field="rebalance.objective.preferredRacks",
        ),
        Rule(
            cel="!has(self.demotion) || !has(self.demotion.capacity) || !has(self.demotion.capacity.maxBytesPerSecond)"
            " || has(self.rebalance)",
            message="needs spec.rebalance, whose plans measure the loads: give it, or limit brokers by maxLeaders",
            holds=lambda spec: spec.rebalance is not None or not spec.limits_loads(),
            field="demotion.capacity.maxBytesPerSecond",
        ),
    )

    def limits_loads(self) -> bool:
        """Whether a broker may carry only so much load."""
        capacity = self.demotion.capacity
        return capacity is not None and capacity.max_bytes_per_second is not None

    def pods_known(self) -> bool:
        """Whether the brokers' pods can be found, if anybody wants them watched."""
        pods = self.maintenance.pods if self.maintenance is not None else None
        return pods is None or pods.selector is not None or self.kafka.strimzi is not None


class LeadershipPolicy(Object):
    """Keeps leadership of one Kafka cluster away from sick brokers, and gives it back when they are well."""

    longest_name: ClassVar[int] = 63  # it is the value of a label on what belongs to the policy

    kind: Literal["LeadershipPolicy"] = "LeadershipPolicy"
    spec: LeadershipPolicySpec
    status: LeadershipPolicyStatus = Field(default_factory=LeadershipPolicyStatus)

    def policy(self) -> core_policy.Policy:
        """What the cycle works with. Connection settings stay here: ``spec.kafka``."""
        spec = self.spec
        return core_policy.Policy(
            name=self.metadata.name,
            namespace=self.metadata.namespace,
            mode=spec.mode,
            suspend=spec.suspend,
            deletion_policy=spec.deletion_policy,
            deletion_timeout_seconds=spec.deletion_timeout_seconds,
            detection=spec.detection.to_core(),
            demotion=spec.demotion.to_core(),
            promotion=spec.promotion.to_core(),
            election=spec.election.to_core(),
            rebalance=spec.rebalance.to_core() if spec.rebalance is not None else None,
            placement=spec.placement.to_core() if spec.placement is not None else None,
            quarantine=spec.quarantine.to_core(),
            session_timeout_seconds=spec.kafka.broker_session_timeout_seconds,
        )

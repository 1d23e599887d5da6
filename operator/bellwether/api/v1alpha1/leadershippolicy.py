"""LeadershipPolicy: what a person asks for one Kafka cluster, and what Bellwether says about it.

Read by the handlers, the probers and the CLI; turns into ``core.policies.Policy`` at the edge.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bellwether.api.v1alpha1.connections import Kafka
from bellwether.api.v1alpha1.detection import Detection
from bellwether.api.v1alpha1.models import Model, Object, Rule, integer
from bellwether.api.v1alpha1.policystatus import LeadershipPolicyStatus
from bellwether.api.v1alpha1.rebalance import Rebalance
from bellwether.core import policies

_DEFAULTS = policies.Policy(name="")
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
    when_exceeded: policies.WhenExceeded = Field(
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

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"type(self.maxBrokers) == string ? self.maxBrokers.matches('{_CAP}')"
            " : self.maxBrokers >= 1 && self.maxBrokers <= 1000",
            message="must be a number from 1 to 1000, or a percentage from 1% to 49%, such as 20%",
            holds=_cap_holds,
            field="maxBrokers",
        ),
    )

    def to_core(self) -> policies.Demotion:
        """The same as a value of the core."""
        return policies.Demotion(**dict(self))


class Promotion(Model):
    """When a demoted broker gets its leaders back."""

    mode: policies.PromotionMode = Field(
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
    longest_stabilization_seconds: int = integer(
        _DEFAULTS.promotion.longest_stabilization_seconds,
        0,
        604800,
        "The longest that a flapping broker must stay well; stabilizationSeconds where that is longer.",
    )

    def to_core(self) -> policies.Promotion:
        """The same as a value of the core."""
        return policies.Promotion(**dict(self))


class Election(Model):
    """How large the batches are that reorder and elect."""

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

    def to_core(self) -> policies.Election:
        """The same as a value of the core."""
        return policies.Election(**dict(self))


class LeadershipPolicySpec(Model):
    """What is asked for."""

    kafka: Kafka = Field(description="How to reach the Kafka cluster.")
    mode: policies.Mode = Field(
        description="Observe judges, plans and reports, and changes nothing; Enforce moves leaders. Required, so that a"
        " person chooses."
    )
    suspend: bool = Field(
        default=_DEFAULTS.suspend, strict=True, description="Freeze: neither move nor restore until it is false again."
    )
    deletion_policy: policies.DeletionPolicy = Field(
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
    rebalance: Rebalance | None = Field(
        default=None, description="How leaders are spread by measured load. Absent: they are not."
    )


class LeadershipPolicy(Object):
    """Keeps leadership of one Kafka cluster away from sick brokers, and gives it back when they are well."""

    longest_name: ClassVar[int] = 63  # it is the value of a label on what belongs to the policy

    kind: Literal["LeadershipPolicy"] = "LeadershipPolicy"
    spec: LeadershipPolicySpec
    status: LeadershipPolicyStatus = Field(default_factory=LeadershipPolicyStatus)

    def policy(self) -> policies.Policy:
        """What the cycle works with. Connection settings stay here: ``spec.kafka``."""
        spec = self.spec
        return policies.Policy(
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
            session_timeout_seconds=spec.kafka.broker_session_timeout_seconds,
        )

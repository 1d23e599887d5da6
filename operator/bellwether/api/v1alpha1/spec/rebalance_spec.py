"""``spec`` of a LeaderRebalance: its policy, and schedule, objective, approval and waves of load rebalancing."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import (
    AS_SET,
    ATOMIC,
    DISTINCT,
    Matching,
    Model,
    Rule,
    as_map,
    distinct_by,
    integer,
    refusal,
)
from bellwether.api.v1alpha1.core_models import SettingsModel
from bellwether.core.settings import objective as core_objective
from bellwether.core.settings import rebalance as core_rebalance
from bellwether.core.settings.schedule import Schedule

_DEFAULTS = core_rebalance.Rebalance()
_OBJECTIVE = _DEFAULTS.objective

TopicPattern = Annotated[
    str, Matching(r"^[A-Za-z0-9._*?-]+$", "must be the name of a topic, with * and ? as wildcards", 249)
]
RackName = Annotated[str, Field(min_length=1, max_length=256)]
CronExpression = Annotated[
    str,
    Matching(
        r"^\s*\S+(\s+\S+){4}\s*$",
        "must have five fields (minute, hour, day, month, weekday) in UTC, such as '0 4 * * *'",
        100,
    ),
]
ConfigName = Annotated[
    str,
    Matching(
        "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        "must be a name in the operator configuration: lower case letters, digits and '-'",
        63,
    ),
]


def racks_once(field: str) -> Rule:
    """A list has each rack once: the API server checks that of sets alone, and the order of racks matters."""
    return Rule(
        cel=f"!has(self.{field}) || self.{field}.all(r, self.{field}.exists_one(other, other == r))",
        message="contains a rack twice: remove the duplicate",
        field=field,
    )


class Traffic(StrEnum):
    """Traffic that counts as the load of a broker."""

    ALL = "All"
    PRODUCED = "Produced"


class BrokerCapacity(Model):
    """Relative capacity of one broker."""

    broker_id: int = Field(ge=0, le=2147483647, strict=True)
    """Node id of the broker."""
    capacity: int = Field(
        ge=1,
        le=1000000,
        strict=True,
        description=f"Capacity of the broker relative to the others, whose capacity is {core_objective.WHOLE}.",
    )
    request_capacity: int | None = Field(default=None, ge=1, le=1000000, strict=True)
    """Its capacity for requests, likewise. If unset, it is capacity. Unused without requestBytes."""


class LoadObjective(Model):
    """Objective and limits of a load plan."""

    statistic: core_objective.Statistic = _OBJECTIVE.statistic
    """Statistic of a partition's history that is used as its load: Median, P95, or Peak (the median of the daily
    peaks).
    """
    traffic: Traffic = Traffic.ALL
    """All counts what producers send, followers fetch and consumers read. Produced leaves out the consumers, for
    clusters whose consumers read from the nearest replica.
    """
    capacities: Annotated[tuple[BrokerCapacity, ...], distinct_by("broker_id")] = Field(
        default=(),
        max_length=1000,
        description=f"Brokers whose capacity differs from the default of {core_objective.WHOLE}.",
        json_schema_extra=as_map("brokerId"),
    )
    request_bytes: int = Field(default=_OBJECTIVE.request_bytes, ge=0, le=1000000, strict=True)
    """Makes requests count, each by the hour: bytes/s that load a broker as much as one request/s. It is what a broker
    can send in a second, in bytes, divided by the number of requests that it can serve. 0: only bytes count.
    """
    preferred_racks: Annotated[tuple[RackName, ...], Field(max_length=16, json_schema_extra=ATOMIC), DISTINCT] = ()
    """Preferred racks for leaders, the most preferred first."""
    max_moves: int | None = Field(default=None, ge=1, le=10000000, strict=True)
    """Maximum number of leaders that a plan may move. If unset, there is no limit."""
    excluded_topics: Annotated[tuple[TopicPattern, ...], Field(max_length=100, json_schema_extra=AS_SET), DISTINCT] = ()
    """Names of topics that plans leave unchanged, with * and ? as wildcards. Kafka's internal topics are always left
    unchanged.
    """

    rules: ClassVar[tuple[Rule, ...]] = (racks_once("preferredRacks"),)

    def to_core(self) -> core_objective.Objective:
        """Convert to the objective of the core; capacities and excluded topics are separate there."""
        return core_objective.Objective(
            statistic=self.statistic,
            consumption=self.traffic is Traffic.ALL,
            preferred_racks=self.preferred_racks,
            max_moves=self.max_moves,
            request_bytes=self.request_bytes,
        )


class Waves(SettingsModel[core_rebalance.RebalanceWaves]):
    """How an approved plan is applied: number of partitions per wave, and pause between waves."""


class LeaderRebalanceSpec(Model):
    """Rebalancing of a policy's leaders by measured load: plans are computed, verified, approved, applied in waves."""

    policy: str = Field(min_length=1, max_length=63)
    """Name of the LeadershipPolicy of the Kafka cluster, in the same namespace. Of several LeaderRebalances with one
    policy the oldest is used.
    """
    store: ConfigName = "default"
    """Name of the store for load samples and plans. The administrator configures stores with the chart value
    load.stores.
    """
    profile: ConfigName = "default"
    """Name of the profile that computes plans: image, ServiceAccount and resources of the job. The administrator
    configures profiles with the chart value load.profiles.
    """
    history_days: int = integer(14, 1, 366)
    """Days of samples that a plan uses and that the sampler keeps."""
    schedule: CronExpression | None = None
    """Cron expression (UTC) by which plans are computed. If unset, plans are computed only on request."""
    approval: core_rebalance.Approval = _DEFAULTS.approval
    """Manual applies a plan once the annotation bellwether.dev/approve-plan contains its digest; Automatic applies
    every proposed plan.
    """
    objective: LoadObjective = Field(default_factory=LoadObjective)
    minimum_improvement_percent: int = integer(_DEFAULTS.minimum_improvement_percent, 0, 100)
    """Minimum improvement in percent: a plan that lowers the highest relative load by less is not proposed."""
    minimum_hours: int = integer(_DEFAULTS.minimum_hours, 0, 168)
    """Minimum hours of the week that must be measured for a plan to be proposed."""
    minimum_measured_percent: int = integer(_DEFAULTS.minimum_measured_percent, 0, 100)
    """Minimum percent of the bytes in the cluster's logs that must be in partitions with a measured load for a plan to
    be proposed.
    """
    maximum_loss_percent: int = integer(_DEFAULTS.maximum_loss_percent, 100, 10000)
    """Percent of the busiest broker's load that the loss of one broker may bring another to, before alert
    BellwetherBrokerLossOverload fires. The loss of one of three equal brokers brings the others to 150.
    """
    valid_seconds: int = integer(_DEFAULTS.valid_seconds, 60, 2592000)
    """Maximum age of a plan in seconds; an older one is not started and is aborted if running."""
    waves: Waves = Field(default_factory=Waves)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.policy == oldSelf.policy",
            message="is immutable: delete the object, and create one for the other policy",
            field="policy",
        ),
    )

    def model_post_init(self, _context: Any) -> None:
        """Reject a schedule that is not valid cron; the API server only checks that it has five fields."""
        if self.schedule is not None:
            try:
                Schedule(self.schedule)
            except ValueError as error:
                raise refusal(str(error), "schedule") from None

    def to_core(self) -> core_rebalance.Rebalance:
        """Convert to the settings of the core, without the names of store and profile."""
        return core_rebalance.Rebalance(
            schedule=Schedule(self.schedule) if self.schedule is not None else None,
            approval=self.approval,
            objective=self.objective.to_core(),
            capacities={c.broker_id: c.capacity for c in self.objective.capacities},
            request_capacities={
                c.broker_id: c.request_capacity for c in self.objective.capacities if c.request_capacity is not None
            },
            excluded_topics=self.objective.excluded_topics,
            minimum_improvement_percent=self.minimum_improvement_percent,
            minimum_hours=self.minimum_hours,
            minimum_measured_percent=self.minimum_measured_percent,
            maximum_loss_percent=self.maximum_loss_percent,
            valid_seconds=self.valid_seconds,
            waves=self.waves.to_core(),
        )

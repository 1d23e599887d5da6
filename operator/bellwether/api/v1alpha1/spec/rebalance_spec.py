"""``spec.rebalance``: schedule, objective, approval and waves of rebalancing by load. Off where absent."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic_core import PydanticCustomError

from bellwether.api.v1alpha1.base_model import AS_SET, DISTINCT, RULE, Matching, Model, Rule, as_map, integer
from bellwether.api.v1alpha1.spec.plan_runner import HistoryStore, Runner, RunnerType, absolute_path
from bellwether.core.settings import objective as core_objective
from bellwether.core.settings import rebalance as core_rebalance
from bellwether.core.settings.schedule import Schedule

_DEFAULTS = core_rebalance.Rebalance()
_OBJECTIVE = _DEFAULTS.objective

TopicPattern = Annotated[
    str, Matching(r"^[A-Za-z0-9._*?-]+$", "must be the name of a topic; * and ? stand for any letters", 249)
]
RackName = Annotated[str, Field(min_length=1, max_length=256)]
CronExpression = Annotated[
    str,
    Matching(
        r"^\s*\S+(\s+\S+){4}\s*$",
        "must have five fields, in UTC: minute, hour, day, month and weekday, such as '0 4 * * *'",
        100,
    ),
]


class Weights(Model):
    """What a byte costs whom, in percent of a byte of a producer."""

    produce: int = integer(_OBJECTIVE.produce_weight, 0, 10000, "A byte that a leader takes from a producer.")
    replication: int = integer(
        _OBJECTIVE.replication_weight, 0, 10000, "A byte that a leader hands to a follower, for each follower."
    )
    consume: int = integer(_OBJECTIVE.consume_weight, 0, 10000, "A byte that a leader hands to consumers.")
    follow: int = integer(_OBJECTIVE.follow_weight, 0, 10000, "A byte that a follower takes from its leader.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.follow <= self.produce",
            message="must not exceed produce: leading cannot cost less than following",
            holds=lambda w: w.follow <= w.produce,
            field="follow",
        ),
    )


class BrokerCapacity(Model):
    """What one broker can carry beside the others."""

    broker_id: int = Field(ge=0, le=2147483647, strict=True, description="The broker.")
    capacity: int = Field(
        ge=1, le=1000000, strict=True, description=f"Its capacity, relative to that of others ({core_objective.WHOLE})."
    )


class LoadObjective(Model):
    """What a plan is to make small, and what it must keep to."""

    statistic: core_objective.Statistic = Field(
        default=_OBJECTIVE.statistic,
        description="Which figure of a partition's history counts: Median, P95, or Peak (the median of daily peaks).",
    )
    weights: Weights = Field(default_factory=Weights, description="What a byte costs whom, in percent.")
    capacities: tuple[BrokerCapacity, ...] = Field(
        default=(),
        max_length=1000,
        description=f"Brokers that can carry more or less than the others, whose capacity is {core_objective.WHOLE}.",
        json_schema_extra=as_map("brokerId"),
    )
    preferred_racks: Annotated[
        tuple[RackName, ...],
        Field(
            max_length=16,
            description="Racks that are to lead where they can, the most preferred first.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
        DISTINCT,
    ] = ()
    max_moves: int | None = Field(
        default=None, ge=1, le=10000000, strict=True, description="The most leaders that a plan may move. Absent: any."
    )
    excluded_topics: Annotated[
        tuple[TopicPattern, ...],
        Field(
            max_length=100,
            description="Topics that stay where they are. Kafka's internal topics always do.",
            json_schema_extra=AS_SET,
        ),
        DISTINCT,
    ] = ()

    def to_core(self) -> core_objective.Objective:
        """The same as a value of the core; capacities and excluded topics stand elsewhere there."""
        weights = {f"{name}_weight": value for name, value in dict(self.weights).items()}
        return core_objective.Objective(
            statistic=self.statistic, preferred_racks=self.preferred_racks, max_moves=self.max_moves, **weights
        )


class Waves(Model):
    """How an approved plan is applied."""

    partitions: int = integer(_DEFAULTS.waves.partitions, 1, 100000, "Partitions that get their new order at a time.")
    pause_seconds: int = integer(
        _DEFAULTS.waves.pause_seconds,
        0,
        86400,
        "The least time from one wave to the next. The next one also waits until the last one stands.",
    )

    def to_core(self) -> core_rebalance.RebalanceWaves:
        """The same as a value of the core."""
        return core_rebalance.RebalanceWaves(**dict(self))


class Rebalance(Model):
    """How leaders are spread by what they cost: measured, planned with a proof, approved, applied in waves."""

    history: HistoryStore = Field(description="Where samples, loads, problems and plans are kept.")
    schedule: Annotated[
        CronExpression | None,
        Field(description="When a plan is made: a cron expression in UTC. Absent: when a person asks for it."),
    ] = None
    approval: core_rebalance.Approval = Field(
        default=_DEFAULTS.approval,
        description="Manual waits until the annotation bellwether.dev/approve-plan names the plan's digest; Automatic"
        " applies what is worth while.",
    )
    objective: LoadObjective = Field(
        default_factory=LoadObjective, description="What a plan is to make small, and what it must keep to."
    )
    minimum_improvement_percent: int = integer(
        _DEFAULTS.minimum_improvement_percent,
        0,
        100,
        "A plan that lowers the highest relative load by less than this is not proposed.",
    )
    valid_seconds: int = integer(
        _DEFAULTS.valid_seconds,
        60,
        2592000,
        "How old a plan may be: an older one is neither begun nor gone on with.",
    )
    waves: Waves = Field(default_factory=Waves, description="How an approved plan is applied.")
    runner: Runner = Field(default_factory=Runner, description="What computes the plan, and with what.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.runner.type == 'Process' || (has(self.runner.image) && self.runner.image != '')",
            message="must name an image that holds Bellwether with Spark, unless type is Process",
            holds=lambda r: r.runner.type is RunnerType.PROCESS or bool(r.runner.image),
            field="runner.image",
        ),
        Rule(
            cel="!has(self.runner.persistentVolumeClaim) || self.history.uri.startsWith('/')",
            message="goes with a history that is a path: the claim is mounted there",
            holds=lambda r: r.runner.persistent_volume_claim is None or absolute_path(r.history.uri),
            field="runner.persistentVolumeClaim",
        ),
    )

    def model_post_init(self, _context: Any) -> None:
        """Refuses a schedule that cron cannot read; the API server sees only whether it has five fields."""
        if self.schedule is not None:
            try:
                Schedule(self.schedule)
            except ValueError as error:
                raise PydanticCustomError(RULE, "{message}", {"message": str(error), "field": "schedule"}) from None

    def to_core(self) -> core_rebalance.Rebalance:
        """The same as a value of the core, without what runs the job and where the history lies."""
        return core_rebalance.Rebalance(
            schedule=Schedule(self.schedule) if self.schedule is not None else None,
            approval=self.approval,
            objective=self.objective.to_core(),
            capacities={c.broker_id: c.capacity for c in self.objective.capacities},
            excluded_topics=self.objective.excluded_topics,
            minimum_improvement_percent=self.minimum_improvement_percent,
            valid_seconds=self.valid_seconds,
            waves=self.waves.to_core(),
        )

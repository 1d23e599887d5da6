"""``spec.placement`` and capacity: preferred racks, and how much a broker can carry. Where absent, no rack
and no limit.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import DISTINCT, Model, Rule
from bellwether.api.v1alpha1.spec.rebalance_spec import RackName, TopicPattern
from bellwether.core.settings import capacity as core_capacity
from bellwether.core.settings import placement as core_placement
from bellwether.core.settings.objective import WHOLE

RACK_LIMIT = 16
RULE_LIMIT = 50
_ATOMIC: dict[str, Any] = {"x-kubernetes-list-type": "atomic"}

Racks = Annotated[tuple[RackName, ...], Field(max_length=RACK_LIMIT, json_schema_extra=_ATOMIC), DISTINCT]


class RackWeight(Model):
    """One rack's share of the leaders."""

    rack: RackName = Field(description="The rack, as brokers name it in broker.rack.")
    weight: int = Field(ge=1, le=1000, strict=True, description="Its share beside the weights of the other racks.")


def _once_each(weights: tuple[RackWeight, ...]) -> bool:
    return len({w.rack for w in weights}) == len(weights)


_RACKS_GIVEN = "(has(self.racks) && size(self.racks) > 0)"
_WEIGHTS_GIVEN = "(has(self.weights) && size(self.weights) > 0)"
_TOPICS_GIVEN = "(has(self.topics) && size(self.topics) > 0)"
_EITHER = Rule(
    cel=f"!({_RACKS_GIVEN} && {_WEIGHTS_GIVEN})",
    message="goes without racks: name the racks in order, or give them weights",
    holds=lambda p: not (p.racks and p.weights),
    field="weights",
)
_ONCE = Rule(
    cel="!has(self.weights) || self.weights.all(w, self.weights.exists_one(other, other.rack == w.rack))",
    message="names a rack twice: keep one of each",
    holds=lambda p: _once_each(p.weights),
    field="weights",
)
_RACKS_ONCE = Rule(
    # A list whose order counts is no set to the API server.
    cel="!has(self.racks) || self.racks.all(r, self.racks.exists_one(other, other == r))",
    message="names a rack twice: keep one of each",
    field="racks",
)
_RACKS = "Racks that are to lead, the most preferred first: the next one leads where no replica of a better one can."
_WEIGHTS = "Racks that are to lead side by side, in proportion to their weights. Either this or racks."


class TopicPlacement(Model):
    """Racks for the topics that match a pattern."""

    pattern: TopicPattern = Field(description="The topics; * and ? stand for any letters.")
    racks: Racks = Field(default=(), description=_RACKS)
    weights: tuple[RackWeight, ...] = Field(
        default=(), max_length=RACK_LIMIT, description=_WEIGHTS, json_schema_extra=_ATOMIC
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        _EITHER,
        _ONCE,
        _RACKS_ONCE,
        Rule(
            cel=f"{_RACKS_GIVEN} || {_WEIGHTS_GIVEN}",
            message="must name a rack, or weights must: a rule without either does nothing",
            holds=lambda p: bool(p.racks or p.weights),
            field="racks",
        ),
        Rule(
            cel="!self.pattern.matches('^[*]+$')",
            message="matches every topic: name the racks in spec.placement itself, for all topics",
            holds=lambda p: p.pattern.strip("*") != "",
            field="pattern",
        ),
    )

    def to_core(self) -> core_placement.TopicRule:
        """The same as a value of the core."""
        return core_placement.TopicRule(self.pattern, _preference(self.racks, self.weights))


class Placement(Model):
    """Which racks are to lead. Rules for topics come first, in their order; the rest is for all other topics."""

    racks: Racks = Field(default=(), description=f"{_RACKS} For topics that no rule of topics matches.")
    weights: tuple[RackWeight, ...] = Field(
        default=(),
        max_length=RACK_LIMIT,
        description=f"{_WEIGHTS} For topics that no rule of topics matches.",
        json_schema_extra=_ATOMIC,
    )
    topics: tuple[TopicPlacement, ...] = Field(
        default=(),
        max_length=RULE_LIMIT,
        description="Rules for topics by their names: the first one that matches counts.",
        json_schema_extra=_ATOMIC,
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        _EITHER,
        _ONCE,
        _RACKS_ONCE,
        Rule(
            cel=f"{_RACKS_GIVEN} || {_WEIGHTS_GIVEN} || {_TOPICS_GIVEN}",
            message="must name a rack, or weights or topics must: leave placement out where no rack is preferred",
            holds=lambda p: bool(p.racks or p.weights or p.topics),
            field="racks",
        ),
        Rule(
            cel="!has(self.topics) || self.topics.all(t, self.topics.exists_one(other, other.pattern == t.pattern))",
            message="names a pattern twice: the first rule takes every topic of the second",
            holds=lambda p: len({t.pattern for t in p.topics}) == len(p.topics),
            field="topics",
        ),
    )

    def to_core(self) -> core_placement.Placement:
        """The same as a value of the core."""
        wanted = _preference(self.racks, self.weights)
        return core_placement.Placement(wanted if wanted.named else None, tuple(t.to_core() for t in self.topics))


class Capacity(Model):
    """What a demotion may put on one broker."""

    max_leaders: int | None = Field(
        default=None,
        ge=1,
        le=1000000,
        strict=True,
        description="How many partitions one broker may lead. Absent: any number.",
    )
    max_bytes_per_second: int | None = Field(
        default=None,
        ge=1,
        le=10**15,
        strict=True,
        description=f"How much a broker of capacity {WHOLE} may carry by leading and following, in the measure of"
        " spec.rebalance.objective; others in proportion to their capacities there. The loads are those of the last"
        " load plan; until there is one, this limits nothing. Absent: any load.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.maxLeaders) || has(self.maxBytesPerSecond)",
            message="must be given, or maxBytesPerSecond must: leave capacity out where brokers have no limit",
            holds=lambda c: c.max_leaders is not None or c.max_bytes_per_second is not None,
            field="maxLeaders",
        ),
    )

    def to_core(self) -> core_capacity.Capacity:
        """The same as a value of the core."""
        return core_capacity.Capacity(max_leaders=self.max_leaders, max_load=self.max_bytes_per_second)


def _preference(named: tuple[str, ...], weights: tuple[RackWeight, ...]) -> core_placement.Preference:
    return core_placement.Preference(named, tuple((w.rack, w.weight) for w in weights))

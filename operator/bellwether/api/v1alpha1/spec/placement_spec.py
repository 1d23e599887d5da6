"""``spec.scope``, ``spec.placement`` and ``spec.demotion.capacity``: topics, preferred racks, limits per broker."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from bellwether.api.v1alpha1.base_model import AS_SET, ATOMIC, DISTINCT, Model, Rule
from bellwether.api.v1alpha1.spec.rebalance_spec import RackName, TopicPattern, racks_once
from bellwether.core.settings import placement as core_placement
from bellwether.core.settings import policy as core_policy
from bellwether.core.settings.objective import WHOLE

RACK_LIMIT = 16
RULE_LIMIT = 50
PATTERN_LIMIT = 100

Racks = Annotated[tuple[RackName, ...], Field(max_length=RACK_LIMIT, json_schema_extra=ATOMIC), DISTINCT]

Patterns = Annotated[tuple[TopicPattern, ...], Field(max_length=PATTERN_LIMIT, json_schema_extra=AS_SET), DISTINCT]


class Scope(Model):
    """Topics whose leaders the policy may move, by demotion, placement, elections and load plans. If unset, it may move
    all of them.
    """

    included_topics: Patterns = ()
    """Names of topics in scope, with * and ? as wildcards. If empty, all topics are in scope."""
    excluded_topics: Patterns = ()
    """Names of topics out of scope, with * and ? as wildcards, even if includedTopics has them."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(has(self.includedTopics) && size(self.includedTopics) > 0)"
            " || (has(self.excludedTopics) && size(self.excludedTopics) > 0)",
            message="is required unless excludedTopics is set: set one of them, or remove scope",
            holds=lambda s: bool(s.included_topics or s.excluded_topics),
            field="includedTopics",
        ),
        Rule(
            cel="!has(self.excludedTopics) || !self.excludedTopics.exists(t, t.matches('^[*]+$'))",
            message="leaves no topic in scope: narrow it, or set spec.suspend to true",
            holds=lambda s: not any(t.strip("*") == "" for t in s.excluded_topics),
            field="excludedTopics",
        ),
    )

    def to_core(self) -> core_placement.Scope:
        """Convert to the settings of the core."""
        return core_placement.Scope(self.included_topics, self.excluded_topics)


class RackWeight(Model):
    """Share of one rack in the leaders."""

    rack: RackName
    """Name of the rack, as in broker.rack."""
    weight: int = Field(ge=1, le=1000, strict=True)
    """Share of the rack, relative to the weights of the other racks."""


_RACKS_GIVEN = "(has(self.racks) && size(self.racks) > 0)"
_WEIGHTS_GIVEN = "(has(self.weights) && size(self.weights) > 0)"
_TOPICS_GIVEN = "(has(self.topics) && size(self.topics) > 0)"
_EITHER = Rule(
    cel=f"!({_RACKS_GIVEN} && {_WEIGHTS_GIVEN})",
    message="must not be set together with racks: set racks for an order of preference, or weights for shares",
    holds=lambda p: not (p.racks and p.weights),
    field="weights",
)
_ONCE = Rule(
    cel="!has(self.weights) || self.weights.all(w, self.weights.exists_one(other, other.rack == w.rack))",
    message="contains a rack twice: remove the duplicate",
    holds=lambda p: len({w.rack for w in p.weights}) == len(p.weights),
    field="weights",
)
_RACKS_ONCE = racks_once("racks")
_RACKS = (
    "Preferred racks for leaders, the most preferred first. The next rack is used where no replica"
    " of a better one can lead."
)
_WEIGHTS = "Racks that share the leaders in proportion to their weights. Set either weights or racks."


class TopicPlacement(Model):
    """Preferred racks for the topics that match a pattern."""

    pattern: TopicPattern
    """Topic name, with * and ? as wildcards."""
    racks: Racks = Field(default=(), description=_RACKS)
    weights: tuple[RackWeight, ...] = Field(
        default=(), max_length=RACK_LIMIT, description=_WEIGHTS, json_schema_extra=ATOMIC
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        _EITHER,
        _ONCE,
        _RACKS_ONCE,
        Rule(
            cel=f"{_RACKS_GIVEN} || {_WEIGHTS_GIVEN}",
            message="is required unless weights is set: set one of them, or remove the rule",
            holds=lambda p: bool(p.racks or p.weights),
            field="racks",
        ),
        Rule(
            cel="!self.pattern.matches('^[*]+$')",
            message="matches every topic: set racks or weights in spec.placement instead",
            holds=lambda p: p.pattern.strip("*") != "",
            field="pattern",
        ),
    )

    def to_core(self) -> core_placement.TopicRule:
        """Convert to the settings of the core."""
        return core_placement.TopicRule(self.pattern, _preference(self.racks, self.weights))


class Placement(Model):
    """Preferred racks for leaders. The first rule in topics that matches a topic applies to it; all other topics use
    racks or weights. If unset, replica orders decide.
    """

    racks: Racks = Field(default=(), description=f"{_RACKS} Used for topics that no rule in topics matches.")
    weights: tuple[RackWeight, ...] = Field(
        default=(),
        max_length=RACK_LIMIT,
        description=f"{_WEIGHTS} Used for topics that no rule in topics matches.",
        json_schema_extra=ATOMIC,
    )
    topics: tuple[TopicPlacement, ...] = Field(default=(), max_length=RULE_LIMIT, json_schema_extra=ATOMIC)
    """Rules for topics by name; the first rule that matches applies."""

    rules: ClassVar[tuple[Rule, ...]] = (
        _EITHER,
        _ONCE,
        _RACKS_ONCE,
        Rule(
            cel=f"{_RACKS_GIVEN} || {_WEIGHTS_GIVEN} || {_TOPICS_GIVEN}",
            message="is required unless weights or topics is set: set one of them, or remove placement",
            holds=lambda p: bool(p.racks or p.weights or p.topics),
            field="racks",
        ),
        Rule(
            cel="!has(self.topics) || self.topics.all(t, self.topics.exists_one(other, other.pattern == t.pattern))",
            message="contains a pattern twice, and only the first rule applies: remove the other",
            holds=lambda p: len({t.pattern for t in p.topics}) == len(p.topics),
            field="topics",
        ),
    )

    def to_core(self) -> core_placement.Placement:
        """Convert to the settings of the core."""
        default = _preference(self.racks, self.weights)
        return core_placement.Placement(default if default.named else None, tuple(t.to_core() for t in self.topics))


class Capacity(Model):
    """Limits on the leaders and load of one broker after a demotion. If unset, there are none. If the other brokers
    have no capacity left, a demoted broker keeps its remaining leaders (reason CapacityReached); the most severe broker
    is demoted first.
    """

    max_leaders: int | None = Field(default=None, ge=1, le=1000000, strict=True)
    """Maximum number of partitions that one broker may lead. If unset, there is no limit."""
    max_bytes_per_second: int | None = Field(
        default=None,
        ge=1,
        le=10**15,
        strict=True,
        description=f"Maximum load in bytes per second, leading and following, of a broker with capacity {WHOLE} in"
        " spec.objective of the LeaderRebalance; proportional for other capacities. Uses the loads of the last load"
        " plan; until there is one, it limits nothing. If unset, there is no limit.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.maxLeaders) || has(self.maxBytesPerSecond)",
            message="is required unless maxBytesPerSecond is set: set one of them, or remove capacity",
            holds=lambda c: c.max_leaders is not None or c.max_bytes_per_second is not None,
            field="maxLeaders",
        ),
    )

    def to_core(self) -> core_policy.Capacity:
        """Convert to the settings of the core."""
        return core_policy.Capacity(max_leaders=self.max_leaders, max_load=self.max_bytes_per_second)


def _preference(named: tuple[str, ...], weights: tuple[RackWeight, ...]) -> core_placement.Preference:
    return core_placement.Preference(named, tuple((w.rack, w.weight) for w in weights))

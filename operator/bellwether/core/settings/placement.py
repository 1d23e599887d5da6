"""Topics in scope of a policy, and its rack preferences, in order or by weight: for all topics, or by pattern.

``model.rack_ranking`` applies them to the brokers of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Scope:
    """The topics that match a pattern of ``included``, or all where that is empty, but those of ``excluded``."""

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether every topic is in scope."""
        return not (self.included or self.excluded)

    def covers(self, topic: str) -> bool:
        """Whether a topic is in scope."""
        inside = not self.included or any(fnmatchcase(topic, pattern) for pattern in self.included)
        return inside and not any(fnmatchcase(topic, pattern) for pattern in self.excluded)


EVERY_TOPIC = Scope()


@dataclass(frozen=True, slots=True)
class Preference:
    """Racks that should lead: ``racks`` in order, the most preferred first; or ``weights``, in proportion to them."""

    racks: tuple[str, ...] = ()
    weights: tuple[tuple[str, int], ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Every rack of the preference, in its order."""
        return self.racks or tuple(rack for rack, _ in self.weights)


@dataclass(frozen=True, slots=True)
class TopicRule:
    """A preference for the topics that match a pattern; ``*`` and ``?`` are wildcards."""

    pattern: str
    preference: Preference

    def matches(self, topic: str) -> bool:
        """Whether the rule applies to that topic."""
        return fnmatchcase(topic, self.pattern)


@dataclass(frozen=True, slots=True)
class Placement:
    """Rack preferences of a policy: the first matching rule applies, or ``preference`` where no rule matches.

    Topics out of the policy's ``scope`` have none.
    """

    preference: Preference | None = None
    rules: tuple[TopicRule, ...] = ()
    scope: Scope = EVERY_TOPIC

    def of(self, topic: str) -> Preference | None:
        """The preference for a topic; None where there is none."""
        if not self.scope.covers(topic):
            return None
        return next((r.preference for r in self.rules if r.matches(topic)), self.preference)

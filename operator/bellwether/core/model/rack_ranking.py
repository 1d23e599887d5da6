"""Rank brokers by preferred or weighted racks, topic by topic, and find leaders outside the preferred racks.

In: the racks that a policy prefers, in order or by weight, for all topics and by pattern; a cluster's brokers. Out: for
each topic the rank of every broker whose rack is known. Pure. Used by ``planning`` for each partition, by
``bellwether_load.plan.problem_builder`` for the job, and by ``reporting`` for placement warnings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.refusals import Refusal
from bellwether.core.reasons import Reason
from bellwether.core.settings.placement import Placement, Preference

UNEVEN_SHARE = 0.1
_NO_RANK = 1 << 30


def uneven(counts: Sequence[int]) -> bool:
    """Whether brokers lead clearly unequal numbers of partitions: at least 2 and 10 % of the average apart."""
    return bool(counts) and max(counts) - min(counts) >= max(2, math.ceil(UNEVEN_SHARE * sum(counts) / len(counts)))


@dataclass(frozen=True, eq=False)
class RackRanking:
    """One preference applied to one cluster. ``ranks`` holds the brokers whose rack is known: the lower, the more
    preferred.

    Racks that the preference does not name share the last rank; racks with a weight share the first one. Two rankings
    are equal only if they are the same object.
    """

    preference: Preference
    ranks: Mapping[int, int]
    racks: Mapping[int, str]
    weights: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, preference: Preference, cluster: Cluster) -> RackRanking:
        """Rank a cluster's brokers, fenced ones included."""
        racks = {b.id: b.rack for b in cluster.brokers.values() if b.rack is not None}
        weights = {rack: weight for rack, weight in preference.weights if weight > 0}
        places = dict.fromkeys(weights, 0) or {rack: place for place, rack in enumerate(preference.racks)}
        last = len(preference.named)
        return cls(preference, {b: places.get(rack, last) for b, rack in racks.items()}, racks, weights)

    def orderly(self, replicas: Sequence[int]) -> bool:
        """Whether no replica is ahead of one in a more preferred rack. Replicas with an unknown rack are ignored."""
        ranks, before = self.ranks, 0
        for replica in replicas:
            rank = ranks.get(replica, before)
            if rank < before:
                return False
            before = rank
        return True

    def best(self, brokers: Sequence[int]) -> tuple[int, ...]:
        """The brokers in the most preferred rack among them; all of them where no rack is known."""
        ranks, lowest = self.ranks, _NO_RANK
        found: tuple[int, ...] = ()
        for broker in brokers:
            rank = ranks.get(broker, _NO_RANK)
            if rank < lowest:
                lowest, found = rank, (broker,)
            elif rank == lowest:
                found += (broker,)
        return found

    def tiers(self, brokers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """All of them, grouped by rank, the most preferred first; brokers with an unknown rack come last."""
        tiers: dict[int, list[int]] = {}
        for broker in brokers:
            tiers.setdefault(self.ranks.get(broker, len(self.preference.named) + 1), []).append(broker)
        return tuple(tuple(tiers[rank]) for rank in sorted(tiers))

    def settles(self, broker: int, than: Sequence[int]) -> bool:
        """Whether a broker is as preferred as all of those; also if its rack is unknown (unknown moves nothing)."""
        ranks = self.ranks
        rank = ranks.get(broker)
        # Rank 0 is the most preferred: nothing to compare, for nearly all partitions of a settled cluster.
        return not rank or all(rank <= ranks.get(b, rank) for b in than)

    def eligible_leaders(self, home: int, replicas: Sequence[int]) -> Sequence[int]:
        """Eligible leaders once all brokers are back: the baseline leader if racks allow it, otherwise the best
        rack.
        """
        return (home,) if self.settles(home, replicas) else self.best(replicas)

    def may_return_home(self, home: int, first: int) -> bool:
        """Whether racks allow moving the leader from ``first`` to ``home``: to a rack as preferred, or the same if
        weighted.

        Brokers with an unknown rack are left where they are (unknown moves nothing).
        """
        if home not in self.ranks or first not in self.ranks:
            return False
        if self.weights:
            return self.racks[home] == self.racks[first]
        return self.ranks[home] <= self.ranks[first]

    def rests(self, partition: Partition, baseline: Sequence[int]) -> bool:
        """Whether a partition is permanently where the racks want it, led by the first of its order."""
        replicas = partition.replicas
        if partition.leader != replicas[0] or partition.reassigning or not self.orderly(replicas):
            return False
        first, home = replicas[0], baseline[0]
        return not self.orderly(baseline) if home == first else not self.may_return_home(home, first)

    def keeps(self, first: int, replicas: Sequence[int], baseline: Sequence[int]) -> bool:
        """Whether an order may stay as it is when ``first`` is to lead.

        It may if no replica is ahead of one in a better rack, unless the baseline's order could be used; and if the
        rack of one of them is unknown.
        """
        if first != replicas[0]:
            return False
        if not self.orderly(replicas):
            return any(r not in self.ranks for r in replicas)
        return first != baseline[0] or not self.orderly(baseline)

    def arrange(self, brokers: Sequence[int]) -> list[int]:
        """The more preferred first, otherwise in their order; unchanged if the rack of one of them is unknown."""
        try:
            return sorted(brokers, key=self.ranks.__getitem__)
        except KeyError:
            return list(brokers)


class RackRankings:
    """A policy's placement on one cluster. The ranking of each topic, and what the reports need, are cached."""

    def __init__(self, placement: Placement, cluster: Cluster) -> None:
        self._placement = placement
        self._cluster = cluster
        self._by_preference: dict[Preference, RackRanking] = {}
        self._by_topic: dict[str, RackRanking | None] = {}

    def fits(self, placement: Placement, cluster: Cluster) -> bool:
        """Whether these are the rankings of that placement on that very cluster."""
        return self._cluster is cluster and self._placement == placement

    @cached_property
    def leaders_outside(self) -> LeadersOutsidePreferredRacks:
        """Leaders outside the preferred racks, among partitions with a leader and a ranking."""
        total, found = 0, []
        for partition in self._cluster.partitions:
            ranking = self.of(partition.topic)
            if ranking is None or partition.leader is None:
                continue
            total += 1
            if not ranking.settles(partition.leader, partition.replicas):
                found.append(partition.name)
        return LeadersOutsidePreferredRacks(len(found), total, str(min(found, default="")))

    @cached_property
    def warnings(self) -> tuple[Refusal, ...]:
        """Parts of the placement that have no effect on the cluster."""
        return placement_warnings(self._placement, self._cluster)

    def of(self, topic: str) -> RackRanking | None:
        """The ranking of a topic; None where the policy has no preference for it."""
        try:
            return self._by_topic[topic]
        except KeyError:
            preference = self._placement.of(topic)
            if preference is not None and preference not in self._by_preference:
                self._by_preference[preference] = RackRanking.of(preference, self._cluster)
            return self._by_topic.setdefault(topic, self._by_preference[preference] if preference is not None else None)

    def unbalanced(self, counts: Mapping[int, int], live: Collection[int]) -> bool:
        """Whether the live brokers within any rack lead clearly unequal numbers of partitions."""
        racks: dict[str, list[int]] = {}
        for broker in self._cluster.brokers.values():
            if broker.rack is not None and broker.id in live:
                racks.setdefault(broker.rack, []).append(counts.get(broker.id, 0))
        return any(uneven(led) for led in racks.values())


@dataclass(frozen=True, slots=True)
class LeadersOutsidePreferredRacks:
    """Number of ``leaders`` in a less preferred rack than one of their partition's replicas, ``of`` all leaders ranked.

    ``first`` names the first of these partitions, by topic and number.
    """

    leaders: int = 0
    of: int = 0
    first: str = ""


def placement_warnings(placement: Placement, cluster: Cluster) -> tuple[Refusal, ...]:
    """Parts of a placement that have no effect, or more effect than a rule should have, in their order.

    A rack that no broker has, a pattern without a topic or with all of them, a rule whose topics earlier rules take.
    """
    present = {b.rack for b in cluster.brokers.values()}
    everything = cluster.topics
    topics = {topic for topic, internal in everything.items() if not internal}
    preferences = [placement.preference] if placement.preference is not None else []
    preferences += [rule.preference for rule in placement.rules]
    found = [
        f"no registered broker is in rack {rack!r}: correct the name, set broker.rack, or start its brokers"
        for rack in dict.fromkeys(rack for preference in preferences for rack in preference.named)
        if rack not in present
    ]
    taken: set[str] = set()
    for rule in placement.rules:
        matched = {t for t in everything if rule.matches(t)}
        if not matched:
            found.append(f"no topic matches {rule.pattern!r}: correct the pattern, or remove the rule")
        elif matched <= taken:
            many = f"earlier rules take every topic that matches {rule.pattern!r}"
            found.append(f"{many}: put it before them, or remove it")
        elif len(topics) > 1 and topics <= matched:
            found.append(f"{rule.pattern!r} matches every topic: set the racks in spec.placement itself")
        taken |= matched
    return tuple(Refusal(Reason.PLACEMENT_UNSUITABLE, text) for text in found)

"""Assign leaders: spread partitions of demoted brokers over healthy live ISR members, by load or by count.

The order of a partition is a pure function of its baseline, the demoted brokers, the preferred racks and the leader
chosen here: the chosen one first, then the others by rack and otherwise as in the baseline, the demoted last. The
baseline's preferred leader is chosen wherever it may lead and no better rack can. Other choices are kept, so that a
settled cluster needs no change, and are improved only where the counts have become clearly uneven (a dead broker came
back). Partitions that would exceed a broker's capacity are left where they are. Loads are compared where a limit has
them read (``LeaderLoads.fullness``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bellwether.core.model.cluster import Partition, PartitionKey
from bellwether.core.model.loads import LeaderLoads
from bellwether.core.model.rack_ranking import UNEVEN_SHARE, RackRanking, uneven

IMPROVEMENT_ROUNDS = 8


class LeaderChoice(NamedTuple):
    """A partition of a demoted broker, or in the wrong rack; who may lead it, and who is preferred.

    ``able`` are the replicas that may lead, ``preferred`` those in the best rack, healthy ones before others; ``well``
    are the healthy ones of every rack. ``untouched``: no broker in its order is demoted or returning, so that its first
    replica may stay first while it is away, as Kafka itself uses the next of the order and comes back. ``urgency``
    orders the moves where not all fit: higher for a sicker leader, -1 where no demoted broker leads.
    """

    partition: Partition
    key: PartitionKey
    baseline: tuple[int, ...]
    able: tuple[int, ...]
    preferred: tuple[int, ...]
    ranking: RackRanking | None = None
    well: tuple[int, ...] = ()
    untouched: bool = False
    urgency: float = -1

    @property
    def settled_leader(self) -> int | None:
        """The leader if there is nothing to choose: the baseline's where it may lead and racks allow it, else the first
        where racks let it stay; otherwise None.
        """
        first, home, ranking = self.partition.replicas[0], self.baseline[0], self.ranking
        if ranking is None:
            return next((b for b in (home, first) if b in self.able), None)
        able = self.baseline if self.untouched else self.able
        back = home != first and ranking.may_return_home(home, first)
        wanted = (home, first) if back else (first,)
        return next((b for b in wanted if b in able and ranking.settles(b, self.preferred)), None)

    @property
    def stays(self) -> int | None:
        """The current leader if it may go on, though another would be preferred; None where it may not."""
        leader = self.partition.leader
        return leader if leader is not None and leader in self.able else None


class RackShares:
    """Leaders per rack, for every ranking with weights; rankings without weights are ignored."""

    def __init__(self) -> None:
        self._led: dict[RackRanking, dict[str, int]] = {}

    def add(self, ranking: RackRanking | None, broker: int) -> None:
        """Count one more partition of that ranking, led by the broker."""
        if ranking is None or not ranking.weights:
            return
        led = self._led.setdefault(ranking, dict.fromkeys(ranking.weights, 0))
        rack = ranking.racks.get(broker)
        if rack in led:
            led[rack] += 1

    def move(self, ranking: RackRanking, here: int, there: int) -> None:
        """Move one leader from ``here`` to ``there``."""
        led = self._led[ranking]
        led[ranking.racks[here]] -= 1
        led[ranking.racks[there]] += 1

    def wanting(self, ranking: RackRanking | None, candidates: Sequence[int]) -> Sequence[int]:
        """The candidates in the rack furthest below its share; all candidates without weights."""
        if ranking is None or not ranking.weights:
            return candidates
        racks = {ranking.racks[b] for b in candidates if ranking.racks.get(b) in ranking.weights}
        if not racks:
            return candidates
        led = self._led.setdefault(ranking, dict.fromkeys(ranking.weights, 0))
        rack = min(racks, key=lambda r: ((led[r] + 1) / ranking.weights[r], r))
        return [b for b in candidates if ranking.racks.get(b) == rack]

    def better(self, ranking: RackRanking, here: int, candidates: Sequence[int]) -> Sequence[int]:
        """The candidates in a rack that would then lead less, relative to its weight, than the rack of ``here`` now."""
        led, weights = self._led[ranking], ranking.weights
        rack = ranking.racks.get(here)
        if rack not in led:
            return ()
        # All candidates may be in racks without a weight, or in unknown ones: then there is nothing to gain.
        weighed = led.keys() - {rack}
        others = [b for b in self.wanting(ranking, candidates) if ranking.racks.get(b) in weighed]
        if not others:
            return ()
        other = ranking.racks[others[0]]
        return others if (led[other] + 1) / weights[other] < led[rack] / weights[rack] else ()

    def uneven(self) -> Iterator[RackRanking]:
        """The rankings with a rack clearly above or below its share."""
        return (ranking for ranking in self._led if self.is_uneven(ranking))

    def is_uneven(self, ranking: RackRanking) -> bool:
        """Whether a rack is off its share by at least 2 leaders and 10 % of it."""
        led, whole = self._led[ranking], sum(ranking.weights.values())
        total = sum(led.values())
        for rack, weight in ranking.weights.items():
            share = total * weight / whole
            if abs(led[rack] - share) >= max(2, math.ceil(UNEVEN_SHARE * share)):
                return True
        return False


@dataclass(frozen=True)
class Assignment:
    """The leader of each partition that has one, and the partitions without a broker that has room."""

    chosen: Mapping[PartitionKey, int] = field(default_factory=dict)
    left: frozenset[PartitionKey] = frozenset()


def order_with(
    first: int | None,
    baseline: Sequence[int],
    demoted: Collection[int],
    ranking: RackRanking | None = None,
    sickness: Mapping[int, float] | None = None,
) -> tuple[int, ...]:
    """The order with ``first`` in front, the demoted last, and the others as in the baseline.

    ``ranking`` puts replicas in a more preferred rack first, so that Kafka itself fails over to them. ``sickness`` puts
    the less sick of the demoted first: they lead where no other replica can.
    """
    others: list[int] = []
    last: list[int] = []
    for replica in baseline:
        if replica != first:
            (last if replica in demoted else others).append(replica)
    if ranking is not None:
        others = ranking.arrange(others)
    if sickness and len(last) > 1:
        last.sort(key=lambda b: sickness.get(b, 0))
    return (first, *others, *last) if first is not None else (*others, *last)


def assign_within_capacity(displaced: Sequence[LeaderChoice], account: LeaderLoads) -> Assignment:
    """Assign leaders within capacity limits. ``account`` holds the leaders that stay where they are, and is modified.

    Partitions of the sickest leader come first, of these the largest load. Partitions that are in place are not
    limited.
    """
    chosen: dict[PartitionKey, int] = {}
    undecided, left = [], set()
    shares = RackShares()
    for item in displaced:
        settled_leader = item.settled_leader
        if settled_leader is not None:
            chosen[item.key] = settled_leader
            account.add(settled_leader, item.key)
            shares.add(item.ranking, settled_leader)
        elif item.preferred:
            undecided.append(item)
            if account.capacity.bounded and item.stays is not None:
                account.add(item.stays, item.key)  # until it moves, it takes room there
    for item in _by_place(undecided, account):
        pick = _pick(item, account, shares)
        if pick is None:
            left.add(item.key)
        else:
            chosen[item.key] = pick
            shares.add(item.ranking, pick)
            if not account.capacity.bounded or item.stays is None:
                account.add(pick, item.key)
            elif item.stays != pick:
                account.move(item.key, item.stays, pick)
    _proportion(displaced, chosen, account, shares)
    _improve([i for i in displaced if _away(i, chosen)], chosen, account)
    return Assignment(chosen, frozenset(left))


def _by_place(undecided: list[LeaderChoice], account: LeaderLoads) -> list[LeaderChoice]:
    """Those without a choice first; if capacity is limited, the most urgent and largest first. Otherwise by key."""
    # Several stable sorts, the last one counts most: cheaper than a key tuple for each of so many partitions.
    undecided.sort(key=lambda i: i.key)
    undecided.sort(key=lambda i: len(i.preferred))
    if account.capacity.bounded:
        undecided.sort(key=lambda i: (-i.urgency, -account.load_of(i.key)))
    return undecided


def _pick(item: LeaderChoice, account: LeaderLoads, shares: RackShares) -> int | None:
    """The least full candidate with room in the best rack; the current leader needs no room."""
    key, counts, leader = item.key, account.counts, item.stays
    if not account.capacity.bounded:
        if len(item.preferred) == 1:
            return item.preferred[0]
        of_rack = shares.wanting(item.ranking, item.preferred)
        return min(of_rack, key=lambda b: (counts.get(b, 0), item.preferred.index(b)))
    tiers = [shares.wanting(item.ranking, item.preferred), item.preferred]
    if item.ranking is not None:
        tiers += item.ranking.tiers(item.well)
    for tier in (*tiers, item.able):
        if leader in tier and item.partition.replicas[0] == leader:
            return leader
        fitting = [b for b in tier if account.fits(b, key)]
        if fitting:
            return min(fitting, key=lambda b: (account.fullness(b), item.able.index(b)))
    return leader


def _away(item: LeaderChoice, chosen: Mapping[PartitionKey, int]) -> bool:
    """Whether its leader was chosen by count and may be chosen again. A leader that is only away is waited for."""
    if item.ranking is not None and len(item.preferred) < 2:
        return False
    leader = chosen.get(item.key)
    return leader is not None and leader != item.baseline[0] and leader in item.able


def _proportion(
    displaced: Sequence[LeaderChoice], chosen: dict[PartitionKey, int], account: LeaderLoads, shares: RackShares
) -> None:
    """While a weighted rack leads clearly more than its share, move partitions of it to racks that lead less."""
    for ranking in shares.uneven():
        of_ranking = [i for i in displaced if i.ranking is ranking and chosen.get(i.key) in i.able]
        # Partitions away from their baseline leader move first.
        of_ranking.sort(key=lambda i: (chosen[i.key] == i.baseline[0], i.key))
        for _ in range(IMPROVEMENT_ROUNDS):
            moves = 0
            for item in of_ranking:
                key = item.key
                here = chosen[key]
                of_rack = [b for b in shares.better(ranking, here, item.preferred) if account.fits(b, key)]
                if of_rack:
                    there = min(of_rack, key=lambda b: (b != item.baseline[0], account.fullness(b), b))
                    chosen[key] = there
                    account.move(key, here, there)
                    shares.move(ranking, here, there)
                    moves += 1
            if not moves or not shares.is_uneven(ranking):
                break


def _improve(away: Sequence[LeaderChoice], chosen: dict[PartitionKey, int], account: LeaderLoads) -> None:
    """Even out among brokers that can exchange partitions: all, or those in one rack where racks are preferred."""
    if account.capacity.max_load is not None:
        return  # chosen by load and within the limit: neither the count nor loads that change move it on
    groups: dict[str | None, list[LeaderChoice]] = {}
    for item in away:
        rack = item.ranking.racks.get(chosen[item.key]) if item.ranking is not None else None
        groups.setdefault(rack, []).append(item)
    for group in groups.values():
        _even_out(group, chosen, account)


def _even_out(group: Sequence[LeaderChoice], chosen: dict[PartitionKey, int], account: LeaderLoads) -> None:
    """While the counts are clearly uneven, move partitions from a fuller broker to their least full candidate.

    The fullest and the least full broker may share no partition, so every small step counts: it makes room for the next
    one. The steps end as soon as the counts are no longer clearly uneven.
    """
    counts = account.counts
    live = sorted({b for item in group for b in _alternatives(item, chosen[item.key])})
    if not uneven([counts.get(b, 0) for b in live]):
        return
    for _ in range(IMPROVEMENT_ROUNDS):
        moves = due = 0
        for item in group:
            if moves > due:  # a check costs as much as there are brokers: once in that many moves
                if not uneven([counts.get(b, 0) for b in live]):
                    return
                due = moves + len(live)
            key = item.key
            here = chosen[key]
            there = min(_alternatives(item, here), key=lambda b: (counts.get(b, 0), b), default=here)
            if counts.get(here, 0) - counts.get(there, 0) > 1 and account.fits(there, key):
                chosen[key] = there
                account.move(key, here, there)
                moves += 1
        if not moves:
            return


def _alternatives(item: LeaderChoice, here: int) -> Sequence[int]:
    """Leaders that a partition may move to without changing the counts of its racks."""
    ranking = item.ranking
    if ranking is None:
        return item.preferred
    if ranking.weights:
        return [b for b in item.preferred if ranking.racks.get(b) == ranking.racks.get(here)]
    return item.preferred if here in item.preferred else ()

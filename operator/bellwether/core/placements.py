"""Who leads instead: spread the partitions of demoted brokers over the healthy live ISR members, by count.

The order of a partition is a pure function of its baseline, of who is demoted and of the leader chosen here: the
chosen one first, then the others as the baseline has them, the demoted last. The baseline's own preferred leader is
chosen wherever it may lead. Other choices are sticky, so that a settled cluster asks for nothing, and are improved
only where the spread has become visibly uneven (a dead broker came back).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from bellwether.core.clusters import Partition, PartitionKey

IMPROVEMENT_ROUNDS = 8
UNEVEN_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Displacement:
    """A partition that a demoted broker holds: its baseline, who may lead it, and whom to prefer for a new leader."""

    partition: Partition
    baseline: tuple[int, ...]
    able: tuple[int, ...]
    preferred: tuple[int, ...]

    @property
    def home(self) -> bool:
        """Whether the baseline's own preferred leader may lead, so that no other choice is called for."""
        return self.baseline[0] in self.able


def order_with(first: int | None, baseline: Sequence[int], demoted: Collection[int]) -> tuple[int, ...]:
    """The order with ``first`` in front, the demoted last, and everybody else as in the baseline."""
    others = [r for r in baseline if r not in demoted and r != first]
    last = [r for r in baseline if r in demoted and r != first]
    return (*([first] if first is not None else []), *others, *last)


def spread(displaced: Sequence[Displacement], leading: Mapping[int, int]) -> dict[PartitionKey, int]:
    """The leader of each displaced partition that has candidates.

    ``leading`` counts, for each broker, the leaders that stay where they are.
    """
    counts = dict(leading)
    chosen: dict[PartitionKey, int] = {}
    for item in displaced:
        standing = item.baseline[0] if item.home else item.partition.replicas[0]
        if standing in item.able:
            chosen[item.partition.key] = standing
            counts[standing] = counts.get(standing, 0) + 1
    undecided = [i for i in displaced if i.preferred and i.partition.key not in chosen]
    for item in sorted(undecided, key=lambda i: (len(i.preferred), i.partition.key)):
        pick = min(item.preferred, key=lambda b: (counts.get(b, 0), item.preferred.index(b)))
        chosen[item.partition.key] = pick
        counts[pick] = counts.get(pick, 0) + 1
    _improve([i for i in displaced if i.preferred and not i.home], chosen, counts)
    return chosen


def _improve(away: Sequence[Displacement], chosen: dict[PartitionKey, int], counts: dict[int, int]) -> None:
    """While the spread is visibly uneven, move choices from a fuller to the emptiest of their candidates.

    The fullest and the emptiest broker may share no partition, so every step down counts, however small: it makes room
    for the next one. The steps end as soon as the spread is not visible any more.
    """
    live = sorted({b for item in away for b in item.preferred})
    if not live:
        return
    visible = max(2, math.ceil(UNEVEN_SHARE * sum(counts.get(b, 0) for b in live) / len(live)))

    def even() -> bool:
        held = [counts.get(b, 0) for b in live]
        return max(held) - min(held) < visible

    for _ in range(IMPROVEMENT_ROUNDS):
        moves = due = 0
        for item in away:
            if moves >= due:  # looking costs as much as there are brokers: once in so many moves
                if even():
                    return
                due = moves + len(live)
            here = chosen[item.partition.key]
            there = min(item.preferred, key=lambda b: (counts.get(b, 0), b))
            if counts.get(here, 0) - counts.get(there, 0) > 1:
                chosen[item.partition.key] = there
                counts[here] -= 1
                counts[there] = counts.get(there, 0) + 1
                moves += 1
        if not moves:
            return

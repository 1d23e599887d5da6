"""Weighted racks: how many partitions each rack leads, compared with its weight.

Used by ``assignment`` while it chooses leaders; knows racks and counts, no partitions. Rankings without weights are
ignored, so callers need not distinguish them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bellwether.core.model.rack_ranking import UNEVEN_SHARE, RackRanking


class RackShares:
    """Leaders per rack, for every ranking with weights."""

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

"""Weighted racks: how many partitions each rack leads, compared with what its weight asks for.

Kept by ``assignment`` while it chooses leaders; knows racks and counts, no partitions. Rankings without weights are
passed over, so callers need not tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bellwether.core.model.rack_ranking import RackRanking

UNEVEN_SHARE = 0.1


class RackShares:
    """The leaders of each rack, for every ranking that has weights."""

    def __init__(self) -> None:
        self._led: dict[RackRanking, dict[str, int]] = {}

    def add(self, ranking: RackRanking | None, broker: int) -> None:
        """One more partition of that ranking is led by the broker."""
        if ranking is None or not ranking.weights:
            return
        led = self._led.setdefault(ranking, dict.fromkeys(ranking.weights, 0))
        rack = ranking.racks.get(broker)
        if rack in led:
            led[rack] += 1

    def move(self, ranking: RackRanking, here: int, there: int) -> None:
        """It is led there instead of here."""
        led = self._led[ranking]
        led[ranking.racks[here]] -= 1
        led[ranking.racks[there]] += 1

    def wanting(self, ranking: RackRanking | None, candidates: Sequence[int]) -> Sequence[int]:
        """The candidates in the rack that is furthest from its share; all of them where there are no weights."""
        if ranking is None or not ranking.weights:
            return candidates
        racks = {ranking.racks[b] for b in candidates if ranking.racks.get(b) in ranking.weights}
        if not racks:
            return candidates
        led = self._led.setdefault(ranking, dict.fromkeys(ranking.weights, 0))
        rack = min(racks, key=lambda r: ((led[r] + 1) / ranking.weights[r], r))
        return [b for b in candidates if ranking.racks.get(b) == rack]

    def better(self, ranking: RackRanking, here: int, candidates: Sequence[int]) -> Sequence[int]:
        """The candidates in a rack that would lead less beside its weight than the rack of ``here`` does now."""
        led, weights = self._led[ranking], ranking.weights
        rack = ranking.racks.get(here)
        if rack not in led:
            return ()
        # Whoever is well may all be in racks without a weight, or where nobody knows: then nothing is to be gained.
        weighed = led.keys() - {rack}
        others = [b for b in self.wanting(ranking, candidates) if ranking.racks.get(b) in weighed]
        if not others:
            return ()
        other = ranking.racks[others[0]]
        return others if (led[other] + 1) / weights[other] < led[rack] / weights[rack] else ()

    def uneven(self) -> Iterator[RackRanking]:
        """The rankings whose racks lead visibly more or less than their share."""
        return (ranking for ranking in self._led if self.is_uneven(ranking))

    def is_uneven(self, ranking: RackRanking) -> bool:
        """Whether a rack is off its share by two leaders and a tenth of it, at least."""
        led, whole = self._led[ranking], sum(ranking.weights.values())
        total = sum(led.values())
        for rack, weight in ranking.weights.items():
            share = total * weight / whole
            if abs(led[rack] - share) >= max(2, math.ceil(UNEVEN_SHARE * share)):
                return True
        return False

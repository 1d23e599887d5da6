"""Harm history: what past disturbances in this cluster lost in all, and the limit that they recommend.

In: what each broker's probes have lost so far, reconcile by reconcile. Out: the factor by which the limit of harm
differs from the cost of a move. It is kept in the policy's status and survives a take-over. The argument is in
docs/internals/harm.md: a ski rental with advice, within bounds that hold whatever the advice is worth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bellwether.core.settings.harm import LARGEST_LOST_SECONDS


class HarmCause(StrEnum):
    """What disturbs a broker's clients; disturbances of one cause last about as long as each other."""

    REACHABILITY = "Reachability"
    STORAGE = "Storage"


FACTORS = (1.0, 0.5, 2.0)
"""The limit is one of these multiples of the cost; where two are as good, the first.

Whichever is chosen, clients lose at most ``1 + max(f, 1 / f)`` = 3 times the least in one outage.
"""

EPISODES_KEPT = 16
"""So many past episodes of a cause count: more change nothing in the simulated months, fewer follow chance."""

PRIOR: Mapping[HarmCause, tuple[float, ...]] = {
    HarmCause.REACHABILITY: (2 / 3, 20.0),
    HarmCause.STORAGE: (2 / 3, 2 / 3, 4 / 3),
}
"""Assumed episodes, as multiples of the cost, counted together with those seen.

A listener that fails may be back soon or fail for minutes (factor 1), a disk mostly hangs for a few seconds (factor 2).
Two or three long faults outweigh them.
"""


@dataclass(frozen=True, slots=True)
class LimitFactor:
    """Limit of harm as a multiple of the cost of a move. ``episodes`` is how many it was learned from; 0: assumed."""

    factor: float = 1.0
    episodes: int = 0

    def words(self, cause: HarmCause, limit_seconds: float) -> str:
        """The limit and its reason, for a message; empty where the limit is the cost itself."""
        if self.factor == 1.0:
            return ""
        what = "outages of listeners" if cause is HarmCause.REACHABILITY else "slowdowns of disks"
        usual = "cost clients more than a move" if self.factor < 1.0 else "end before that"
        where = "in this cluster usually" if self.episodes else "are assumed to"
        return f"the limit is {limit_seconds:g} s, as {what} {where} {usual}"


AS_THE_COST = LimitFactor()

SHORTEST_SECONDS = 1.0
"""Episodes that lost less are not kept: no limit is below that."""


@dataclass(frozen=True)
class HarmHistory:
    """Seconds lost in past episodes, by cause, the oldest first; and the largest figure of those under way.

    An episode goes on while its broker is demoted, as probing does, so its whole length is known. One under way whose
    figure is None will not be kept.
    """

    ended: Mapping[HarmCause, tuple[float, ...]] = field(default_factory=dict)
    under_way: Mapping[tuple[int, HarmCause], float | None] = field(default_factory=dict)

    def after(self, seen: Mapping[int, Iterable[tuple[HarmCause, float | None]]]) -> HarmHistory:
        """The history after a reconcile. ``seen`` holds for each broker what its probes lost so far, by cause.

        0 ends an episode; None is harm of another cause. A cause that is missing is not known at present; a broker that
        is missing is gone. When clients of several brokers lose requests by one kind of cause at the same time, it is
        probably shared, and nothing is learned from it. A broker that is down or in maintenance shares none.
        """
        ended, under_way = dict(self.ended), {key: lost for key, lost in self.under_way.items() if key[0] in seen}
        losing = {(broker, cause) for broker, causes in seen.items() for cause, lost in causes if lost}
        for broker, causes in seen.items():
            for cause, lost in causes:
                key = broker, cause
                if lost == 0.0:
                    total = under_way.pop(key, None)
                    if total is not None and total >= SHORTEST_SECONDS:
                        ended[cause] = (*ended.get(cause, ()), total)[-EPISODES_KEPT:]
                elif lost is None:
                    under_way[key] = None
                else:
                    before = under_way.get(key, 0.0)
                    under_way[key] = None if before is None else max(before, min(lost, LARGEST_LOST_SECONDS))
        for cause in HarmCause:
            together = [key for key in under_way if key[1] is cause and (key in losing or under_way[key] is not None)]
            if len(together) > 1:
                under_way.update(dict.fromkeys(together))
        return self if (ended, under_way) == (self.ended, self.under_way) else HarmHistory(ended, under_way)

    def limit_factor(self, cause: HarmCause, price: float) -> LimitFactor:
        """The factor with which clients would have lost least in the past episodes and the assumed ones.

        ``price`` is what moving away and back costs, in seconds.
        """
        past = self.ended.get(cause, ())
        episodes = (*(price * times for times in PRIOR[cause]), *past)

        def regretted(factor: float) -> float:
            limit = factor * price
            return sum(lost if lost < limit else limit + price for lost in episodes)

        return LimitFactor(min(FACTORS, key=regretted), len(past))

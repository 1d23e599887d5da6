"""Evidence of a plan: how much of the cluster, and how long, was measured before the plan was made.

In: the account that the loads job writes (``_loads.json``) and the counts of a problem's partitions. Out: a value for
``plan.json``, the first line of terminal, page and status, and what is missing for a proposal. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bellwether.core.settings.rebalance import Rebalance
from bellwether_load.plan.forecast import WEEK


@dataclass(frozen=True, slots=True)
class Evidence:
    """``since`` and ``until``: first and last sample, None without any. ``hours``: those of the week that are known.

    ``share``: of the bytes in the cluster's logs those of partitions with a measured load, 0 to 1; of the partitions
    where no log size is known.
    """

    since: datetime | None
    until: datetime | None
    hours: int
    share: float

    @classmethod
    def of(cls, account: Mapping[str, Any], partitions: int, without_load: int) -> Evidence:
        """What the account of loads gives for a problem with so many partitions, some of them without a load row."""
        since, until = (_time(account.get(name)) for name in ("since", "until"))
        hours = min(WEEK, _count(account, "hours"))
        return cls(since, until, hours, measured_share(account, partitions, without_load))

    def period(self) -> str:
        """The first and the last measured day, or the times where that is one day."""
        if self.since is None or self.until is None:
            return "nothing"
        first, last = (at.astimezone(UTC) for at in (self.since, self.until))
        if last - first >= timedelta(days=2):
            return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
        return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"

    def line(self, partitions: int, without_load: int, without_consumption: int) -> str:
        """The first line of everything that shows the plan."""
        measured = f"{partitions - without_load:,} of {partitions:,} partitions"
        said = (
            f"measured {self.period()}, {self.hours} of {WEEK} hours, {measured}, {_percent(self.share)} of the bytes"
        )
        if without_consumption:
            said += f"; the consumption of {without_consumption:,} partitions is not measured"
        return said

    def missing(self, least: Rebalance, partitions: int, without_load: int) -> str:
        """What is missing for a proposal, and when it will be there; empty where enough is measured."""
        said = []
        if (short := least.minimum_hours - self.hours) > 0:
            then = "" if self.until is None else f", at the earliest {_hour(self.until + timedelta(hours=short))}"
            said.append(f"{self.hours} of {least.minimum_hours} hours measured (enough after {short} more{then})")
        if self.share * 100 < least.minimum_measured_percent:
            said.append(
                f"{_percent(self.share)} of the bytes measured, {least.minimum_measured_percent} % needed"
                f" ({without_load:,} of {partitions:,} partitions have no measured load: enough two samples after the"
                " sampler reaches their leaders)"
            )
        return "; ".join(said)


def measured_share(account: Mapping[str, Any], partitions: int, without_load: int) -> float:
    """Share of the bytes that is in measured partitions.

    A partition that was never sampled counts as one of mean size; where no size is known, all count alike.
    """
    if not partitions:
        return 1.0
    sampled, loads = _count(account, "partitions"), _count(account, "loads")
    known, few = _count(account, "logBytes"), _count(account, "logBytesWithoutLoad")
    if not sampled or not known + few:
        return 1 - without_load / partitions
    measured = known * min(1.0, (partitions - without_load) / loads) if loads else 0.0
    thin = min(without_load, max(0, sampled - loads))
    missed = few * thin / (sampled - loads) if thin else 0.0
    missed += (without_load - thin) * (known + few) / sampled
    return measured / (measured + missed) if measured + missed else 0.0


def _count(account: Mapping[str, Any], name: str) -> int:
    value = account.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _percent(share: float) -> str:
    """Rounded down, so that 100 % is all of it."""
    return f"{math.floor(share * 1000 + 1e-9) / 10:g} %"


def _hour(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

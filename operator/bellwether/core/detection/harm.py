"""Harm counter: what clients of a broker have lost, as a leaky sum over the requests of one source.

In: the share of requests that failed or missed their latency objective, slice by slice. Out: the sum in seconds of
lost service, whether the source passes or fails, and whether that is to be reported. Pure values; probers count with
it. The leak makes it a CUSUM (Page 1954), so bursts, flapping and slowly growing faults add up, and noise does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import exp

from bellwether.core.settings.harm import (
    ALLOWANCE,
    EPISODE_OVER_SECONDS,
    LARGEST_LOST_SECONDS,
    PERIOD_SECONDS,
    RECOVERED_SECONDS,
    REPORT_RATIO,
    REPORT_SECONDS,
    REPORTED_FROM_SECONDS,
    SHARE_SECONDS,
    TURNS_REPORTED_BELOW_SECONDS,
)
from bellwether.core.signals import Harm, Reading

PROBES_LOST = "probes lost"
"""How a message begins to say what the requests of probes lost. What clients lost, only they know."""


def lost_words(lost_seconds: float, earlier_seconds: float = 0.0) -> str:
    """What probes lost, for a message; a counter at its limit says so, as the true figure may be larger.

    What is left of earlier failures is said apart, where a person would notice it.
    """
    if lost_seconds >= LARGEST_LOST_SECONDS:
        return f"at least {LARGEST_LOST_SECONDS:g} s (the counter's limit)"
    left = min(earlier_seconds, lost_seconds)
    apart = f" ({left:.1f} s of it in failures before this one)" if left >= REPORTED_FROM_SECONDS else ""
    return f"{lost_seconds:.1f} s{apart}"


@dataclass(frozen=True, slots=True)
class HarmCounter:
    """One source's harm up to now.

    A request counts as bad from the moment at which it is late, not when its answer or its timeout arrives: count a
    slice with share 1 as soon as the objective has passed, and then for as long as nothing else is known.

    When it turned between a good request and a bad one is not known: half of that slice counts, at both ends of a
    fault. Counted as a whole at its beginning, a fault as short as a period would count for up to twice its length.

    ``reading`` is Failing at a bad request from REPORTED_FROM_SECONDS of new harm on, and Passing after
    RECOVERED_SECONDS of allowance.
    ``rising`` and ``quiet`` are the one-sided sums that decide it, ``rising`` without a cap, so that what short bursts
    lose beyond the allowance adds up; ``since`` is when ``lost_seconds`` left zero, ``counted_until`` the end of the
    last slice, ``last_share`` the share of bad requests at that moment. ``earlier_seconds`` is what was left of earlier
    failures when it last turned to Failing.
    """

    lost_seconds: float = 0.0
    share: float = 0.0
    since: datetime | None = None
    reading: Reading = Reading.UNKNOWN
    reading_since: datetime | None = None
    rising: float = 0.0
    quiet: float = 0.0
    counted_until: datetime | None = None
    last_share: float | None = None
    earlier_seconds: float = 0.0

    @property
    def ongoing(self) -> bool:
        """Whether the last request was bad."""
        return self.last_share is not None and self.last_share > ALLOWANCE

    def after(self, share: float, seconds: float, now: datetime) -> HarmCounter:
        """The counter after a slice of ``seconds`` that ends ``now``; by then that share of requests is bad."""
        share = min(max(share, 0.0), 1.0)
        before = share if self.last_share is None else self.last_share
        # Two requests begin at most two periods apart; what is longer is one long request, bad from its start.
        net = (share - ALLOWANCE) * seconds - (share - before) / 2 * min(seconds, 2 * PERIOD_SECONDS)
        quiet = min(max(0.0, self.quiet - (share - ALLOWANCE) * seconds), EPISODE_OVER_SECONDS)
        lost = min(max(0.0, self.lost_seconds + net), LARGEST_LOST_SECONDS)
        if quiet >= EPISODE_OVER_SECONDS:
            lost = 0.0
        since = None if not lost else self.since if self.since is not None else now - timedelta(seconds=seconds)
        weight = 1 - exp(-seconds / SHARE_SECONDS)
        counted = replace(
            self,
            lost_seconds=lost,
            share=self.share + (share - self.share) * weight,
            since=since,
            rising=max(0.0, self.rising + net),
            quiet=quiet,
            counted_until=now,
            last_share=share,
        )
        if self.reading is not Reading.FAILING and counted.ongoing and counted.rising >= REPORTED_FROM_SECONDS:
            return counted._turned(Reading.FAILING, now)
        if self.reading is not Reading.PASSING and quiet >= RECOVERED_SECONDS:
            return counted._turned(Reading.PASSING, now)
        return counted

    def unmeasured(self, now: datetime) -> HarmCounter:
        """Nothing is known any more: the source itself cannot measure. Harm is not carried across such a gap."""
        if self.reading is Reading.UNKNOWN and self.reading_since is not None:
            return HarmCounter(reading_since=self.reading_since)
        return HarmCounter(reading_since=now)

    @property
    def harm(self) -> Harm | None:
        """The figures to report; None while nothing is lost."""
        if self.since is None:
            return None
        earlier = min(self.earlier_seconds, self.lost_seconds) if self.reading is Reading.FAILING else 0.0
        return Harm(round(self.lost_seconds, 1), round(self.share, 2), self.since, self.ongoing, round(earlier, 1))

    def differs(self, posted: HarmCounter | None, seconds_since: float) -> bool:
        """Whether to report again, ``seconds_since`` after ``posted`` was reported. Never true for a source at rest."""
        if posted is None or posted.reading is not self.reading:
            return True
        now, then = self.lost_seconds, posted.lost_seconds
        if not now:
            return then > 0
        if now < REPORTED_FROM_SECONDS:
            return False
        turned = self.ongoing is not posted.ongoing and now < TURNS_REPORTED_BELOW_SECONDS
        if turned and not self.ongoing:
            return True
        if seconds_since < REPORT_SECONDS:
            return False
        if turned or then < REPORTED_FROM_SECONDS or now == LARGEST_LOST_SECONDS > then:
            return True
        return now >= then * REPORT_RATIO or now <= then / REPORT_RATIO

    def _turned(self, reading: Reading, now: datetime) -> HarmCounter:
        """The same sums under a new reading; the sum that would turn it back starts again."""
        if reading is Reading.FAILING:
            earlier = max(0.0, self.lost_seconds - self.rising)
            return replace(self, reading=reading, reading_since=now, quiet=0.0, earlier_seconds=earlier)
        return replace(self, reading=reading, reading_since=now, rising=0.0)

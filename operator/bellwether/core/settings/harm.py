"""Constants of harm counting, and the objectives that requests are measured against.

``core.detection.harm`` counts by them, probers and the detection package use the objectives. Only ``Objectives`` and
the tolerance are settings; the constants are given with their reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from bellwether.core.settings.setting import Setting

ALLOWANCE = 0.1
"""Share of bad requests that is not counted, and the rate at which counted harm fades.

It is the price of one second with displaced leaders, as a share of a second without service: the other brokers carry
more, and caches are cold. A fault that costs clients less than this is not worth a demotion however long it lasts.
"""

LARGEST_LOST_SECONDS = 600.0
"""Harm is not counted beyond this. It is far above the cost of every move, and it bounds what status can contain."""

PERIOD_SECONDS = 1.0
"""Every source measures once in this time while all is well."""

REPORTED_FROM_SECONDS = 1.0
"""Harm below this is not reported: one bad request of a prober that sends one each second stays below it."""

RECOVERED_SECONDS = 0.5
"""A source passes again after so much allowance without harm: 5 s without a bad request."""

EPISODE_OVER_SECONDS = 6.0
"""An episode is over, and its harm forgotten, after so much allowance without harm: a minute without a bad request.

By then ``EPISODE_OVER_SECONDS`` of harm have faded anyway. It only shortens how long a larger harm is remembered.
"""

REPORT_RATIO = 1.3
"""Harm is reported again when it has changed by this factor: 25 reports from the smallest to the largest figure."""

TURNS_REPORTED_BELOW_SECONDS = 6.0
"""Below this it is also reported that requests are good again, or bad again: a move cures only harm that goes on.

Above it, waiting for the next bad request would save little of a move, and a listener that flaps would be reported at
each turn for as long as it flaps.
"""

NOTICEABLE_SHARE = 1 / 3
"""Share of the cost of a move from which on a broker is Suspect."""

SLOW_SYNC_SECONDS = 0.5
"""A sync that takes so long makes moving leaders a fault: a moved leader waits for one on every member of its ISR."""

STALLED_SECONDS = 2.0
"""An append that takes so long stalls the broker: nothing that leads on that disk is served in time."""

FENCED_WITHIN_SECONDS = 20.0
"""A broker that leads and has not been fenced although an append takes so long is not fenced for it any more.

Kafka fences it after 9 to 11 s (broker.session.timeout.ms is 9 s) where its metadata log hangs with its data; where
that log is on another device the broker keeps its heartbeats.
"""

LEADING_LOST_SECONDS = 0.4
"""With appends that take so long acks=all is lost on what the broker leads as well, so demotion adds nothing to that.

Measured with 500 ms (docs/internals/cures.md); with 80 ms nothing is lost there.
"""

DISPUTED_RATIO = 4
"""A move costs this multiple while a vantage still reaches a broker that a quorum cannot reach.

Two broken paths at once are more frequent than a broker that only some can reach, and then a move saves clients
nothing: if it helps in one of four disputes, a cure costs four moves.
"""

SHARED_RATIO = 2.0
"""A broker whose clients lose less than this multiple of what its peers' clients lose shares the cause with them.

Reported figures differ by up to REPORT_RATIO from each other although the harm is the same.
"""

REPORT_SECONDS = 0.5
"""A source reports a changed figure at most once in this time; a changed reading, or the end of harm, at once."""

RETRY_SHARE = 0.5
"""A vantage probes a broker that failed again after this share of its period, to know the harm sooner."""

WRITE_AGAIN_SHARE = 0.25
"""The same for a log directory, after two bad writes in a row: at most four appends of 32 KiB in a second.

Not after one: a disk that is slow for 1 s in every 10 would be measured more often in that second than in the others.
"""

SHARE_SECONDS = 10.0
"""The share of bad requests is a mean over about this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """Latency objectives: a request that takes longer counts as lost for its clients."""

    produce_milliseconds: Annotated[int, Setting(1, 60000)] = 50
    """Latency in milliseconds up to which a produce request, or a write to disk, is good."""
    fetch_milliseconds: Annotated[int, Setting(1, 60000)] = 50
    """Latency in milliseconds up to which a fetch request, or a read from disk, is good."""

"""Judge each broker by the series of one Prometheus query.

In: samples (labels, value), the rule, the brokers that exist and what they advertise. Out: a ``Judgement`` for each
broker, a ``RuleState`` that counts them, and the ``Signal`` to report. Called by ``prometheus_probe``. A value that
cannot be pinned to one broker, or is no figure, is never bad: it is no evidence.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bellwether.core.model.broker_identity import Hosts, Named, match
from bellwether.core.settings.source_settings import Comparison, PrometheusRule
from bellwether.core.signals import Reading, Signal, SignalType
from bellwether.probes.result_window import Streak, apart, signal_of

COMPARE = "compare metric names and selector with what the exporter has"
NO_SERIES = f"the query returns no series at all: {COMPARE}"
# Another problem, or a figure that has more than doubled or halved, is news at most this often.
FIGURE_NEWS_SECONDS = 60.0
_FIGURE_NEWS_RATIO = 2.0
# ... compared above this share of the threshold: jitter far from it is no news.
_FLOOR_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Figures:
    """One query's values by broker, why others have none, and values that match no broker (``kind -> sentence``)."""

    values: Mapping[int, float] = field(default_factory=dict)
    unusable: Mapping[int, str] = field(default_factory=dict)
    odd: Mapping[str, str] = field(default_factory=dict)
    ordered: tuple[float, ...] = ()
    """All values, smallest first."""
    settled: Mapping[str, int] = field(default_factory=dict)
    """As ``Matches.settled``."""

    def peers(self, broker: int) -> float | None:
        """The median of the other brokers' values; None without any."""
        rest = len(self.ordered) - 1
        if rest < 1:
            return None
        # Sorted once for all brokers: a thousand of them would otherwise sort a thousand times.
        own = bisect_left(self.ordered, self.values[broker])
        low, high = (self.ordered[k if k < own else k + 1] for k in ((rest - 1) // 2, rest // 2))
        return low if low == high else low / 2 + high / 2


@dataclass(frozen=True, slots=True)
class Judgement:
    """One broker's value in one answer. ``bad`` None means that it could not be judged, for ``problem``."""

    bad: bool | None
    value: float | None = None
    peers: float | None = None
    problem: str = ""


def figures(
    samples: Iterable[tuple[Mapping[str, str], float | None]],
    rule: PrometheusRule,
    hosts: Hosts,
    settled: Mapping[str, int] | None = None,
) -> Figures:
    """Sort the series of an answer by broker. ``settled`` is that of the last answer with the same brokers."""
    series = [(Named.of_labels(labels, rule.broker_label), value) for labels, value in samples]
    matches = match([one for one, _ in series], hosts, settled)
    found: dict[int, list[tuple[Named, float | None]]] = {}
    odd: dict[str, str] = {}
    for (one, value), matched in zip(series, matches.of, strict=True):
        if matched.broker is None:
            odd.setdefault(matched.kind, matched.problem)
        else:
            found.setdefault(matched.broker, []).append((one, value))
    if not series and not rule.alerts:
        return Figures({}, dict.fromkeys(sorted(hosts), NO_SERIES), {"empty": NO_SERIES}, settled=matches.settled)
    values: dict[int, float] = {}
    unusable: dict[int, str] = {}
    nobodys = odd.get("conflict") or odd.get("unmatched", "")
    for broker in sorted(hosts):
        several = found.get(broker, [])
        if rule.alerts and (several or not nobodys):
            # Several alerts of one broker are one, but not those of two pods that claim to be it. A series that is
            # matched to no broker may be about any that has none, unless it names another node.
            pods = {one.pods[0] for one, _ in several if one.pods}
            several = several if len(pods) > 1 else several[:1] or [(Named(""), 0.0)]
        problem = _problem(several, rule, nobodys)
        if problem:
            unusable[broker] = problem
        else:
            values[broker] = float(several[0][1] or 0.0)
    return Figures(values, unusable, odd, tuple(sorted(values.values())), matches.settled)


def _problem(several: list[tuple[Named, float | None]], rule: PrometheusRule, unmatched: str) -> str:
    """Why what was found for a broker is not one figure; ``unmatched``: why some series is no broker's."""
    if not several:
        return f"the query returns nothing for this broker{f', but {unmatched}' if unmatched else ''}"
    if len(names := sorted({one.text for one, _ in several})) > 1:
        return f"the query returns series of {' and '.join(names[:3])} for this broker: limit it to one of them"
    if len(several) > 1:
        return f"the query returns {len(several)} series for this broker: aggregate it to one"
    ((_, value),) = several
    if value is None:
        return "the query's value for this broker is not a number"
    if math.isnan(value):
        return "the query's value for this broker is NaN: there was nothing to divide"
    if math.isinf(value):
        return "the query's value for this broker is infinite"
    if value < 0 <= rule.threshold:
        return "the query's value for this broker is negative"
    return ""


def judge(broker: int, found: Figures, rule: PrometheusRule) -> Judgement:
    """Hold one broker's value against the threshold, and against its peers when the rule asks for that."""
    if broker in found.unusable:
        return Judgement(None, problem=found.unusable[broker])
    value = found.values[broker]
    peers = found.peers(broker)
    if not _beyond(value, rule):
        return Judgement(False, value, peers)
    if rule.peer_ratio == 0:
        return Judgement(True, value, peers)
    if peers is None:
        return Judgement(None, value, problem="no other broker has a value to compare with")
    if peers < 0:
        return Judgement(None, value, peers, "the median of the other brokers is negative: no ratio")
    return Judgement(_apart(value, peers, rule), value, peers)


def _beyond(value: float, rule: PrometheusRule) -> bool:
    return value > rule.threshold if rule.comparison is Comparison.ABOVE else value < rule.threshold


def _apart(value: float, peers: float, rule: PrometheusRule) -> bool:
    if rule.comparison is Comparison.ABOVE:
        return value >= rule.peer_ratio * peers
    return value * rule.peer_ratio <= peers


@dataclass(frozen=True, slots=True)
class RuleState:
    """What one rule has found of one broker up to now."""

    streak: Streak = field(default_factory=Streak)
    value: float | None = None
    peers: float | None = None
    problem: str = ""

    def after(self, seen: Judgement, rule: PrometheusRule, now: datetime) -> RuleState:
        """What is known after one more answer."""
        if seen.bad is None:
            return self.lost(seen.problem, now)
        return RuleState(self.streak.seen(not seen.bad, now, rule), seen.value, seen.peers)

    def lost(self, problem: str, now: datetime) -> RuleState:
        """The state without evidence: counting restarts."""
        return RuleState(self.streak.lost(now), problem=problem)

    def signal(self, broker: int, rule: PrometheusRule) -> Signal | None:
        """The signal to report; None while the broker has not been judged."""
        text = self.message(rule)
        return signal_of(self.streak, broker, SignalType.PROMETHEUS, rule.name, message=text, value=self.value)

    def message(self, rule: PrometheusRule) -> str:
        """One sentence for a person, with figures as they are now."""
        if self.value is None:
            return self.problem
        text = self._figures(self.value, rule)
        return f"too few values yet: {text}" if self.streak.reading is Reading.UNKNOWN else text

    def _figures(self, value: float, rule: PrometheusRule) -> str:
        beyond, side = _beyond(value, rule), str(rule.comparison).lower()
        text = f"{value:.4g} is {side if beyond else f'not {side}'} {rule.threshold:g}"
        if self.peers is None:
            return text
        peers = f"the other brokers' median of {self.peers:.4g}"
        if not beyond or rule.peer_ratio == 0:
            return f"{text}, compared with {peers}"
        asked = f"{rule.peer_ratio} times {side} {peers}"
        return f"{text} and at least {asked}" if _apart(value, self.peers, rule) else f"{text} but not {asked}"

    def differs(self, posted: RuleState | None, seconds_since: float, rule: PrometheusRule) -> bool:
        """Whether this differs enough from ``posted``, which was posted so many seconds ago."""
        if posted is None or self.streak.reading is not posted.streak.reading:
            return True
        if seconds_since < FIGURE_NEWS_SECONDS:
            return False  # an error message that changes each time must not cause a write each time
        if rule.shows_acks or self.problem != posted.problem or self.value is None or posted.value is None:
            return self.problem != posted.problem
        floor = max(abs(rule.threshold) * _FLOOR_SHARE, 1e-9)
        return apart(abs(self.value), abs(posted.value), floor, _FIGURE_NEWS_RATIO)

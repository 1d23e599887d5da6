"""Canary probe: produce and fetch one small record per broker and period, from one vantage.

In: a client that sends requests, and the partition of each broker. Out: signals, posted when they change. Called by
``bellwether probe canary``. A broker has at most one request of each kind under way; one that is late counts while it
is late. Partitions have one replica, so a demoted broker still leads its own, and its recovery is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import structlog

from bellwether.core.settings.detection import Canary
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Signal
from bellwether.ports.canary import FETCH, PRODUCE, CanaryClient, CanaryResult
from bellwether.ports.clock import Clock
from bellwether.probes.canary.canary_state import CanaryState, RequestState, late, objective
from bellwether.probes.measuring_thread import MeasuringThread
from bellwether.probes.reachability.reachability_state import milliseconds
from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics

_TICK_SECONDS = 0.02
# A request that is late is counted again after this time.
_SLICE_SECONDS = 0.25
# A tick that is late by so much means that this process did not run.
_AWAY_SECONDS = 0.015
# A consumer that has just started misses the first records: until one has arrived, so many are not fetched.
_UNSEEN_RECORDS = 5
# The first requests of so many brokers are spread over one period.
_SPREAD = 100


@dataclass(slots=True)
class _Requests:
    """Requests of one kind to one broker; times on the monotonic clock. ``away`` is read at the start of a request."""

    counted_until: float
    began: float | None = None
    away: float = 0.0


@dataclass(slots=True)
class _Target:
    """One broker; ``partition`` is None if the topic has none for it.

    ``acknowledged`` and ``arrived`` are the last offsets that were produced and fetched, ``records`` counts those that
    were acknowledged. ``refused``: the consumer said once that it cannot fetch, as without a right, and nothing has
    arrived since.
    """

    broker: int
    partition: int | None
    due: float
    requests: dict[str, _Requests]
    acknowledged: int = -1
    arrived: int = -1
    records: int = 0
    refused: bool = False
    state: CanaryState = field(default_factory=CanaryState)
    posted: CanaryState | None = None
    posted_at: float = 0.0


class CanaryProbe(MeasuringThread):
    """The requests to all brokers of one cluster. ``post`` is called with changed signals, on the probe's thread."""

    def __init__(
        self,
        source: str,
        post: Callable[[Signal], None],
        forget: Callable[[int], None],
        clock: Clock,
        metrics: CanaryMetrics,
        *,
        period_seconds: float = Canary.period_seconds,
    ) -> None:
        super().__init__("canary", clock)
        self._source = source
        self._post = post
        self._forget = forget
        self._metrics = metrics
        self._period = period_seconds
        self._objectives = Objectives()
        self._client: CanaryClient | None = None
        self._log = structlog.get_logger(__name__).bind(vantage=source)
        self._targets: dict[int, _Target] = {}
        self._by_partition: dict[int, _Target] = {}
        self._wanted: tuple[CanaryClient | None, Mapping[int, int], frozenset[int], str] = (None, {}, frozenset(), "")
        self._followed: object = self._wanted
        self._away, self._last_round = 0.0, clock.monotonic()

    def configure(self, objectives: Objectives) -> None:
        """Use these objectives from the next result on."""
        self._objectives = objectives

    def refresh(
        self, client: CanaryClient | None, partitions: Mapping[int, int], brokers: frozenset[int], trouble: str = ""
    ) -> None:
        """Measure these ``brokers`` by these partitions from now on. ``trouble`` says why there is no client."""
        self._wanted = client, partitions, brokers, trouble

    def states(self) -> Mapping[int, CanaryState]:
        """What is known of each broker."""
        return {target.broker: target.state for target in list(self._targets.values())}

    def repeat(self) -> None:
        """Post every current signal again, changed or not."""
        for target in list(self._targets.values()):
            target.posted = None

    def run_round(self) -> None:
        """Take results, count what is late, and start what is due. Called again and again by the probe's thread."""
        self._beat = self._clock.monotonic()
        self._follow()
        client = self._client
        results = client.results(_TICK_SECONDS) if client is not None else []
        if client is None:
            self._stop.wait(_TICK_SECONDS)
        now = self._clock.monotonic()
        self._away += max(0.0, now - self._last_round - _TICK_SECONDS - _AWAY_SECONDS)
        self._last_round = now
        for result in results:
            self._take(result, now)
        for target in list(self._targets.values()):
            if target.partition is None and target.posted is None:
                self._report(target, now)
            elif client is not None and target.partition is not None:
                self._tick(client, target, target.partition, now)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.run_round()

    def _follow(self) -> None:
        """Measure what the last ``refresh`` names."""
        if self._wanted is self._followed:
            return
        self._followed = self._wanted
        client, partitions, brokers, trouble = self._wanted
        now = self._clock.monotonic()
        new_client = client is not self._client
        if new_client:
            self._client = client
            self._drop(list(self._targets))
        for broker in sorted(set(self._targets) - brokers):
            self._drop([broker])
            self._forget(broker)
        new = sorted(brokers - set(self._targets))
        for number, broker in enumerate(new):
            due = now + number * self._period / max(len(new), _SPREAD)
            requests = {kind: _Requests(now) for kind in (PRODUCE, FETCH)}
            self._targets[broker] = _Target(broker, partitions.get(broker), due, requests)
        for broker, target in self._targets.items():
            if target.partition != partitions.get(broker):
                target.partition = partitions.get(broker)
                target.acknowledged, target.arrived, target.records, target.refused = -1, -1, 0, False
            if target.partition is None and (why := trouble or _missing(broker)) != target.state.trouble:
                self._log.warning("canary_not_measured", broker=broker, reason=why)
                target.state = target.state.unmeasured(why, self._clock.now())
                self._report(target, now)
        consumed = frozenset(self._by_partition)
        self._by_partition = {t.partition: t for t in self._targets.values() if t.partition is not None}
        if client is not None and (new_client or consumed != frozenset(self._by_partition)):
            client.consume(self._by_partition)

    def _drop(self, brokers: list[int]) -> None:
        for broker in brokers:
            del self._targets[broker]
            self._metrics.gone(broker)

    def _tick(self, client: CanaryClient, target: _Target, partition: int, now: float) -> None:
        """Count what is late, and produce if it is due and nothing is under way."""
        for kind, requests in target.requests.items():
            if requests.began is not None:
                self._count_late(target, kind, requests, now - requests.began, now)
        if now >= target.due and target.requests[PRODUCE].began is None:
            target.due = max(target.due + self._period, now)
            self._begin(target.requests[PRODUCE], now)
            client.produce(partition)

    def _begin(self, requests: _Requests, now: float) -> None:
        requests.began, requests.away = now, self._away

    def _count_late(self, target: _Target, kind: str, requests: _Requests, waited: float, now: float) -> None:
        counted = requests.counted_until >= now - waited + self._period  # while it was late
        if counted and now - requests.counted_until < _SLICE_SECONDS:
            return
        if late(kind, waited - (self._away - requests.away), self._objectives):
            problem = f"no answer within {milliseconds(objective(kind, self._objectives))}"
            known = target.state.of(kind).failed(problem, self._slice(requests, now - waited, now), self._clock.now())
            self._learn(target, known, now)

    def _take(self, result: CanaryResult, now: float) -> None:
        target = self._by_partition.get(result.partition)
        if target is None:
            return
        requests, offset = target.requests[result.kind], result.offset
        if result.kind == PRODUCE and requests.began is not None:
            if offset is not None:
                target.acknowledged, target.records = offset, target.records + 1
                fetches, seen = target.requests[FETCH], target.arrived >= 0 or target.records > _UNSEEN_RECORDS
                if fetches.began is None and seen and not target.refused:
                    self._begin(fetches, now)
                    if target.arrived >= offset:  # before its acknowledgement was seen
                        self._end(target, CanaryResult(result.partition, FETCH, 0.0), now)
            self._end(target, result, now)
        elif result.kind == FETCH:
            target.arrived = max(target.arrived, offset if offset is not None else -1)
            target.refused = result.own_trouble
            if result.own_trouble:
                self._end(target, result, now)
            elif requests.began is not None and (result.problem or target.arrived >= target.acknowledged):
                self._end(target, replace(result, seconds=now - requests.began), now)

    def _end(self, target: _Target, result: CanaryResult, now: float) -> None:
        """A request has ended: count its latency, or its failure."""
        requests, known = target.requests[result.kind], target.state.of(result.kind)
        began = requests.began if requests.began is not None else now
        away, requests.began = self._away - requests.away, None
        outcome = "unmeasured" if result.own_trouble else "failed" if result.problem else "ok"
        self._metrics.requests.add(target.broker, result.kind, outcome, seconds=result.seconds)
        covered, moment = self._slice(requests, began, now), self._clock.now()
        slow = late(result.kind, result.seconds, self._objectives)
        if result.own_trouble:
            known = known.unmeasured(result.problem, moment)
        elif slow and not late(result.kind, result.seconds - away, self._objectives):
            return  # this process did not run meanwhile: no evidence
        elif result.problem:
            known = known.failed(result.problem, covered, moment)
        else:
            known = known.answered(result.seconds, slow, covered, moment)
        self._learn(target, known, now)

    def _slice(self, requests: _Requests, began: float, now: float) -> float:
        """Seconds that a request represents and that are not counted yet: its period, or longer while it lasts.

        After a pause, no more than two periods.
        """
        until = max(now, began + self._period)
        seconds, requests.counted_until = until - max(requests.counted_until, began), until
        return min(max(seconds, 0.0), 2 * self._period)

    def _learn(self, target: _Target, known: RequestState, now: float) -> None:
        target.state = target.state.with_requests(known)
        self._report(target, now)

    def _report(self, target: _Target, now: float) -> None:
        signal = target.state.signal(target.broker, self._source, self._objectives)
        if signal is None:
            return
        self._metrics.judged(signal)
        if target.state.differs(target.posted, now - target.posted_at):
            target.posted, target.posted_at = target.state, now
            self._post(signal)


def _missing(broker: int) -> str:
    return f"the canary topic has no partition with broker {broker} as its only replica: add one"

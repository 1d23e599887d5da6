"""Inputs of a Healthy verdict, compared from one reconcile to the next to skip re-judging unchanged brokers.

In: the scene of a turn and the verdicts of the last one. Out: a broker's grounds, as a value. Called by ``verdicts``,
which keeps them in each verdict that time alone cannot change: where the grounds are the same, so is the verdict.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from bellwether.core.detection.findings import SignalIndex
from bellwether.core.detection.reachability import no_external_clients
from bellwether.core.detection.storage import milliseconds
from bellwether.core.settings.detection import Detection

_WORD = attrgetter(
    "type", "source", "reading", "since", "control", "latency_seconds", "message", "usual_seconds", "value"
)
"""All that a signal says. Its age is left out: of that only counts which limits it has passed."""


class SharedInputs(NamedTuple):
    """What concerns all brokers of a turn alike. ``limits`` are the seconds after which some signal is stale."""

    detection: Detection
    vantages: tuple[str, ...]
    blind: frozenset[str]
    limits: tuple[float, ...]


class VerdictInputs(NamedTuple):
    """What a registered, unfenced and undemoted broker is judged by, but for time and its former verdict.

    ``peers`` is the median latency of its peers' disks as a fact tells it: where a disk is not slow, nothing else is
    made of it. ``words`` are its signals, with the number of limits that the age of each has passed, -1 where it never
    was heard of.
    """

    common: SharedInputs
    peers: str
    quiet: bool
    words: tuple[tuple[object, int], ...]


def shared_inputs(scene: SignalIndex, former: Iterable[VerdictInputs]) -> SharedInputs:
    """What is common to a turn's grounds; where nothing has changed, the very value that the former ones hold.

    Values that are one and the same compare at once, and a thousand brokers each compare theirs.
    """
    found = SharedInputs(scene.detection, scene.vantages, scene.blind, _limits(scene.detection))
    known = next((grounds.common for grounds in former), None)
    return known if known == found else found


def verdict_inputs(broker: int, scene: SignalIndex, shared: SharedInputs) -> VerdictInputs | None:
    """A broker's grounds; ``None`` where more counts than they say, so that it is judged in any case."""
    if broker not in scene.snapshot.cluster.live or broker in scene.snapshot.record.demoted:
        return None
    limits, usual = shared.limits, scene.latency_of_peers(broker)
    peers = milliseconds(usual) if usual is not None else ""
    words = tuple(
        [
            (_WORD(signal), bisect_left(limits, signal.age_seconds) if signal.age_seconds is not None else -1)
            for signal in scene.by_broker.get(broker, ())
        ]
    )
    return VerdictInputs(shared, peers, no_external_clients(broker, scene), words)


def _limits(detection: Detection) -> tuple[float, ...]:
    own = (detection.reachability.stale_after_seconds, detection.self_reachability.stale_after_seconds)
    watched = (watch.stale_after_seconds for watch in detection.threshold_signals)
    return tuple(sorted({*own, detection.storage.stale_after_seconds, *watched}))

"""Inputs of a Healthy verdict, compared from one reconcile to the next to skip re-judging unchanged brokers.

In: the signal index and the verdicts of the last reconcile. Out: a broker's inputs, as a value. Called by ``verdicts``,
which stores them in each verdict that time alone cannot change: with equal inputs the verdict is reused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import fields
from operator import attrgetter
from typing import NamedTuple

from bellwether.core.detection.findings import SignalIndex
from bellwether.core.detection.reachability import no_external_clients
from bellwether.core.detection.storage import slow_syncs
from bellwether.core.model.history.harm_history import LimitFactor
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Signal

_WORD = attrgetter(*(f.name for f in fields(Signal) if f.name not in ("broker", "age_seconds")))
"""All fields of a signal but its age, of which only the exceeded limits matter."""


class SharedInputs(NamedTuple):
    """Inputs that are the same for all brokers. ``limits`` are the seconds after which some signal is stale,
    ``factors`` the learned limits of harm, ``blind`` the vantages that reach no broker at a listener.
    """

    detection: Detection
    vantages: tuple[str, ...]
    blind: frozenset[tuple[str, str]]
    canary_vantages: tuple[str, ...]
    canary_blind: frozenset[str]
    limits: tuple[float, ...]
    factors: tuple[LimitFactor, ...]


class VerdictInputs(NamedTuple):
    """All that the verdict of a registered, unfenced, undemoted broker depends on, except time and its last verdict.

    ``cost`` is what moving its leaders costs, ``offline`` how many of its replicas are offline, and of how
    many. ``words`` are its signals, each with the number of staleness limits that its age exceeds, -1 if it was never
    renewed.
    """

    common: SharedInputs
    cost: float
    quiet: bool
    slow_syncs: bool
    offline: tuple[int, int]
    words: tuple[tuple[object, int], ...]


def shared_inputs(index: SignalIndex, former: Iterable[VerdictInputs]) -> SharedInputs:
    """The shared inputs of this reconcile; if unchanged, the same object as before.

    Identical objects compare in constant time, and each of a thousand brokers is compared.
    """
    found = SharedInputs(
        index.detection,
        index.vantages,
        index.blind_paths,
        index.canary_vantages,
        index.canary_blind,
        index.detection.stale_limits,
        tuple(index.limit_factors.values()),
    )
    known = next((inputs.common for inputs in former), None)
    return known if known == found else found


def verdict_inputs(broker: int, index: SignalIndex, shared: SharedInputs) -> VerdictInputs | None:
    """A broker's inputs; ``None`` where the verdict depends on more, so that the broker is judged in any case."""
    cluster = index.snapshot.cluster
    if broker not in cluster.live or broker in cluster.leaving or broker in index.snapshot.record.demoted:
        return None
    limits = shared.limits
    said = index.by_broker.get(broker, ())
    ages = [bisect_left(limits, s.age_seconds) if s.age_seconds is not None else -1 for s in said]
    words = tuple(zip(map(_WORD, said), ages, strict=True))
    return VerdictInputs(
        shared,
        index.move_cost_with_syncs(broker).seconds,
        no_external_clients(broker, index),
        slow_syncs(broker, index),
        (cluster.offline_counts[broker], cluster.offline_counts[broker] and cluster.replica_counts[broker]),
        words,
    )

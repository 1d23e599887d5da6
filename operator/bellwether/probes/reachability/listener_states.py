"""One signal of several external listeners of a broker: the worst one counts; those that fail or are slow are named.

In: the ``ReachabilityState`` of each listener, the first of the settings first. Out: a ``Signal``, and whether it is
news. Called by ``broker_watch``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bellwether.core.signals import ListenerReading, Reading, Signal
from bellwether.probes.reachability.reachability_state import ReachabilityState

_BADNESS = {Reading.UNKNOWN: 0, Reading.PASSING: 1, Reading.FAILING: 2}
"""Whether a broker is reached is known where one listener is measured."""


def signal_of(states: Mapping[str, ReachabilityState], broker: int, source: str) -> Signal | None:
    """The signal to report; ``None`` while no listener has been judged. One listener's is that of its state."""
    said = {name: signal for name, state in states.items() if (signal := state.signal(broker, source)) is not None}
    if len(states) < 2 or not said:
        return next(iter(said.values()), None)
    worst = max(said, key=lambda name: (_BADNESS[said[name].reading], _lost(said[name]), said[name].cause is not None))
    found = said[worst]
    alike = [signal.since for signal in said.values() if signal.reading is found.reading]
    # The broker fails since its first listener did, and passes since its last one does.
    since = max(alike) if found.reading is Reading.PASSING else min(alike)
    return replace(found, since=since, message=_message(states, said, worst), listeners=_apart(states, said))


def differ(
    states: Mapping[str, ReachabilityState], posted: Mapping[str, ReachabilityState] | None, seconds_since: float
) -> bool:
    """Whether these states differ enough from ``posted``, which were posted so many seconds ago."""
    if posted is None or states.keys() != posted.keys():
        return True
    return any(state.differs(posted[name], seconds_since) for name, state in states.items())


def _apart(states: Mapping[str, ReachabilityState], said: Mapping[str, Signal]) -> tuple[ListenerReading, ...]:
    found = []
    for name in states:
        signal = said.get(name)
        if signal is None or signal.reading is Reading.UNKNOWN:
            found.append(ListenerReading(name, Reading.UNKNOWN))
        elif signal.reading is Reading.FAILING:
            found.append(ListenerReading(name, signal.reading, signal.harm, signal.cause))
        elif signal.cause is not None:
            found.append(ListenerReading(name, signal.reading, cause=signal.cause))
    return tuple(found)


def _message(states: Mapping[str, ReachabilityState], said: Mapping[str, Signal], worst: str) -> str:
    """Each listener in a few words, the worst ones first."""
    names = sorted(states, key=lambda name: (name != worst, -_BADNESS[said[name].reading] if name in said else 0))
    parts = [f"{name}: {states[name].outside()}" for name in names]
    return "; ".join(part for part in (*parts, states[worst].inside()) if part)


def _lost(signal: Signal) -> float:
    return signal.harm.lost_seconds if signal.harm is not None else 0.0

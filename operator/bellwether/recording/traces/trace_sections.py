"""Encode and decode signals, overrides, demotions and restorations as sections of a trace.

In: values of the core. Out: plain JSON without null, members at their defaults are omitted. Ages are
not kept but the moments at which each source's Lease was seen to advance, so that an age can be computed for any later
moment. Called by the recorder and by replays. Reading raises ``UnreadableTrace``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.strimzi import Pod
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.signals import Override, OverrideState, Purpose, Reading, Signal
from bellwether.recording.traces.merge_patch import Document, Json
from bellwether.recording.traces.trace_lines import UnreadableTrace, text_of, time_of

KAFKA = "Kafka"
"""The key for the time since when no broker has answered the recorder."""

NEVER = "never"
"""A source's moment when its Lease was not seen to advance yet."""


def signals_section(signals: Iterable[Signal]) -> dict[str, dict[str, Json]]:
    """By broker, then ``Type/source``: each source's signal without its age."""
    section: dict[str, dict[str, Json]] = {}
    for signal in signals:
        section.setdefault(str(signal.broker), {})[_source(signal)] = _signal_row(signal)
    return section


def heard_section(signals: Iterable[Signal], now: float) -> dict[str, Json]:
    """By ``Type/source``: when the source was last seen alive, in seconds of the trace; "never" if it was not.

    A source is one prober with one Lease. If an entry has another prober's name, as one that a predecessor
    left behind, it gets a moment of its own under ``Type/source#broker``.
    """
    moments: dict[str, dict[int, float | str]] = {}
    for signal in signals:
        moment = NEVER if signal.age_seconds is None else round(now - signal.age_seconds, 2)
        moments.setdefault(_source(signal), {})[signal.broker] = moment
    section: dict[str, Json] = {}
    for source, by_broker in moments.items():
        usual = section[source] = Counter(by_broker.values()).most_common(1)[0][0]
        section.update({f"{source}#{b}": moment for b, moment in by_broker.items() if moment != usual})
    return section


def read_signals(section: Document) -> tuple[Signal, ...]:
    """The signals without their ages, by broker, type and source."""

    def read() -> list[Signal]:
        return [_read_signal(int(broker), key, row) for broker, rows in section.items() for key, row in rows.items()]

    return tuple(sorted(reading("a signal", read), key=lambda s: (s.broker, s.type, s.source)))


def aged(signals: Iterable[Signal], last_seen: Document, now: float) -> tuple[Signal, ...]:
    """The signals with their ages at ``now``."""
    found = []
    for signal in signals:
        key = _source(signal)
        found.append(_aged(signal, last_seen.get(f"{key}#{signal.broker}", last_seen.get(key, NEVER)), now))
    return tuple(found)


def overrides_section(overrides: Iterable[Override]) -> dict[str, Json]:
    """By broker: what a person asked for."""
    section: dict[str, Json] = {}
    for override in overrides:
        row: dict[str, Json] = {"state": str(override.state)}
        if override.reason:
            row["reason"] = override.reason
        if override.until is not None:
            row["until"] = text_of(override.until)
        if override.purpose is not None:
            row["purpose"] = str(override.purpose)
        section[str(override.broker)] = row
    return section


def read_overrides(section: Document) -> tuple[Override, ...]:
    """The overrides, in order of broker."""

    def read() -> list[Override]:
        return [
            Override(
                int(broker),
                OverrideState(row["state"]),
                str(row.get("reason", "")),
                time_of(row["until"]) if "until" in row else None,
                purpose=Purpose(row["purpose"]) if "purpose" in row else None,
            )
            for broker, row in section.items()
        ]

    return tuple(sorted(reading("an override", read), key=lambda o: o.broker))


def pods_section(pods: Mapping[int, Pod]) -> dict[str, Json]:
    """By broker: its pod, whether it is ready, and whether it is being deleted."""
    section: dict[str, Json] = {}
    for broker, pod in pods.items():
        section[str(broker)] = {"name": pod.name, "ready": pod.ready, "leaving": pod.leaving}
    return section


def read_pods(section: Document) -> dict[int, Pod]:
    """The pods, by broker."""

    def read() -> dict[int, Pod]:
        return {
            int(broker): Pod(str(row["name"]), bool(row["ready"]), bool(row["leaving"]))
            for broker, row in section.items()
        }

    found: dict[int, Pod] = reading("a pod", read)
    return found


def demoted_section(demoted: Mapping[int, DemotedBroker]) -> dict[str, Json]:
    """By broker: who is kept from leading, the cause and the reason."""
    return {
        str(broker): {
            "cause": str(one.cause),
            "reason": one.reason,
            "message": one.message,
            "since": text_of(one.since),
        }
        for broker, one in demoted.items()
    }


def read_demoted(section: Document) -> dict[int, DemotedBroker]:
    """The demoted brokers."""

    def read() -> dict[int, DemotedBroker]:
        return {
            int(broker): DemotedBroker(
                int(broker),
                Cause(row["cause"]),
                str(row["reason"]),
                str(row.get("message", "")),
                time_of(row["since"]),
            )
            for broker, row in section.items()
        }

    found: dict[int, DemotedBroker] = reading("a demotion", read)
    return found


def returning_section(returning: Mapping[int, ReturningBroker]) -> dict[str, Json]:
    """By broker: who gets its leaders back in waves, how far it has come, since when, and from where it comes."""
    section: dict[str, Json] = {}
    for broker, one in returning.items():
        row: dict[str, Json] = {"share": one.share, "since": text_of(one.since), "wavedAt": text_of(one.waved_at)}
        if one.trigger is not RestorationTrigger.RECOVERED:
            row["coming"] = str(one.trigger)
        section[str(broker)] = row
    return section


def read_returning(section: Document) -> dict[int, ReturningBroker]:
    """The brokers on their way back."""

    def read() -> dict[int, ReturningBroker]:
        return {
            int(broker): ReturningBroker(
                int(broker),
                _share(row["share"]),
                time_of(row["since"]),
                time_of(row["wavedAt"]),
                RestorationTrigger(row.get("coming", RestorationTrigger.RECOVERED)),
            )
            for broker, row in section.items()
        }

    found: dict[int, ReturningBroker] = reading("a way back", read)
    return found


def reading(what: str, read: Any) -> Any:
    """The outcome of ``read``; what a damaged section makes of it becomes UnreadableTrace."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableTrace(f"{what} in the trace is damaged ({type(error).__name__}: {error})") from None


def _source(signal: Signal) -> str:
    return f"{signal.type}/{signal.source}"


def _signal_row(signal: Signal) -> dict[str, Json]:
    row: dict[str, Json] = {"reading": str(signal.reading), "since": text_of(signal.since)}
    if signal.control is not Reading.UNKNOWN:
        row["control"] = str(signal.control)
    figures = {"latency": signal.latency_seconds, "usual": signal.usual_seconds, "value": signal.value}
    row.update({k: v for k, v in figures.items() if v is not None and math.isfinite(v)})
    if signal.message:
        row["message"] = signal.message
    return row


def _read_signal(broker: int, key: str, row: Mapping[str, Any]) -> Signal:
    kind, _, source = key.partition("/")
    return Signal(
        broker=broker,
        type=kind,
        source=source,
        reading=Reading(row["reading"]),
        since=time_of(row["since"]),
        control=Reading(row.get("control", Reading.UNKNOWN)),
        latency_seconds=_figure(row.get("latency")),
        message=str(row.get("message", "")),
        usual_seconds=_figure(row.get("usual")),
        value=_figure(row.get("value")),
    )


def _figure(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _share(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 100:
        raise ValueError(f"share {value!r} is not a percentage below 100")
    return value


def _aged(signal: Signal, moment: Any, now: float) -> Signal:
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return signal  # never seen
    return replace(signal, age_seconds=max(0.0, now - moment))

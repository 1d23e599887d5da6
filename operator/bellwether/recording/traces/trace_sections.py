"""Encode and decode signals, overrides, demotions and restorations as sections of a trace.

In: values of the core. Out: plain JSON without null, members at their defaults are omitted. Ages are
not kept but the moments at which each source's Lease was seen to advance, so that an age can be computed for any later
moment. Called by the recorder and by replays. Reading raises ``UnreadableTrace``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from bellwether.core.model.restoration_waves import RestorationTrigger, ReturningBroker
from bellwether.core.model.strimzi import Pod
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS
from bellwether.core.signals import (
    Harm,
    ListenerReading,
    Override,
    OverrideState,
    Purpose,
    Reading,
    Signal,
    UnreachableCause,
)
from bellwether.recording.traces.merge_patch import Document, Json
from bellwether.recording.traces.trace_lines import UnreadableTrace, text_of, time_of

KAFKA = "Kafka"
"""The key for the time since when no broker has answered the recorder."""

NEVER = "never"
"""A source's moment when its Lease was not seen to advance yet."""


class _Member(NamedTuple):
    """A member of a row: its name in JSON, its field, how it is written and read, and the value that is omitted."""

    name: str
    field: str
    write: Callable[[Any], Json | None]
    read: Callable[[Any], Any]
    default: Any = ...


def signals_section(signals: Iterable[Signal]) -> dict[str, dict[str, Json]]:
    """By broker, then ``Type/source``: each source's signal without its age."""
    section: dict[str, dict[str, Json]] = {}
    for signal in signals:
        section.setdefault(str(signal.broker), {})[_source(signal)] = _row(signal, _SIGNAL)
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
        rows = [(int(broker), key, row) for broker, keyed in section.items() for key, row in keyed.items()]
        return [Signal(broker, *key.split("/", 1), **_fields(row, _SIGNAL)) for broker, key, row in rows]

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
    return _section({override.broker: override for override in overrides}, _OVERRIDE)


def read_overrides(section: Document) -> tuple[Override, ...]:
    """The overrides, in order of broker."""
    found = _read("an override", section, _OVERRIDE, Override)
    return tuple(override for _, override in sorted(found.items()))


def pods_section(pods: Mapping[int, Pod]) -> dict[str, Json]:
    """By broker: its pod, whether it is ready, and whether it is being deleted."""
    return _section(pods, _POD)


def read_pods(section: Document) -> dict[int, Pod]:
    """The pods, by broker."""
    return _read("a pod", section, _POD, lambda _broker, **fields: Pod(**fields))


def demoted_section(demoted: Mapping[int, DemotedBroker]) -> dict[str, Json]:
    """By broker: who is kept from leading, the cause and the reason."""
    return _section(demoted, _DEMOTED)


def read_demoted(section: Document) -> dict[int, DemotedBroker]:
    """The demoted brokers."""
    return _read("a demotion", section, _DEMOTED, DemotedBroker)


def returning_section(returning: Mapping[int, ReturningBroker]) -> dict[str, Json]:
    """By broker: who gets its leaders back in waves, how far it has come, since when, and from where it comes."""
    return _section(returning, _RETURNING)


def read_returning(section: Document) -> dict[int, ReturningBroker]:
    """The brokers on their way back."""
    return _read("a way back", section, _RETURNING, ReturningBroker)


def reading(what: str, read: Any) -> Any:
    """The outcome of ``read``; what a damaged section makes of it becomes UnreadableTrace."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableTrace(f"{what} in the trace is damaged ({type(error).__name__}: {error})") from None


def _source(signal: Signal) -> str:
    return f"{signal.type}/{signal.source}"


def _section(values: Mapping[int, Any], members: tuple[_Member, ...]) -> dict[str, Json]:
    return {str(broker): _row(value, members) for broker, value in values.items()}


def _row(value: Any, members: tuple[_Member, ...]) -> dict[str, Json]:
    given = ((m.name, m.write(found)) for m in members if (found := getattr(value, m.field)) != m.default)
    return {name: written for name, written in given if written is not None}


def _fields(row: Mapping[str, Any], members: tuple[_Member, ...]) -> dict[str, Any]:
    """The fields of a value; KeyError names a member that is missing."""
    return {m.field: m.default if m.default is not ... and m.name not in row else m.read(row[m.name]) for m in members}


def _read(what: str, section: Document, members: tuple[_Member, ...], make: Callable[..., Any]) -> dict[int, Any]:
    """Values by broker; ``make`` takes the broker and the fields."""

    def read() -> dict[int, Any]:
        return {int(broker): make(int(broker), **_fields(row, members)) for broker, row in section.items()}

    found: dict[int, Any] = reading(what, read)
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _figure(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _harm_row(harm: Harm) -> Json:
    row: dict[str, Json] = {"lost": harm.lost_seconds, "share": harm.share, "since": text_of(harm.since)}
    parts = {"earlier": harm.earlier_seconds, "frozen": harm.frozen_seconds}
    return {**row, "ongoing": harm.ongoing, **{name: seconds for name, seconds in parts.items() if seconds}}


def _harm(value: Any) -> Harm:
    lost, share = _figure(value["lost"]), _figure(value["share"])
    parts = [_figure(value.get(part, 0.0)) for part in ("earlier", "frozen")]
    seconds = [one for one in (lost, *parts) if one is not None and 0 <= one <= LARGEST_LOST_SECONDS]
    if len(seconds) < 1 + len(parts) or share is None or not 0 <= share <= 1:
        raise ValueError(f"harm {value!r} is out of bounds")
    return Harm(seconds[0], share, time_of(value["since"]), value.get("ongoing", True) is not False, *seconds[1:])


def _share(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 100:
        raise ValueError(f"share {value!r} is not a percentage below 100")
    return value


def _cutoff(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise ValueError(f"cutoff {value!r} is not a position from 0 to 100")
    return float(value)


def _aged(signal: Signal, moment: Any, now: float) -> Signal:
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return signal  # never seen
    return replace(signal, age_seconds=max(0.0, now - moment))


_LISTENER = (
    _Member("name", "name", str, str),
    _Member("reading", "reading", str, Reading),
    _Member("harm", "harm", _harm_row, _harm, None),
    _Member("cause", "cause", str, UnreachableCause, None),
)
_SIGNAL = (
    _Member("reading", "reading", str, Reading),
    _Member("since", "since", text_of, time_of),
    _Member("control", "control", str, Reading, Reading.UNKNOWN),
    _Member("latency", "latency_seconds", _finite, _figure, None),
    _Member("usual", "usual_seconds", _finite, _figure, None),
    _Member("value", "value", _finite, _figure, None),
    _Member("harm", "harm", _harm_row, _harm, None),
    _Member("message", "message", str, str, ""),
    _Member("directory", "directory", str, str, ""),
    _Member("cause", "cause", str, UnreachableCause, None),
    _Member("metadataLog", "metadata_log", bool, bool, None),
    _Member("brokenLinkTo", "broken_link_to", int, int, None),
    _Member(
        "listeners",
        "listeners",
        lambda several: [_row(one, _LISTENER) for one in several],
        lambda rows: tuple(ListenerReading(**_fields(row, _LISTENER)) for row in rows),
        (),
    ),
)
_OVERRIDE = (
    _Member("state", "state", str, OverrideState),
    _Member("reason", "reason", str, str, ""),
    _Member("until", "until", text_of, time_of, None),
    _Member("purpose", "purpose", str, Purpose, None),
    _Member("acceptUnavailableWrites", "accept_unavailable_writes", bool, bool, False),
)
_POD = (
    _Member("name", "name", str, str),
    _Member("ready", "ready", bool, bool),
    _Member("leaving", "leaving", bool, bool),
)
_DEMOTED = (
    _Member("cause", "cause", str, Cause),
    _Member("reason", "reason", str, str),
    _Member("message", "message", str, str, ""),
    _Member("since", "since", text_of, time_of),
)
_RETURNING = (
    _Member("share", "share", int, _share),
    _Member("since", "since", text_of, time_of),
    _Member("wavedAt", "waved_at", text_of, time_of),
    _Member("coming", "trigger", str, RestorationTrigger, RestorationTrigger.RECOVERED),
    _Member("cutoff", "cutoff", float, _cutoff, None),
)

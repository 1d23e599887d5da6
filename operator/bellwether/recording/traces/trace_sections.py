"""Encode and decode signals, overrides, pods, demotions and restorations as sections of a trace.

In: values of the core. Out: plain JSON without null, members at their defaults are omitted. Ages are
not kept but the moments at which each source's Lease was seen to advance, so that an age can be computed for any later
moment. Called by the recorder and by replays. Reading raises ``UnreadableTrace``; unknown members are skipped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, PlainSerializer

from bellwether.adapters.json_codec import JsonCodec
from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.restoration_waves import ReturningBroker
from bellwether.core.model.undo_record import DemotedBroker
from bellwether.core.settings.harm import LARGEST_LOST_SECONDS
from bellwether.core.signals import Override, Signal
from bellwether.recording.traces.merge_patch import Document, Json
from bellwether.recording.traces.trace_lines import UnreadableTrace, text_of

T = TypeVar("T")
KAFKA = "Kafka"
"""The key for the time since when no broker has answered the recorder."""

NEVER = "never"
"""A source's moment when its Lease was not seen to advance yet."""

_Figure = Annotated[float, PlainSerializer(lambda figure: figure if math.isfinite(figure) else None)] | None
_Lost = Annotated[float, Field(ge=0, le=LARGEST_LOST_SECONDS)]


def _codec(of: Any) -> JsonCodec[Any]:
    return JsonCodec(
        of,
        names={
            "trigger": "coming",
            "latency_seconds": "latency",
            "usual_seconds": "usual",
            "lost_seconds": "lost",
            "earlier_seconds": "earlier",
            "frozen_seconds": "frozen",
        },
        fields={
            **dict.fromkeys(("latency_seconds", "usual_seconds", "value"), _Figure),
            **dict.fromkeys(("lost_seconds", "earlier_seconds", "frozen_seconds"), _Lost),
            "Harm.share": Annotated[float, Field(ge=0, le=1)],
            "ReturningBroker.share": Annotated[int, Field(ge=0, lt=100)],
            "cutoff": Annotated[float, Field(ge=0, le=100)] | None,
        },
        omit=(
            *("age_seconds", "control", "latency_seconds", "message", "usual_seconds", "value", "harm", "directory"),
            *("cause", "metadata_log", "broken_link_to", "listeners", "earlier_seconds", "frozen_seconds"),
            *("reason", "until", "by", "purpose", "accept_unavailable_writes"),
            *("signal", "drained_since", "trigger", "cutoff"),
        ),
        time=text_of,
        unknown="ignore",
    )


_SIGNALS = _codec(tuple[Signal, ...])


class Section(Generic[T]):
    """Values by broker as a section of a trace, and back. ``missing`` has members that a row may lack."""

    def __init__(self, what: str, of: type[T], **missing: Json) -> None:
        self._what, self._codec, self._missing = what, _codec(dict[int, of]), missing  # type: ignore[valid-type]

    def write(self, values: Mapping[int, T]) -> dict[str, Json]:
        """The section."""
        rows = self._codec.to_json(dict(values))
        return {str(b): {name: part for name, part in row.items() if name != "broker"} for b, row in rows.items()}

    def read(self, section: Document) -> dict[int, T]:
        """The values."""
        found: dict[int, T] = reading(self._what, lambda: self._codec.from_json(self._rows(section)))
        return found

    def _rows(self, section: Document) -> dict[str, Json]:
        return {b: {**self._missing, **row, "broker": int(b)} for b, row in section.items()}


OVERRIDES = Section("an override", Override)
"""What a person asked for; not who."""

PODS = Section("a pod", Pod)
"""Each broker's pod, whether it is ready, and whether it is being deleted."""

DEMOTED = Section("a demotion", DemotedBroker, message="")
"""Who is kept from leading, the cause and the reason."""

RETURNING = Section("a way back", ReturningBroker)
"""Who gets its leaders back in waves, how far it has come, since when, and from where it comes."""


def signals_section(signals: Iterable[Signal]) -> dict[str, dict[str, Json]]:
    """By broker, then ``Type/source``: each source's signal without its age."""
    section: dict[str, dict[str, Json]] = {}
    for row in _SIGNALS.to_json(tuple(replace(signal, age_seconds=None) for signal in signals)):
        broker, source = str(row.pop("broker")), f"{row.pop('type')}/{row.pop('source')}"
        section.setdefault(broker, {})[source] = {name: value for name, value in row.items() if value is not None}
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
        keys = [(broker, *key.split("/", 1), row) for broker, keyed in section.items() for key, row in keyed.items()]
        rows = [{**row, "broker": int(broker), "type": kind, "source": source} for broker, kind, source, row in keys]
        return list(_SIGNALS.from_json(rows))

    return tuple(sorted(reading("a signal", read), key=lambda s: (s.broker, s.type, s.source)))


def aged(signals: Iterable[Signal], last_seen: Document, now: float) -> tuple[Signal, ...]:
    """The signals with their ages at ``now``."""
    found = []
    for signal in signals:
        key = _source(signal)
        found.append(_aged(signal, last_seen.get(f"{key}#{signal.broker}", last_seen.get(key, NEVER)), now))
    return tuple(found)


def reading(what: str, read: Callable[[], Any]) -> Any:
    """The outcome of ``read``; what a damaged section makes of it becomes UnreadableTrace."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableTrace(f"{what} in the trace is damaged ({type(error).__name__}: {error})") from None


def _source(signal: Signal) -> str:
    return f"{signal.type}/{signal.source}"


def _aged(signal: Signal, moment: Any, now: float) -> Signal:
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return signal  # never seen
    return replace(signal, age_seconds=max(0.0, now - moment))

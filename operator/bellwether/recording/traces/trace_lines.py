"""Trace format: one header line, then one line for every moment in which anything changed.

In: text, one JSON object a line. Out: ``Header`` and ``Instant`` values, and back; and the state after an instant,
whose members have the shapes that their readers count on. What cannot be read is refused with the line's number;
another format version is refused by name. Called by ``recording/trace_files`` and by replays.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bellwether.adapters.json_codec import JsonCodec
from bellwether.core.stored_documents import InvalidDocument
from bellwether.recording.traces.merge_patch import Document, Json, patched

FORMAT = "bellwether.dev/trace"
FORMAT_VERSION = 2
MOST_SECONDS = 366 * 86400.0
FIRST_YEAR, LAST_YEAR = 1970, 9000
_BY_BROKER = frozenset({"signals", "overrides", "pods", "demoted", "returning", "said", "followers"})
_BROKER = re.compile("[0-9]{1,10}")


class UnreadableTrace(ValueError):
    """An invalid line of a trace; the message names the line and the problem."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line: which policy was watched, from when on, and what was left out."""

    policy: str
    namespace: str
    started: datetime
    cluster_id: str = ""
    program: str = ""
    anonymized: bool = False
    partitions: bool = True

    def line(self) -> str:
        """The header as text, without a line's end."""
        return _dump({"format": FORMAT, "version": FORMAT_VERSION, **_HEADER.to_json(self)})


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment: seconds since the trace began (monotonic), the wall clock then, and what changed."""

    at: float
    wall: datetime
    news: dict[str, Json] = field(default_factory=dict)

    def line(self) -> str:
        """The instant as text, without a line's end."""
        return _dump({"at": round(self.at, 3), "wall": text_of(self.wall), "news": self.news})


def read_header(text: str) -> Header:
    """The header of a trace. Raises UnreadableTrace."""
    found = _object(text, 1)
    if found.get("format") != FORMAT:
        raise UnreadableTrace(f"line 1: not a trace: its first line must name the format {FORMAT}")
    version = found.get("version")
    if not isinstance(version, int) or version < 1:
        raise UnreadableTrace(f"line 1: version {version!r} is not a positive number")
    if version > FORMAT_VERSION:
        raise UnreadableTrace(
            f"line 1: the trace has format version {version}, this program reads version {FORMAT_VERSION}: "
            "use the newer version of Bellwether that recorded it"
        )
    if version < FORMAT_VERSION:
        raise UnreadableTrace(
            f"line 1: the trace has format version {version}, this program reads version {FORMAT_VERSION}, in which "
            f"settings and statuses have other names: replay it with Bellwether {found.get('program') or 'of its time'}"
        )
    try:
        return _HEADER.from_json(found)
    except InvalidDocument as error:
        raise UnreadableTrace(f"line 1: the header is damaged: {error}") from None


def read_instant(text: str, number: int, after: float = 0.0) -> Instant:
    """The instant on line ``number``; it must not lie before ``after``. Raises UnreadableTrace."""
    found = _object(text, number)
    try:
        at, wall, news = found["at"], time_of(found["wall"]), found["news"]
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableTrace(f"line {number}: the instant is damaged ({type(error).__name__}: {error})") from None
    if isinstance(at, bool) or not isinstance(at, int | float) or not math.isfinite(at) or not 0 <= at <= MOST_SECONDS:
        raise UnreadableTrace(f"line {number}: 'at' must be seconds since the beginning, up to a year, not {at!r}")
    if at < after:
        raise UnreadableTrace(f"line {number}: 'at' goes back from {after:g} s to {at:g} s")
    if not isinstance(news, dict):
        raise UnreadableTrace(f"line {number}: 'news' must be an object")
    return Instant(float(at), wall, news)


def text_of(moment: datetime) -> str:
    """A time as a trace writes it: UTC, milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of(text: Any) -> datetime:
    """The inverse of ``text_of``. Raises ValueError for a time without time zone, or far from any that can be meant."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"time {text!r} has no time zone")
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"time {text!r} is out of range")
    return moment


_HEADER: JsonCodec[Header] = JsonCodec(Header, time=text_of, unknown="ignore")


def _object(text: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UnreadableTrace(f"line {number}: not JSON ({str(error)[:100]})") from None
    if not isinstance(found, dict):
        raise UnreadableTrace(f"line {number}: not a JSON object")
    return found


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _dump(value: dict[str, Json]) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def following(state: Document, news: Document) -> dict[str, Json]:
    """The state after an instant. Unknown members are kept and ignored: a later version may use them."""
    try:
        after = patched(state, news)
    except RecursionError:
        raise UnreadableTrace("an instant of the trace is nested too deeply") from None
    for name in news:
        if name in after:
            _check(name, after[name])
    return after


def _check(name: str, member: Any) -> None:
    if not isinstance(member, Mapping):
        raise UnreadableTrace(f"member {name!r} of the trace's state is not an object")
    if name not in _BY_BROKER:
        return
    for broker, row in member.items():
        if _BROKER.fullmatch(broker) is None or not isinstance(row, Mapping):
            raise UnreadableTrace(f"member {name!r} of the trace's state must be an object with broker ids as keys")
        if name == "said" and not all(isinstance(row.get(k, {}), Mapping) for k in ("verdict", "demoted", "flapping")):
            raise UnreadableTrace(f"the status of broker {broker} in the trace is damaged")

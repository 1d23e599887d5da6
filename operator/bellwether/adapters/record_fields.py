"""Fields of stored records as JSON: read strictly, so that a damaged record is refused where it is read.

In: values of parsed JSON. Out: core values, or TypeError or ValueError with what is wrong. Called by
``undo_record_codec``. A time without a zone is refused both ways: it could not be compared with any other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

_HIGHEST_ID = 2**31 - 1


def read_id(value: Any) -> int:
    """The id of a broker, or the number of a partition. Raises TypeError."""
    if type(value) is not int or not 0 <= value <= _HIGHEST_ID:
        raise TypeError(f"{short(value)} is not the number of a broker or partition")
    return value


def read_count(value: Any) -> int:
    """A count. Raises TypeError."""
    if type(value) is not int or value < 0:
        raise TypeError(f"{short(value)} is not a count")
    return value


def read_text(value: Any) -> str:
    """Text. Raises TypeError."""
    if type(value) is not str:
        raise TypeError(f"{short(value)} is not text")
    return value


def short(value: object) -> str:
    """A value for messages, cut off."""
    return repr(value)[:40]


def time_or_none(moment: datetime | None) -> str | None:
    """A time as text, if there is one."""
    return None if moment is None else time_text(moment)


def read_time(text: Any) -> datetime:
    """A time with its zone. Raises TypeError or ValueError."""
    moment = datetime.fromisoformat(read_text(text))
    if moment.tzinfo is None:
        raise ValueError(f"a time without time zone cannot be compared: {short(text)}")
    return moment


def time_text(moment: datetime) -> str:
    """A time as text, in UTC. Raises ValueError without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without time zone cannot be recorded: {moment}")
    return moment.astimezone(UTC).isoformat()

"""Times and ages as the commands print them, and durations of options: ``30s``, ``10m``, ``2h``, ``1d``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_DURATION = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, option: str) -> timedelta:
    """Parse the value of an option. UsageError names the option, the value and the format."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.UsageError(f"{option} {text!r} is not a duration: use a number with s, m, h or d, such as 30m")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise click.UsageError(f"{option} {text!r} is too long: use a shorter duration") from None


def clock(moment: datetime) -> str:
    """A time in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def age(moment: datetime, now: datetime) -> str:
    """How long ago, in its two largest units: ``2 min 5 s``."""
    spent = max(timedelta(0), now - moment)
    minutes, seconds = divmod(int(spent.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join([f"{n} {unit}" for n, unit in parts if n][:2]) or "0 s"


def ago(moment: datetime, now: datetime) -> str:
    """``2 min 5 s ago``."""
    return f"{age(moment, now)} ago"


def since(moment: datetime, now: datetime) -> str:
    """``since 2026-01-01 00:00:00Z (2 min 5 s ago)``."""
    return f"since {clock(moment)} ({ago(moment, now)})"

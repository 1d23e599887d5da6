"""Times and ages as the commands print them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


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

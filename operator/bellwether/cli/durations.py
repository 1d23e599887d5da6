"""Parse durations of command-line options: ``30s``, ``10m``, ``2h``, ``1d``."""

from __future__ import annotations

import re
from datetime import timedelta

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

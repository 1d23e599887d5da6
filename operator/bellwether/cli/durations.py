"""Times as people write them on a command line: ``30s``, ``10m``, ``2h``, ``1d``."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_DURATION = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def duration(text: str, option: str) -> timedelta:
    """The time that an option was given. UsageError names the option and the form."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.UsageError(f"{option} {text!r}: a number with s, m, h or d, as in 30m")
    try:
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise click.UsageError(f"{option} {text!r} is longer than a calendar reaches") from None

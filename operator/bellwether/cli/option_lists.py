"""Several options of a command as one decorator, and as one value; types of options: durations, partitions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import click

from bellwether.core.model.cluster import TopicPartition

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A decorator of click's that adds an option or an argument, or several."""

_DURATION = re.compile("([0-9]{1,99})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 36500 * 86400


def with_options(*options: Option) -> Option:
    """Add these options, in the order of the help."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def as_one(name: str, kind: Callable[..., Any], options: Mapping[str, Option]) -> Option:
    """Add options, by the names of their values; the command gets them as one value of this name, made by ``kind``."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            own = kind(**{one: values.pop(one) for one in options})
            return command(**{name: own}, **values)

        return with_options(*options.values())(run)

    return add


def topic_partition(text: str) -> TopicPartition:
    """The type of options and arguments that name a partition: ``orders-7``, as Kafka writes it, or ``orders/7``."""
    found = re.fullmatch("(.+)[-/]([0-9]{1,10})", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not TOPIC-PARTITION: use a value such as orders-0")
    return TopicPartition(found[1], int(found[2]))


def duration(text: str) -> timedelta:
    """The type of options that are a duration, at most 100 years: ``30s``, ``10m``, ``2h``, ``1d``."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a duration: use a number with s, m, h or d, such as 30m")
    seconds = int(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST:
        raise click.BadParameter(f"{text!r} is too long: use a shorter duration")
    return timedelta(seconds=seconds)

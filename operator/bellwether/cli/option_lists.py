"""Several options of a command as one decorator, and as one value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A decorator of click's that adds an option or an argument, or several."""


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

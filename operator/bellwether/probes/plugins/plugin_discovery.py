"""Discover plug-in signal types by their entry points, and reject invalid ones.

In: the entry points of group ``bellwether.signals`` of what is installed. Out: a ``Measurer`` that is safe to call, or
a Terminal that names the package and the remedy. Called by ``bellwether probe plugin``.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from bellwether.core.signals import SignalType
from bellwether.foreign_text import quoted
from bellwether.ports.errors import Terminal
from bellwether.probes.plugins.plugin_api import GROUP, Measurer

_TYPE = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


@dataclass(frozen=True, slots=True)
class Found:
    """A measurer that an installed package declares; ``problem``: why it is unusable, empty if usable."""

    type: str
    origin: str
    target: str
    problem: str = ""


def found() -> tuple[Found, ...]:
    """Every measurer that is announced, tried: a package that cannot be imported is named with the reason."""
    plugins = []
    for entry in sorted(_entries(), key=lambda e: (e.name, _origin(e))):
        try:
            load(entry.name)
            problem = ""
        except Terminal as error:
            problem = str(error)
        plugins.append(Found(entry.name, _origin(entry), entry.value, problem))
    return tuple(plugins)


def load(type_: str) -> Measurer:
    """The measurer of that type. Raises Terminal if there is none, more than one, or an invalid one."""
    if type_ in set(SignalType):
        raise Terminal(f"{type_} is a built-in signal type: give the plug-in another type")
    if not _TYPE.fullmatch(type_):
        raise Terminal(f"{quoted(type_, 80)!r} is not a signal type: use UpperCamelCase, at most 63 letters and digits")
    all_ = _entries()
    entries = [entry for entry in all_ if entry.name == type_]
    if not entries:
        there = ", ".join(sorted({entry.name for entry in all_})) or "none"
        raise Terminal(
            f"no installed package provides the signal type {type_} (entry point group {GROUP}; installed types:"
            f" {there}): install its package in Bellwether's environment, or correct the type"
        )
    if len(entries) > 1:
        origins = ", ".join(sorted(_origin(entry) for entry in entries))
        raise Terminal(f"several packages provide the signal type {type_} ({origins}): uninstall all but one")
    return _sound(entries[0])


def _entries() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))


def _origin(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unnamed package"


def _sound(entry: EntryPoint) -> Measurer:
    where = f"signal type {entry.name} of {_origin(entry)} ({entry.value})"
    try:
        loaded: Any = entry.load()
        made: Any = loaded() if inspect.isclass(loaded) else loaded
        type_, measure = made.type, made.measure
    except (Exception, SystemExit) as error:  # any failure of another package's import
        raise Terminal(f"{where} cannot be loaded: {type(error).__name__}: {quoted(str(error), 200)}") from error
    if type_ != entry.name:
        raise Terminal(f"{where} has the type {quoted(str(type_), 80)!r}: its entry point must have the same name")
    try:
        inspect.signature(measure).bind(0, {}, {}, 1.0)
    except (TypeError, ValueError):
        raise Terminal(f"{where}: measure() must take broker, addresses, settings and timeout_seconds") from None
    return cast("Measurer", made)

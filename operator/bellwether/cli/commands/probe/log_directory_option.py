"""Log directory option of the storage prober: a path, or a name and a path."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import click

# A part of the prober's source, which is part of the name of its Lease.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A log directory of a broker. ``name`` distinguishes it from the broker's others; empty if it has none."""

    path: Path
    name: str = ""


class LogDirectoryOption(click.ParamType[LogDirectory]):
    """``/var/lib/kafka/data`` and ``data-0=/var/lib/kafka/data-0``."""

    name = "[name=]path"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> LogDirectory:
        """The directory. Fails if the name cannot be part of a source, or if there is no path."""
        if isinstance(value, LogDirectory):
            return value
        text = str(value)
        name, separator, path = text.partition("=")
        if not separator or "/" in name:  # a path may have an equals sign
            name, path = "", text
        elif not _NAME.fullmatch(name):
            self.fail(
                f"{text!r}: the name {name!r} must have 1 to 63 letters, digits, '-', '_' or '.', and start and end"
                " with a letter or digit: use NAME=PATH such as data-0=/var/lib/kafka/data-0",
                param,
                ctx,
            )
        if not path:
            self.fail(f"{text!r} has no path: use NAME=PATH such as data-0=/var/lib/kafka/data-0", param, ctx)
        return LogDirectory(Path(os.fsdecode(click.Path(file_okay=False).convert(path, param, ctx))), name)

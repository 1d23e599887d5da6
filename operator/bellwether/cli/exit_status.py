"""Exit statuses of all commands; docs/command-line.md explains them. 0: done, or nothing wrong was found."""

from __future__ import annotations

from typing import NoReturn

import click

ERROR = 1
"""The command could not do its work: no answer, no permission, no such object."""

USAGE = 2
"""The command line is wrong; nothing was done."""

BLOCKED = 3
"""What was asked for is blocked, was refused, or is not finished in time."""

FOUND = 4
"""What was examined is not as it should be."""

OFFLINE = 5
"""A partition has no leader."""


def blocked(text: str) -> NoReturn:
    """Print why, and end with ``BLOCKED``."""
    click.echo(text, err=True)
    raise click.exceptions.Exit(BLOCKED)

"""A group of commands that are loaded by name: a prober imports neither the operator nor another prober's client."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class Verbs(click.Group):
    """A click group made from ``verbs``: verb to ``module:command``."""

    def __init__(self, *args: Any, verbs: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All verbs, in alphabetical order."""
        return sorted(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """One verb; None when there is none of that name."""
        if cmd_name not in self._verbs:
            return None
        module, _, name = self._verbs[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

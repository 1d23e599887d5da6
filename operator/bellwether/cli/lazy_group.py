"""Click group that loads its commands by name, and names the extra that a command lacks."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from bellwether.extras import needed_extra


class MissingExtra(click.ClickException):
    """The verb needs packages that are not installed."""

    exit_code = click.UsageError.exit_code


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

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb. MissingExtra names the extra that brings what it lacks."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            what = f"`{ctx.command_path} {ctx.invoked_subcommand}` {needed_extra(error)}"
            raise MissingExtra(what) from error

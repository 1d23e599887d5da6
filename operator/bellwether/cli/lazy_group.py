"""Click group that imports a command only when it is used, and names the missing extra of a command."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from bellwether.extras import needed_extra

HINT = "A policy is named by --policy NAME."


class MissingExtra(click.ClickException):
    """The command needs packages that are not installed."""

    exit_code = click.UsageError.exit_code


class LazyGroup(click.Group):
    """Click group of ``verbs``: command name to ``module:object``."""

    def __init__(self, *args: Any, verbs: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All command names, in alphabetical order."""
        return sorted(self._verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import a command; None if there is none with that name."""
        if cmd_name not in self._verbs:
            return None
        module, _, name = self._verbs[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. MissingExtra names the extra to install; a stray argument may be meant as --policy."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            wrong = error.ctx.command if error.ctx is not None else ctx.command
            takes_policy = any(parameter.name == "policy" for parameter in wrong.params)
            if takes_policy and error.message.startswith("Got unexpected extra argument") and HINT not in error.message:
                raise click.UsageError(f"{error.message}. {HINT}", error.ctx) from None
            raise
        except ModuleNotFoundError as error:
            command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
            what = f"`{command}` {needed_extra(error)}"
            raise MissingExtra(what) from error

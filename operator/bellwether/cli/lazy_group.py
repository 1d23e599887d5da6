"""Click group that imports a command only when it is used, and says what a mistyped command may have meant."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import click

from bellwether.extras import needed_extra
from bellwether.gc_tuning import collect_seldom
from bellwether.ports.errors import BellwetherError

HINT = "A policy is named by --policy NAME."


class MissingExtra(click.ClickException):
    """The command needs packages that are not installed."""

    exit_code = click.UsageError.exit_code


class LazyGroup(click.Group):
    """Click group whose help lists ``groups`` of commands: title to command name to ``module:object``.

    Instead of commands a title may have the name of an entry point group, by which other packages add theirs.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Mapping[str, str] | str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._given = groups
        self._own = {
            v: target for verbs in groups.values() if not isinstance(verbs, str) for v, target in verbs.items()
        }

    @cached_property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """All groups, those of other packages included."""
        return {title: _provided(verbs) if isinstance(verbs, str) else verbs for title, verbs in self._given.items()}

    @property
    def verbs(self) -> Mapping[str, str]:
        """All commands: name to ``module:object``."""
        return {verb: target for verbs in self.groups.values() for verb, target in verbs.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All command names, in the order of the help."""
        return list(self.verbs)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each group."""
        limit = formatter.width - 6 - max(map(len, self.verbs))
        for title, verbs in self.groups.items():
            found = ((verb, self.get_command(ctx, verb)) for verb in verbs)
            rows = [(verb, command.get_short_help_str(limit)) for verb, command in found if command is not None]
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. UsageError names the commands that a mistyped one resembles."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], self.verbs)
            meant = f"Did you mean {' or '.join(near)}?" if near else f"See {ctx.command_path} --help."
            ctx.fail(f"No such command {args[0]!r}. {meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import a command; None if there is none with that name."""
        target = self._own.get(cmd_name) or self.verbs.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and make one line of an error: what a port says, the extra to install, or the hint that a
        stray argument may be meant as --policy.
        """
        collect_seldom()  # what imports create stays; looking for cycles in it takes 150 of 650 ms of `bellwether plan`
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            unnamed = error.ctx is not None and error.ctx.params.get("policy", "") is None
            if unnamed and error.message.startswith("Got unexpected extra") and HINT not in error.message:
                raise click.UsageError(f"{error.message}. {HINT}", error.ctx) from None
            raise
        except BellwetherError as error:
            raise click.ClickException(str(error)) from error
        except ModuleNotFoundError as error:
            command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip()
            what = f"`{command}` {needed_extra(error)}"
            raise MissingExtra(what) from error


def _provided(group: str) -> Mapping[str, str]:
    """The commands of an entry point group. Listing them imports nothing of their packages."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=group)}

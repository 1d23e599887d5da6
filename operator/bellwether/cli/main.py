"""The root of the command line. Each verb lives in a file of its own and is imported only when it is asked for."""

from __future__ import annotations

import importlib

import click

from bellwether import __version__

# verb -> module:command
VERBS = {
    "crds": "bellwether.cli.crds:crds",
    "demote": "bellwether.cli.demote:demote",
    "operator": "bellwether.cli.operate:operator",
    "probe": "bellwether.cli.probe:probe",
    "promote": "bellwether.cli.demote:promote",
    "record": "bellwether.cli.record:record",
    "release": "bellwether.cli.demote:release",
}


class Verbs(click.Group):
    """A group whose commands are loaded by name, so that a prober does not import the operator."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All verbs, in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """One verb; None when there is none of that name."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER"})
@click.version_option(__version__, prog_name="bellwether", message="%(prog)s %(version)s")
def main() -> None:
    """Move leadership away from sick Apache Kafka brokers, and back when they are well.

    Every option can also be set in the environment: BELLWETHER_<VERB>_<OPTION>.
    """

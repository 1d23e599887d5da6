"""``python -m bellwether_load loads|plan``: the jobs, one per file, imported only when they run.

Exit status: 0: finished; 1: failed, with a message; 2: wrong arguments; 3: finished without a result, as there is no
usable input.
"""

from __future__ import annotations

import importlib
import sys

import click

from bellwether.extras import needed_extra

# job -> module:command
JOBS = {
    "loads": "bellwether_load.jobs.loads:loads",
    "plan": "bellwether_load.jobs.plan:plan",
}


class Jobs(click.Group):
    """The jobs by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All job names, in alphabetical order."""
        return sorted(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import a job; None if there is none with that name."""
        if cmd_name not in JOBS:
            return None
        module, _, name = JOBS[cmd_name].partition(":")
        try:
            command: click.Command = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            click.echo(f"error: the job {cmd_name} {needed_extra(error)}", err=True)
            sys.exit(1)
        return command


@click.group(
    cls=Jobs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER_LOAD"}
)
def main() -> None:
    """Compute the load of each Kafka partition, and plan its leader, on Spark or in one process."""


if __name__ == "__main__":
    main(prog_name="bellwether_load")

"""``python -m bellwether_load loads|plan``: the jobs, one a file, each imported only when it is asked for.

Exit status: 0 done; 1 it cannot be done, and the message says why; 2 wrong arguments; 3 done, and there was nothing to
do it with.
"""

from __future__ import annotations

import importlib

import click

# job -> module:command
JOBS = {
    "loads": "bellwether_load.jobs.loads:loads",
    "plan": "bellwether_load.jobs.plan:plan",
}


class Jobs(click.Group):
    """The jobs by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All jobs, in alphabetical order."""
        return sorted(JOBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """One job; None when there is none of that name."""
        if cmd_name not in JOBS:
            return None
        module, _, name = JOBS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(
    cls=Jobs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER_LOAD"}
)
def main() -> None:
    """Measure what each Kafka partition carries, and plan who should lead it, on Spark."""


if __name__ == "__main__":
    main(prog_name="bellwether_load")

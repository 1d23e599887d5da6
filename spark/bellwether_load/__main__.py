"""``python -m bellwether_load loads|plan``: the jobs, one per file, imported only when they run.

Exit status: 0: finished; 1: failed, with a message; 2: wrong arguments; 3: finished without a result, as there is no
usable input.
"""

from __future__ import annotations

import click

from bellwether.cli.lazy_group import LazyGroup

JOBS = {"loads": "bellwether_load.jobs.loads:loads", "plan": "bellwether_load.jobs.plan:plan"}


@click.group(
    cls=LazyGroup,
    groups={"Jobs": JOBS},
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "BELLWETHER_LOAD"},
)
def main() -> None:
    """Compute the load of each Kafka partition, and plan its leader, on Spark or in one process."""


if __name__ == "__main__":
    main(prog_name="bellwether_load")

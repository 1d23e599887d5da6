"""``bellwether record``: write down what is seen of a policy, so that it can be judged again later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option("--policy", required=True, metavar="NAME", help="The LeadershipPolicy to watch.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of the policy.")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write, such as incident.jsonl.gz; an existing one is not overwritten.",
)
@click.option("--duration", "limit", metavar="TIME", help="Stop after 30s, 10m, 2h.  [default: until Ctrl-C]")
@click.option("--period", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between looks.")
@click.option("--anonymize", is_flag=True, help="Write digests in place of names, and no free text.")
@click.option("--no-partitions", is_flag=True, help="Leave partitions out: a replay then judges, and plans nothing.")
@click.option(
    "--max-size", type=click.IntRange(1, 100_000), default=500, show_default=True, help="Stop at so many megabytes."
)
def record(**options: Any) -> None:
    """Record what is seen of a policy, for `bellwether replay`.

    Records what probers, people and Kafka say of the brokers, and what the operator decides. Nothing is changed
    anywhere. Ctrl-C ends the recording; `bellwether replay` judges it again.
    """
    from bellwether.cli.recording.record import record as run

    run(**options)

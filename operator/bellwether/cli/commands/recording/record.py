"""``bellwether record``: record the inputs and verdicts of a policy in a trace file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bellwether.cli.commands.kubernetes_options import policy_options


@click.command()
@policy_options
@click.option(
    "--output-file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Trace file to write, such as incident.jsonl.gz; an existing file is not overwritten.",
)
@click.option("--duration", "limit", metavar="TIME", help="Stop after 30s, 10m, 2h.  [default: until Ctrl-C]")
@click.option(
    "--period", type=click.FloatRange(0.2, 60), default=1.0, show_default=True, help="Seconds between samples."
)
@click.option("--anonymize", is_flag=True, help="Replace names with digests, and omit free text.")
@click.option("--no-partitions", is_flag=True, help="Omit partitions; a replay then judges but does not plan.")
@click.option(
    "--max-size", type=click.IntRange(1, 100_000), default=500, show_default=True, help="Maximum size in megabytes."
)
def record(**options: Any) -> None:
    """Record signals and verdicts for `bellwether replay`.

    Records the signals and overrides of the brokers, the Kafka metadata, and the operator's decisions. Changes nothing.
    Ctrl-C stops the recording.
    """
    from bellwether.cli.recording.record import record as run

    run(**options)

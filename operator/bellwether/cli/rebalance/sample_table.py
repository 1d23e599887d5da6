"""Table of one sample, printed by ``bellwether sample --once``."""

from __future__ import annotations

from collections.abc import Callable

import click

from bellwether.cli import exit_status
from bellwether.cli.output import print_rows
from bellwether.sampling.rounds import SamplingRound
from bellwether.sampling.rows import Rows


def print_sample(found: SamplingRound, write: Callable[[Rows], int], store: str, output: str) -> int:
    """Write a sample and print the result per broker; returns the exit status. Raises Transient or Terminal."""
    size = write(found.rows)
    print_rows(
        ("BROKER", "LEADERS", "OFFSETS", "SIZES", "MOVED", "MESSAGE"),
        [
            (str(number), str(one.asked), str(len(one.ends)), str(len(one.sizes)), str(one.moved), one.problem)
            for number, one in sorted(found.answers.items())
        ],
        output,
    )
    for what in ("metadata", "consumers"):
        if what in found.troubles:
            click.echo(f"{what}: {found.troubles[what]}", err=output != "table")
    leaderless = sum(leader < 0 for leader in found.rows.leader)
    click.echo(
        f"{len(found.rows)} partitions, {leaderless} without a leader, in {found.seconds:.1f} s; "
        f"{size} bytes written to {store}",
        err=output != "table",
    )
    return exit_status.FOUND if found.troubles else 0

"""One round of samples as a table for a person: what ``bellwether sample --once`` prints."""

from __future__ import annotations

from collections.abc import Callable

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bellwether.sampling.rounds import Round
from bellwether.sampling.rows import Rows


def printed(found: Round, write: Callable[[Rows], int], store: str) -> int:
    """Write a round and print what each broker told of it; the exit status. Raises Transient or Terminal."""
    size = write(found.rows)
    table = Table(box=None, pad_edge=False)
    for heading in ("BROKER", "LEADS", "ENDS", "SIZES", "MOVED", "MESSAGE"):
        table.add_column(heading, justify="left" if heading == "MESSAGE" else "right", overflow="fold")
    for number, told in sorted(found.told.items()):
        counts = (told.asked, len(told.ends), len(told.sizes), told.moved)
        table.add_row(str(number), *(str(count) for count in counts), escape(told.problem))
    Console(highlight=False).print(table)
    for what in ("metadata", "consumers"):
        if what in found.troubles:
            click.echo(f"{what}: {found.troubles[what]}")
    leaderless = sum(leader < 0 for leader in found.rows.leader)
    click.echo(
        f"{len(found.rows)} partitions, {leaderless} without a leader, in {found.seconds:.1f} s; "
        f"{size} bytes written to {store}"
    )
    return 1 if found.troubles else 0

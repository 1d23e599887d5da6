"""Plain text tables; column widths fit the content, also when the output is piped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click


def printed(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table with its header."""
    for line in rows_of(head, rows):
        click.echo(line)


def rows_of(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table with its header."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

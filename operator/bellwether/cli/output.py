"""The option ``-o``, documents and tables as ``table``, ``json`` or ``yaml``, and times as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from bellwether.foreign_text import printable, printable_lines

OUTPUT = click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format.",
)


_CONTROL = re.compile(r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""What JSON leaves as it is and a terminal may obey: control characters, and those that change the direction."""


def print_document(document: Any, output: str) -> None:
    """Print a document as JSON or YAML."""
    click.echo(document_text(document, output), nl=False)


def print_lines(lines: Iterable[str], document: Callable[[], Any], output: str) -> None:
    """Print lines of text, or what a document has of the same."""
    if output != "table":
        print_document(document(), output)
        return
    for line in lines:
        click.echo(printable_lines(line))


def document_text(document: Any, output: str) -> str:
    """A document as JSON or YAML: also of frozen dataclasses, whose fields are in camelCase, and of times."""
    text = json.dumps(document, indent=2, ensure_ascii=False, default=_plain)
    if output == "json":
        return f"{_CONTROL.sub(_escaped, text)}\n"
    import yaml

    plain = json.loads(text)  # without enumerations and tuples
    return str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=_CONTROL.search(text) is None))


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {_field(one.name): getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form as JSON")


def picked(value: object, names: str, **others: Any) -> dict[str, Any]:
    """Some attributes of a value as fields of a document, in camelCase, and after them others."""
    return {**{_field(name): getattr(value, name) for name in names.split()}, **others}


def print_rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], output: str) -> None:
    """Print a table, or a list of documents whose fields are its columns."""
    if output == "table":
        printed(head, rows)
    else:
        names = [_field(name) for name in head]
        print_document([dict(zip(names, row, strict=True)) for row in rows], output)


def _field(name: str) -> str:
    """``EXTERNAL ADDRESS`` as ``externalAddress``."""
    first, *others = re.split(r"[^a-z0-9]+", name.lower())
    return first + "".join(word.title() for word in others)


def printed(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print a table with its header."""
    click.echo("\n".join(rows_of(head, rows)))


def rows_of(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table with its header; column widths fit the content, also when the output is piped."""
    shown = [tuple(map(printable, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    for row in shown:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def clock(moment: datetime) -> str:
    """A time in UTC, to the second."""
    return moment.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def age(moment: datetime, now: datetime) -> str:
    """How long ago: ``2 min 5 s``."""
    return lasting(max(timedelta(0), now - moment))


def lasting(spent: timedelta) -> str:
    """A duration in its two largest units: ``2 min 5 s``."""
    minutes, seconds = divmod(int(spent.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join([f"{n} {unit}" for n, unit in parts if n][:2]) or "0 s"


def ago(moment: datetime, now: datetime) -> str:
    """``2 min 5 s ago``."""
    return f"{age(moment, now)} ago"


def since(moment: datetime, now: datetime) -> str:
    """``since 2026-01-01 00:00:00Z (2 min 5 s ago)``."""
    return f"since {clock(moment)} ({ago(moment, now)})"

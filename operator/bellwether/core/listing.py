"""Lists in messages: the first few names, and how many more there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NAMED = 5
"""How many brokers a message names; the others are counted."""


def few(names: Sequence[object], at_most: int, separator: str = ", ") -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - at_most} more" if len(names) > at_most else ""
    return separator.join(map(str, names[:at_most])) + more


def counted(count: int, noun: str) -> str:
    """A number and its noun, such as ``1 partition`` or ``2 partitions``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def named(brokers: Iterable[int], at_most: int = NAMED) -> str:
    """Brokers by id, in their order, such as ``brokers 1, 2 and 3 more``."""
    ids = list(brokers)
    return f"{'broker' if len(ids) == 1 else 'brokers'} {few(ids, at_most)}"

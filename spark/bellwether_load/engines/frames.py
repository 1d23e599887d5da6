"""What the jobs ask of an engine: frames of record batches, computed part by part.

``spark`` and ``process`` implement both protocols. A part is what one task works on at a time, so work on a part may
hold it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, Self, TypeVar

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Frame(Protocol):
    """Rows in parts. Nothing is computed before :meth:`batches`, and everything again at the next, unless kept."""

    def map(self, work: Work, schema: str) -> Frame:
        """Each part through ``work``. ``schema``: of the result, as Spark writes schemas."""
        ...

    def numbered(self, work: Callable[[int, Batches], Batches], schema: str) -> Frame:
        """As :meth:`map`, with the number of the part."""
        ...

    def select(self, *columns: str) -> Frame:
        """These columns only."""
        ...

    def grouped(self, parts: int, *keys: str) -> Frame:
        """All rows with equal keys in the same part; keys are strings and whole numbers."""
        ...

    def ordered(self, parts: int, *keys: str) -> Frame:
        """Sorted by the keys, the parts one after the other; strings by their bytes in UTF-8."""
        ...

    def union(self, other: Self) -> Self:
        """The parts of both; ``other`` is of the same engine."""
        ...

    def kept(self) -> Frame:
        """The same rows, computed only once, until :meth:`drop`."""
        ...

    def drop(self) -> None:
        """Free what is kept."""
        ...

    def batches(self) -> Batches:
        """Compute, and return the rows to this process. Raises Refused where ``work`` did."""
        ...

    def streamed(self, parts: int, key: str) -> Batches:
        """As :meth:`batches`, all rows with an equal key one after the other, for results that are too large to come
        here at once; an engine may move them in so many parts."""
        ...


class Sent(Protocol[T_co]):
    """A value that work on any part can read."""

    @property
    def value(self) -> T_co:
        """The value."""
        ...

    def destroy(self) -> None:
        """Free its copies."""
        ...


class Messages(Protocol):
    """Messages of work on any part; a repeated one counts once, because tasks may be repeated."""

    def add(self, message: str) -> None:
        """From a part."""
        ...

    def found(self) -> frozenset[str]:
        """All, when the frame has been computed."""
        ...


class Engine(Protocol):
    """Makes frames."""

    most_here: int
    """Up to so many partitions are balanced in this process, without tasks."""

    def each(self, count: int, read: Callable[[int], Batches], schema: str) -> Frame:
        """A frame of so many parts, read by number."""
        ...

    def send(self, value: T) -> Sent[T]:
        """Make a value readable everywhere."""
        ...

    def messages(self) -> Messages:
        """A new collection of messages."""
        ...

"""What the jobs ask of an engine: frames of record batches, computed part by part.

``spark`` and ``process`` implement both protocols. A part is what one task works on at a time, so work on a part may
hold it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]
Work = Callable[[Batches], Batches]


class Frame(Protocol):
    """Rows in parts. Nothing is computed before :meth:`batches`, and everything again at the next, unless kept."""

    def map(self, work: Work, schema: str) -> Frame:
        """Each part through ``work``. ``schema``: of the result, as Spark writes schemas."""
        ...

    def numbered(self, work: Callable[[int, Batches], Batches], schema: str) -> Frame:
        """As :meth:`map`, with the number of the part."""
        ...

    def grouped(self, parts: int, *keys: str) -> Frame:
        """All rows with equal keys in the same part; keys are strings and whole numbers."""
        ...

    def ordered(self, parts: int, *keys: str) -> Frame:
        """Sorted by the keys, the parts one after the other; strings by their bytes in UTF-8."""
        ...

    def kept(self) -> Frame:
        """The same rows, computed only once, until :meth:`drop`."""
        ...

    def drop(self) -> None:
        """Free what is kept."""
        ...

    def batches(self) -> Batches:
        """Compute, and return the rows to this process."""
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

    def each(self, count: int, read: Callable[[int], Batches], schema: str) -> Frame:
        """A frame of so many parts, read by number."""
        ...

    def messages(self) -> Messages:
        """A new collection of messages."""
        ...

"""A store whose process is killed at a chosen touch of the file system: before it, or just after.

In: a directory and the number of the touch. Out: a ``Store`` that raises ``Killed`` there, and at every later touch, as
the dead clean up nothing. What was done until then stays.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyarrow import fs

from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_uri import Redacted

_CHANGING = ("create_dir", "delete_dir", "delete_file", "move", "open_output_stream")


class Killed(BaseException):
    """The end of the process."""


class MortalSystem:
    """The local file system until the end."""

    def __init__(self, touches: int, *, after: bool) -> None:
        self._system = fs.LocalFileSystem()
        self._left = touches
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._system, name)
        if name in _CHANGING:
            return lambda *args, **kwargs: self._touch(found, args, kwargs)
        return found

    def _touch(self, do: Any, args: Any, kwargs: Any) -> Any:
        if self._left < 0 or (self._left == 0 and not self._after):
            self._left = -1
            raise Killed
        self._left -= 1
        done = do(*args, **kwargs)
        if self._left < 0:
            raise Killed
        return done


def mortal(directory: Path, touches: int, *, after: bool) -> Store:
    """A store in that directory that ends at its ``touches``-th change, counted from 0."""
    return Store(MortalSystem(touches, after=after), str(directory), Redacted(str(directory)))


def folder() -> tempfile.TemporaryDirectory[str]:
    """A directory of its own for each example."""
    return tempfile.TemporaryDirectory(prefix="store-")

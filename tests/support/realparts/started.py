"""A part that runs for as long as a ``with`` statement: started at its beginning, stopped however it ends."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Started:
    """What has a ``start`` and a ``stop``; both may be called by hand as well."""

    def start(self) -> None:
        """Start it and wait until it serves."""
        raise NotImplementedError

    def stop(self) -> None:
        """End it; nothing happens where it does not run."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

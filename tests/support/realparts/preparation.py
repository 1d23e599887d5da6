"""Makes several parts side by side: what is fetched in a few threads, what is compiled one after another next to it.

In: parts. Out: their paths, each as soon as it is there; the first failure ends all. Called by ``prepare`` and by the
demo, which starts Kafka while the API server is still compiled.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from realparts import cache, causes, gotools, toolruns
from realparts.parts import Part
from realparts.progress import reported_to
from realparts.toolruns import DownloadFailed

FETCHED_AT_ONCE = 4
TICK_SECONDS = 0.2

T = TypeVar("T")


@dataclass
class Step:
    """How far one thing is. Times are those of the monotonic clock."""

    name: str
    doing: str = ""
    started: float | None = None
    ended: float | None = None
    failed: str = ""
    skipped: str = ""

    def say(self, line: str) -> None:
        """What it does now."""
        self.doing = line


@dataclass
class Preparation:
    """A context manager: begins on entry; what is still at work at its exit is ended."""

    parts: Sequence[Part]
    further: Iterable[str] = ()
    """Steps that the caller takes itself (``step``), to be counted with the parts."""
    steps: dict[str, Step] = field(init=False)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.steps = {name: Step(name) for name in (*(part.name for part in self.parts), *self.further)}
        self._fetching = ThreadPoolExecutor(FETCHED_AT_ONCE)
        self._compiling = ThreadPoolExecutor(1)
        self._made: dict[str, Future[Path | None]] = {}

    def __enter__(self) -> Self:
        _on_this_disk(cache.clear_scratch)
        for part in self.parts:
            if not part.compiles:
                self._made[part.name] = self._fetching.submit(self._make, part)
        for part in self.parts:
            if part.tool is not None and part.compiles:
                sources = self._fetching.submit(self._fetch_modules, part.name, part.tool)
                self._made[part.name] = self._compiling.submit(self._make, part, sources)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if any(not future.done() for future in self._made.values()):
            toolruns.stop_all()
        for pool in (self._fetching, self._compiling):
            pool.shutdown(cancel_futures=True)

    def wait(self, *names: str) -> dict[str, Path]:
        """Wait for these parts, or for all; skipped ones are left out. Raises DownloadFailed as soon as any fails."""
        wanted = names or tuple(self._made)
        while True:
            for future in self._made.values():
                if future.done() and (problem := future.exception()):
                    raise problem
            pending = [self._made[name] for name in wanted if not self._made[name].done()]
            if not pending:
                break
            wait(pending, TICK_SECONDS, FIRST_COMPLETED)
        return {name: path for name in wanted if (path := self._made[name].result())}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step that the caller takes; what this thread says is shown as its progress."""
        step = self.steps[name]
        step.started = time.monotonic()
        with reported_to(step.say):
            yield
        step.ended = time.monotonic()

    def _fetch_modules(self, name: str, tool: gotools.GoTool) -> None:
        with reported_to(self.steps[name].say):
            _on_this_disk(lambda: gotools.modules(tool))

    def _make(self, part: Part, sources: Future[None] | None = None) -> Path | None:
        step = self.steps[part.name]
        if sources is not None:
            sources.result()
        try:
            with self.step(part.name):
                return _on_this_disk(part.make)
        except DownloadFailed as problem:
            if not part.optional:
                step.failed = str(problem)
                raise
            step.skipped = str(problem)
            return None


def _on_this_disk(make: Callable[[], T]) -> T:
    """Do it, and turn what the system says of the disk into DownloadFailed."""
    try:
        return make()
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise DownloadFailed(f"{problem}") from problem
        free = shutil.disk_usage(cache.root()).free / 1e6
        raise DownloadFailed(f"{cache.root()}: {causes.DISK_FULL} ({free:,.0f} MB are free)") from problem

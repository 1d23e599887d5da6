"""What the jobs ask of an engine: the same function for many tasks, each on its own.

A task reads and writes the store itself and returns little, so nothing is shuffled, broadcast or collected, and a task
that is repeated after the loss of an executor does no harm: it writes the same file again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs tasks."""

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results, in the order of the tasks. Raises what ``work`` raises: BellwetherError as it is."""
        ...


class ProcessEngine:
    """Implements ``Engine`` in this process, one task after the other."""

    def run(self, work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """See ``Engine``."""
        return [work(task) for task in tasks]

"""Has the real parts ready before the stage starts them: Kafka as soon as its parts are there, while others are still
compiled.

In: a console. Out: what is done and what is still to come, in one view, and what the demo will do. Called by
``__main__``; ``stage`` starts Kafka and the API server within ``kafka`` and ``bellwether``.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from demo.settings import Settings
from demo.steps import about, steps
from realparts.parts import Use, used_by
from realparts.preparation import Preparation
from realparts.preparation_view import PreparationView

FOR_KAFKA = ("java", "kafka", "slowdisk", "toxiproxy")
KAFKA, BELLWETHER = "start Kafka", "start Bellwether"

FAULTS = {
    "listener": "One broker's external listener is cut and repaired.",
    "disk": "A broker's disk becomes slow: it is shut down in order and held. Then the disk is repaired.",
}
FIRST_TIME = (
    "The first time, parts are fetched and the Kubernetes API server is compiled: about 7 minutes on two idle cores."
    " What is complete is kept, so an interrupted run continues where it ended."
)


class AlreadyRunning(RuntimeError):
    """Another demo runs in this clone."""


def introduction(settings: Settings) -> str:
    """What will be seen, and how long it takes."""
    faults = " ".join([FAULTS[settings.only]] if settings.only else FAULTS.values())
    seconds = sum(step.seconds for step in steps(settings, range(settings.brokers)))
    return (
        "A real Kafka cluster, real clients and Bellwether run on this machine, as plain processes."
        f" {faults} You see leaders move away and come back, and at the end what clients measured."
        f" That takes {about(seconds)} once everything is up."
    )


class Startup:
    """A context manager around the start of everything."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self._console, self._settings = console, settings
        self._stack = ExitStack()
        self._preparation = Preparation(used_by(Use.DEMO), further=(KAFKA, BELLWETHER))

    def __enter__(self) -> Self:
        """Begin with the preparation. Raises DownloadFailed."""
        self._console.print(introduction(self._settings), highlight=False)
        if any(part.compiles for part in self._preparation.parts):
            self._console.print(FIRST_TIME, highlight=False)
        self._stack.enter_context(self._preparation)
        self._stack.enter_context(PreparationView(self._preparation, self._console, "getting ready"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, problem, trace)

    @contextmanager
    def kafka(self) -> Iterator[None]:
        """Around the start of Kafka: waits for its parts. Raises DownloadFailed."""
        self._preparation.wait(*FOR_KAFKA)
        with self._preparation.step(KAFKA):
            yield
        self._console.print("Kafka is up, with its topics and a load balancer before each broker", highlight=False)

    @contextmanager
    def bellwether(self) -> Iterator[None]:
        """Around the start of API server, operator and probers: waits for all parts. Raises DownloadFailed."""
        self._preparation.wait()
        with self._preparation.step(BELLWETHER):
            yield


@contextmanager
def alone(reports: Path) -> Iterator[None]:
    """Hold the folder of the reports, which two demos would overwrite for each other. Raises AlreadyRunning."""
    reports.mkdir(parents=True, exist_ok=True)
    with (reports / ".demo.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(
                f"another demo is running and writes to {reports}: wait for its end,"
                " or give this one a folder of its own (make demo DEMO_ARGS='--reports FOLDER')"
            ) from None
        yield

"""Shows the run: the story's sentences, which stay, and beneath them a table that is redrawn twice a second.

Where there is no terminal (a CI log, a pipe) a line is written in place of the table whenever a verdict or a count of
leaders changes. In: a console and a function that gives the scene. Called by ``__main__`` and ``keeping``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.picture import Picture
from demo.table import Scene, drawn, logged

REDRAW_SECONDS = 0.5
STAMP, LABEL = 6, 14
"""Columns of the time and of what a sentence is about."""


class Story:
    """Prints steps and sentences with the seconds since the start."""

    def __init__(self, console: Console, started: float, picture: Picture | None = None) -> None:
        self._consoles = (console, picture.console) if picture else (console,)
        self._started = started

    def step(self, heading: str) -> None:
        """A step begins."""
        for console in self._consoles:
            console.print()
        self._print(Text(heading, style="bold"))

    def say(self, label: str, sentence: str) -> None:
        """Something happened."""
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_column(width=LABEL, no_wrap=True, style="cyan")
        row.add_column()
        row.add_row(label, Text(sentence))
        self._print(row)

    def show(self, command: str, output: str) -> None:
        """What a command prints, up to its first empty line."""
        self._print(Text(f"$ {command}", style="bold"))
        self._print(Text(output.partition("\n\n")[0], style="dim"))

    def _print(self, what: Text | Table) -> None:
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=STAMP, no_wrap=True, justify="right", style="dim")
        line.add_column()
        line.add_row(f"{time.monotonic() - self._started:.0f} s", what)
        for console in self._consoles:
            console.print(line)


class Screen:
    """Shows scenes from a thread of its own, from ``__enter__`` to ``__exit__``."""

    def __init__(self, console: Console, scene: Callable[[], Scene], picture: Picture | None = None) -> None:
        self._console = console
        self._scene = scene if picture is None else lambda: picture.after(scene())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Screen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    def _show(self) -> None:
        if self._console.is_terminal:
            with Live(console=self._console, auto_refresh=False, transient=True) as live:
                while True:
                    live.update(drawn(self._scene()), refresh=True)
                    if self._stop.wait(REDRAW_SECONDS):
                        return
        before = ""
        while True:
            scene = self._scene()
            if (line := logged(scene)) != before:
                self._console.print(f"{scene.elapsed:4.0f} s  {line}", highlight=False, soft_wrap=True)
                before = line
            if self._stop.wait(REDRAW_SECONDS):
                return

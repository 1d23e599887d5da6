"""What a person sees while the demo runs. In: what is known at this moment. Out: a live table, or plain lines.

On a terminal the table is redrawn twice a second. Elsewhere (a CI log, a pipe) one line is written whenever the step, a
verdict or a count of leaders changes. Called by ``__main__``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from demo.health import BrokerWord, Words
from demo.latencies import Latency, summarise
from demo.samples import Kind, Sample

REDRAW_SECONDS = 0.5
RECENT_SECONDS = 5.0
COLOURS = {"Healthy": "green", "Recovering": "cyan", "Suspect": "yellow", "Sick": "bold red", "Down": "bold red"}
SIGNALS = ("ExternalReachability", "StorageLatency")


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment: what goes on, what Bellwether says, what the demo's own clients see."""

    step: str
    elapsed: float
    words: Words
    leaders: dict[int, int]
    recent: dict[Kind, Latency]


def recent(samples: tuple[Sample, ...], now: float) -> dict[Kind, Latency]:
    """The latencies of the records that were finished in the last seconds."""
    lately = [s for s in samples[-3000:] if s.done > now - RECENT_SECONDS]
    return {kind: summarise(lately, kind, float("-inf"), float("inf")) for kind in Kind}


def drawn(scene: Scene) -> Group:
    """The scene as a table."""
    table = Table(title=f"{scene.elapsed:5.0f} s  {scene.step}", title_justify="left", title_style="bold")
    for name in ("broker", "verdict", "reason", "since", "leaders", "reach ms", "disk ms"):
        table.add_column(name, justify="right" if name in ("leaders", "reach ms", "disk ms") else "left")
    for broker in sorted({*scene.leaders, *scene.words.brokers}):
        word = scene.words.brokers.get(broker, BrokerWord(broker))
        verdict = Text(word.verdict, style=COLOURS.get(word.verdict, "dim"))
        if word.demoted:
            verdict.append(" (demoted)", style="magenta")
        latencies = (_number(word.latencies.get(kind)) for kind in SIGNALS)
        clock = word.since[11:19] if len(word.since) >= 19 else word.since
        table.add_row(str(broker), verdict, word.reason, clock, str(scene.leaders.get(broker, 0)), *latencies)
    clients = "   ".join(
        f"{kind.value} p50 {_number(latency.p50_ms)} p99 {_number(latency.p99_ms)}"
        for kind, latency in scene.recent.items()
    )
    return Group(
        table,
        Text(f"policy: {scene.words.ready or 'not read yet'}", overflow="ellipsis", no_wrap=True),
        Text(f"last {RECENT_SECONDS:.0f} s, ms: {clients}", style="dim"),
    )


def told(scene: Scene) -> str:
    """The scene as one line, without what changes all the time: equal lines are printed once."""
    words = []
    for broker in sorted({*scene.leaders, *scene.words.brokers}):
        word = scene.words.brokers.get(broker, BrokerWord(broker))
        demoted = " (demoted)" if word.demoted else ""
        words.append(f"{broker}: {word.verdict}{demoted} {word.reason} leads {scene.leaders.get(broker, 0)}")
    return f"{scene.step} | {', '.join(words)}"


class Screen:
    """Shows scenes from a thread of its own, from ``__enter__`` to ``__exit__``."""

    def __init__(self, console: Console, scene: Callable[[], Scene]) -> None:
        self._console = console
        self._scene = scene
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
            with Live(console=self._console, auto_refresh=False, transient=False) as live:
                while True:
                    live.update(drawn(self._scene()), refresh=True)
                    if self._stop.wait(REDRAW_SECONDS):
                        return
        before = ""
        while True:
            scene = self._scene()
            if (line := told(scene)) != before:
                self._console.print(f"{scene.elapsed:6.1f} s  {line}", highlight=False, soft_wrap=True)
                before = line
            if self._stop.wait(REDRAW_SECONDS):
                return


def clock(started: float) -> float:
    """Seconds since the demo began."""
    return time.monotonic() - started


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"

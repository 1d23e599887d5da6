"""One moment as a table, or as one line for a log. Pure: a ``Scene`` in, text out; ``screen`` shows it.

Columns have fixed widths that fit 80 columns, so that nothing jumps and no reason is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from demo.health import BrokerWord, Words
from demo.latencies import Latency, spoken, summarise
from demo.samples import Kind, Sample

RECENT_SECONDS = 5.0
COLOURS = {"Healthy": "green", "Recovering": "cyan", "Suspect": "yellow", "Sick": "bold red", "Down": "bold red"}
# The longest verdict is Recovering, the longest reason ExternallyUnreachable.
COLUMNS = {"broker": 6, "verdict": 10, "reason": 21, "action": 7, "leaders": 7, "reach ms": 8, "disk ms": 7}
NUMBERS = ("leaders", "reach ms", "disk ms")
SIGNALS = ("ExternalReachability", "StorageLatency")


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment: what goes on, what Bellwether says, what the demo's own clients see.

    ``waiting`` is how many writes were due more than a second ago and are not acknowledged.
    """

    step: str
    elapsed: float
    words: Words
    leaders: dict[int, int]
    recent: dict[Kind, Latency]
    waiting: int = 0


def recent(samples: Sequence[Sample], now: float) -> dict[Kind, Latency]:
    """The latencies of the records that were finished in the last seconds."""
    lately = [s for s in samples[-3000:] if s.done > now - RECENT_SECONDS]
    return {kind: summarise(lately, kind, float("-inf"), float("inf")) for kind in Kind}


def drawn(scene: Scene) -> RenderableType:
    """The scene as a table."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name, width in COLUMNS.items():
        table.add_column(name, width=width, no_wrap=True, justify="right" if name in NUMBERS else "left")
    for broker in sorted({*scene.leaders, *scene.words.brokers}):
        word = scene.words.of(broker)
        table.add_row(
            str(broker),
            Text(word.verdict, style=COLOURS.get(word.verdict, "dim")),
            word.reason,
            Text(_action(word), style="magenta"),
            f"{scene.leaders.get(broker, 0):,}",
            *(_number(word.latencies.get(kind)) for kind in SIGNALS),
        )
    p99 = ", ".join(f"{kind.value} {spoken(latency.p99_ms)}" for kind, latency in scene.recent.items())
    return Group(
        Rule(style="dim"),
        _line(f"{scene.elapsed:4.0f} s  {scene.step}", "bold"),
        table,
        _line(f"policy   {scene.words.ready or 'not read yet'}", "dim"),
        _line(f"p99 now  {p99}", "dim"),
        _line(f"waiting  {scene.waiting:,} writes are more than 1 s late", "red" if scene.waiting else "dim"),
    )


def logged(scene: Scene) -> str:
    """The scene as one line for a log, without what changes all the time: equal lines are printed once."""
    leaders = " + ".join(f"{count:,}" for _, count in sorted(scene.leaders.items()))
    every_broker = [scene.words.of(broker) for broker in sorted(scene.leaders)]
    words = [_word(word) for word in every_broker if word.verdict != "Healthy" or _action(word)]
    return f"leaders {leaders}" + (f"; {', '.join(words)}" if words else "")


def _word(word: BrokerWord) -> str:
    known = ", ".join(part for part in (word.reason, _action(word)) if part)
    return f"broker {word.broker} {word.verdict}" + (f" ({known})" if known else "")


def _action(word: BrokerWord) -> str:
    """What Bellwether has done to a broker."""
    return "held" if word.held else "demoted" if word.demoted else ""


def _line(text: str, style: str) -> Text:
    return Text(text, style=style, overflow="ellipsis", no_wrap=True)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"

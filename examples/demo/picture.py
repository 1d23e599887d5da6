"""Draw a run as a moving picture: an SVG of the terminal, the last sentences above the live table, six times as fast.

In: what is printed, and a scene every few seconds. Out: one SVG file without scripts or fonts of its own. It shows its
last frame where motion is unwanted. Called by ``__main__`` for ``--picture``.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.terminal_theme import SVG_EXPORT_THEME as THEME
from rich.text import Text

from demo.table import Scene, drawn

COLUMNS, ROWS = 80, 30
EVERY_SECONDS = 4.0
SHOWN_SECONDS = 0.65
LAST_SECONDS = 8.0
CHARACTER, LINE, SIZE, EDGE = 8.43, 18, 14, 14
"""Pixels: a character's width, a line's height, the font's size, the space around."""

Row = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What the terminal shows for some seconds of the picture."""

    rows: tuple[Row, ...]
    seconds: float


class Picture:
    """Collects frames of a run; ``console`` is where sentences are printed for it as well."""

    def __init__(self) -> None:
        self._printed = io.StringIO()
        self.console = Console(file=self._printed, width=COLUMNS, force_terminal=True, color_system="truecolor")
        self._frames: list[Frame] = []
        self._next = 0.0

    def after(self, scene: Scene) -> Scene:
        """The scene as it was given; it becomes a frame if enough time has passed since the last one."""
        if scene.elapsed >= self._next:
            self._next = scene.elapsed + EVERY_SECONDS
            below = self._rows(drawn(scene))
            above = self._said()[-(ROWS - len(below)) :]
            self._frames.append(Frame((*above, *below), SHOWN_SECONDS))
        return scene

    def save(self, file: Path) -> None:
        """Write the picture, which ends with what was printed last."""
        frames = [*self._frames, Frame(tuple(self._said()[-ROWS:]), LAST_SECONDS)]
        file.write_text(svg(frames))

    def _said(self) -> list[Row]:
        text = self._printed.getvalue()
        return self._rows(Text.from_ansi(text)) if text else []

    def _rows(self, what: RenderableType) -> list[Row]:
        return [tuple(line) for line in self.console.render_lines(what, pad=False)]


def svg(frames: list[Frame]) -> str:
    """The frames one after the other, again and again."""
    total = sum(frame.seconds for frame in frames)
    width, height = COLUMNS * CHARACTER + 2 * EDGE, ROWS * LINE + 2 * EDGE
    style = [
        f"text{{font-size:{SIZE}px;font-family:ui-monospace,Menlo,Consolas,monospace;white-space:pre}}g{{visibility:hidden}}"
    ]
    style.append("g:last-of-type{visibility:visible}")
    moving, drawn, begun = [], [], 0.0
    for number, frame in enumerate(frames):
        first, last = (100 * seconds / total for seconds in (begun, begun + frame.seconds))
        begun += frame.seconds
        shown = f"0%{{visibility:hidden}}{first:.2f}%{{visibility:visible}}{last:.2f}%{{visibility:hidden}}"
        moving.append(
            f"@keyframes f{number}{{{shown}}}#f{number}{{animation:f{number} {total:.1f}s steps(1) infinite}}"
        )
        rows = "".join(_row(row, EDGE + LINE * (at + 0.75)) for at, row in enumerate(frame.rows))
        drawn.append(f'<g id="f{number}">{rows}</g>')
    style.append(f"@media (prefers-reduced-motion:no-preference){{{''.join(moving)}}}")
    background = THEME.background_color.hex
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
        f"<title>make demo</title><style>{''.join(style)}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>\n' + "\n".join(drawn) + "\n</svg>\n"
    )


def _row(row: Row, y: float) -> str:
    parts, column = [], 0
    for text, style, _ in row:
        if text.strip():
            colour = style.color.get_truecolor(THEME) if style and style.color else THEME.foreground_color
            marks = ' font-weight="bold"' if style and style.bold else ' opacity=".6"' if style and style.dim else ""
            place = f'x="{EDGE + column * CHARACTER:.0f}" y="{y:.0f}" textLength="{len(text) * CHARACTER:.0f}"'
            parts.append(f'<text {place} fill="{colour.hex}"{marks}>{escape(text)}</text>')
        column += len(text)
    return "".join(parts)

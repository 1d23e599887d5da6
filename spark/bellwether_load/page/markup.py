"""Text into HTML. Whatever is not marked up already is escaped, so that a topic's name cannot become part of a page.

The output is well-formed XML, too: every element is closed, every attribute quoted, and no character is left that a
page must not hold or that would change the direction of the text around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from bellwether.foreign_text import printable_lines

VOID = frozenset({"meta", "line", "rect"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None


def tag(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """An element. ``None`` is left out; ``class_`` is ``class``, and other underscores become hyphens."""
    said = "".join(f' {_attribute(key)}="{text(value)}"' for key, value in attributes.items() if value is not None)
    if name in VOID and not children:
        return Markup(f"<{name}{said}/>")
    return Markup(f"<{name}{said}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup("".join(text(child) for child in children if child is not None))


def table(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Child]],
    *,
    caption: str | None = None,
    this: int = -1,
) -> Markup:
    """A table that is scrolled where it is too wide. ``columns``: name and class (``n``: figures, ``name``: long names,
    ``wide``: not on phones); ``this``: the row that is marked.
    """
    kinds = [kind or None for _, kind in columns]
    head = tag("tr", *(tag("th", name, class_=kind) for (name, _), kind in zip(columns, kinds, strict=True)))
    body = (
        tag(
            "tr",
            *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)),
            class_="this" if number == this else None,
        )
        for number, row in enumerate(rows)
    )
    return tag("div", tag("table", tag("caption", caption) if caption else None, head, *body), class_="scroll")


def section(title: str, *children: Child, long: bool = False) -> Markup:
    """A part of a page; a long one may be cut between two sheets of paper."""
    return tag("section", tag("h2", title), *children, class_="long" if long else None)


def text(child: Child) -> str:
    """A child as HTML: as it is when it is marked up, else escaped."""
    if isinstance(child, Markup):
        return child
    return escape(printable_lines(child), quote=True)


def _attribute(key: str) -> str:
    # SVG has a few names in camel case, which stay.
    return key.rstrip("_").replace("_", "-")


# Before and after differ by shape as well as by hue, and the hues are those of Okabe and Ito.
STYLE = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --text: #1c1e21; --soft: #5b6168; --line: #dcdee1;
  --grid: #e9eaec; --before: #d55e00; --after: #0072b2; --shut: #8a9097; --code: #f1f2f4; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1c2024; --text: #e8eaed; --soft: #a3aab2;
  --line: #343a41; --grid: #2a3036; --before: #e69f00; --after: #56b4e9; --shut: #8a9097; --code: #262b31; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 24px 20px 48px; }
h1 { font-size: 23px; line-height: 1.2; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 6px 0; } .soft { color: var(--soft); } .lead { font-size: 17px; margin: 10px 0; max-width: 62em; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 14px 18px;
  margin: 14px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 12px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile.main { border: 2px solid var(--after); } .tile span { color: var(--soft); font-size: 13px; display: block; }
.scroll { overflow-x: auto; } td.rack { min-width: 7em; overflow-wrap: anywhere; }
svg { display: block; max-width: 100%; height: auto; } svg.bar { min-width: 120px; }
.after-bar { fill: var(--after); } .shut { fill: var(--shut); }
.bound { stroke: var(--text); stroke-width: 1.6; stroke-dasharray: 5 3; }
.before-mark { stroke: var(--before); stroke-width: 3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { color: var(--soft); font-weight: 500; } .n { text-align: right; } td.n { white-space: nowrap; }
td.name { overflow-wrap: anywhere; min-width: 10em; max-width: 34em; } td.bar { width: 42%; padding-right: 0; }
tr.this td { font-weight: 600; } caption { text-align: left; color: var(--soft); padding-bottom: 4px; }
code, pre { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; font-size: 13px;
  background: var(--code); border-radius: 4px; padding: 1px 4px; overflow-wrap: anywhere; }
pre { padding: 9px 12px; white-space: pre-wrap; margin: 8px 0; }
.keys { display: flex; flex-wrap: wrap; gap: 4px 20px; color: var(--soft); font-size: 13px; margin: 6px 0; }
.keys svg { display: inline-block; vertical-align: middle; margin-right: 6px; }
summary { cursor: pointer; color: var(--soft); }
@media (max-width: 760px) { main { padding: 14px 10px 32px; } section { padding: 12px; } svg.bar { min-width: 80px; }
  .wide { display: none; }
  td.name { min-width: 7em; } td.bar { width: 34%; } th, td { padding-right: 9px; } table { font-size: 13px; }
  .lead { font-size: 16px; } .tiles { grid-template-columns: 1fr 1fr; }
  .tile.main { grid-column: 1 / -1; } .tile b { font-size: 17px; } }
@media print {
  :root { --page: #fff; --card: #fff; --text: #000; --soft: #444; --line: #bbb; --grid: #ddd; --before: #d55e00;
    --after: #0072b2; --code: #f4f4f4; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } main { padding: 0; max-width: none; }
  table { font-size: 9pt; } body { font-size: 11pt; }
  section, .tile { break-inside: avoid; } section.long { break-inside: auto; }
}
"""

"""Text into HTML. Whatever is not marked up already is escaped, so that a topic's name cannot become part of a page.

The output is well-formed XML, too: every element is closed, every attribute quoted, and no character is left that a
page must not hold or that would change the direction of the text around it.
"""

from __future__ import annotations

from html import escape

VOID = frozenset({"meta", "br", "line", "rect", "circle", "path", "polyline", "col"})


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


def text(child: Child) -> str:
    """A child as HTML: as it is when it is marked up, else escaped."""
    if isinstance(child, Markup):
        return child
    plain = "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(child))
    return escape(plain, quote=True)


def _attribute(key: str) -> str:
    # SVG has a few names in camel case, which stay.
    return key.rstrip("_").replace("_", "-")


# Before and after differ by shape and line as well as by hue, and by hues of every kind of colour vision.
STYLE = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --text: #1c1e21; --soft: #5b6168; --line: #dcdee1;
  --grid: #e9eaec; --before: #d55e00; --after: #0072b2; --shut: #8a9097; --code: #f1f2f4; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1c2024; --text: #e8eaed; --soft: #a3aab2;
  --line: #343a41; --grid: #2a3036; --before: #e69f00; --after: #56b4e9; --shut: #8a9097;
  --code: #262b31; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); line-height: 1.45;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 25px; line-height: 1.2; margin: 0 0 4px; } h2 { font-size: 18px; margin: 0 0 4px; }
p { margin: 6px 0; } .soft { color: var(--soft); } .lead { font-size: 17px; margin: 14px 0 18px; max-width: 62em; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 16px 18px;
  margin: 16px 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 12px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; display: block; }
.scroll { overflow-x: auto; } svg { display: block; max-width: 100%; height: auto; } svg.wide { min-width: 720px; }
svg text { fill: var(--text); font-size: 12px; font-family: inherit; } svg text.soft { fill: var(--soft); }
svg text.end { text-anchor: end; } svg text.middle { text-anchor: middle; } svg text.strong { font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.bound { stroke: var(--text); stroke-width: 1.6; stroke-dasharray: 7 4; fill: none; }
.after-bar { fill: var(--after); } .after-line { stroke: var(--after); stroke-width: 2.2; fill: none; }
.after-dot { fill: var(--after); fill-opacity: .8; } .after-range { fill: var(--after); fill-opacity: .35; }
.before-dot { fill: var(--card); fill-opacity: .85; stroke: var(--before); stroke-width: 2; }
.before-line { stroke: var(--before); stroke-width: 2; stroke-dasharray: 3 2.5; fill: none; }
.before-range { fill: var(--before); fill-opacity: .3; } .whisker { stroke: var(--soft); stroke-width: 1.2; }
.before-median { stroke: var(--before); stroke-width: 2.5; } .after-median { stroke: var(--after); stroke-width: 2.5; }
.link { stroke: var(--soft); stroke-width: 1; } .shut { fill: var(--shut); } .now { fill: var(--text); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { color: var(--soft); font-weight: 500; } td.n, th.n { text-align: right; } td.n { white-space: nowrap; }
td.why { min-width: 8em; }
td.name { overflow-wrap: anywhere; min-width: 14em; max-width: 34em; }
tr.this td { font-weight: 600; }
caption { text-align: left; white-space: nowrap; color: var(--soft); padding-bottom: 4px; }
code, pre { font-family: ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; font-size: 13px; }
code { background: var(--code); border-radius: 4px; padding: 1px 4px; overflow-wrap: anywhere; }
pre { background: var(--code); border-radius: 6px; padding: 10px 12px; overflow-x: auto; white-space: pre-wrap;
  overflow-wrap: anywhere; margin: 8px 0; }
.keys { display: flex; flex-wrap: wrap; gap: 4px 20px; color: var(--soft); font-size: 13px; margin: 6px 0; }
.keys svg { display: inline-block; vertical-align: middle; margin-right: 6px; }
.for-narrow { display: none; }
@media (max-width: 760px) { main { padding: 18px 10px 32px; } section { padding: 12px; } .for-wide { display: none; }
  .for-narrow { display: block; } .for-narrow svg { width: 100%; max-width: 460px; } td.name { min-width: 7em; }
  th, td { padding-right: 9px; } table { font-size: 13px; } }
.side { display: flex; flex-wrap: wrap; gap: 18px 8px; } summary { cursor: pointer; color: var(--soft); }
@media print {
  :root { --page: #fff; --card: #fff; --text: #000; --soft: #444; --line: #bbb; --grid: #ddd; --before: #d55e00;
    --after: #0072b2; --code: #f4f4f4; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } main { padding: 0; max-width: none; }
  .for-wide { display: block; } .for-narrow { display: none; }
  table { font-size: 9pt; } svg.wide { min-width: 0; }
  .side { flex-wrap: nowrap; } .side svg { flex: 1 1 0; min-width: 0; }
  section, .tile { break-inside: avoid; } section.long { break-inside: auto; } body { font-size: 11pt; }
}
"""

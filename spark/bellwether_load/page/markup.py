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

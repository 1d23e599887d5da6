"""HTML page of a simulation: a lane for each broker with its state and leaders over time, and what happened.

In: spans of each broker and rows of text. Out: HTML, the same for the same input. Called by ``bellwether simulate
--html``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bellwether.pages.charts import WIDTH, drawing, line, words
from bellwether.pages.markup import Child, Markup, join, tag
from bellwether.pages.page_style import STYLE

LANES = 60
"""Brokers that the picture shows: first those that are not always Healthy."""

_LEFT, _RIGHT, _TOP, _LANE = 90, WIDTH - 20, 16, 26
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STATES = ("Healthy", "Suspect", "Sick", "Recovering", "Down", "Unknown")
_STYLE = """
.Healthy { fill: #009e73; fill-opacity: .25; } .Suspect { fill: #f0e442; fill-opacity: .7; } .Sick { fill: #d55e00; }
.Recovering { fill: #56b4e9; } .Down { fill: #222; } .Unknown { fill: #8a9097; fill-opacity: .5; }
.demoted { stroke: var(--text); stroke-width: 3; } svg text.lane { font-size: 11px; }
"""


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds in which a broker's state, demotion and number of leaders were the same."""

    start: int
    end: int
    state: str
    demoted: bool
    leaders: int


def simulation_page(title: str, seconds: int, brokers: Mapping[int, Sequence[Span]], rows: Sequence[str]) -> str:
    """The page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(STYLE + _STYLE)),
    )
    shown = sorted(brokers, key=lambda b: (all(span.state == "Healthy" for span in brokers[b]), b))[:LANES]
    hidden = len(brokers) - len(shown)
    more = tag("p", f"{hidden} more brokers are not shown.", class_="soft") if hidden else None
    states = join(*(_key(state) for state in _STATES))
    picture = tag(
        "section",
        tag("h2", "Brokers over time"),
        tag("div", states, tag("span", "line below: demoted; number: leaders"), class_="keys"),
        _picture(seconds, {broker: brokers[broker] for broker in sorted(shown)}),
        more,
    )
    happened = tag("section", tag("h2", "What happens"), tag("pre", "\n".join(rows)), class_="long")
    page = tag("html", head, tag("body", tag("main", tag("h1", title), picture, happened)), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _key(state: str) -> Markup:
    sample = tag("rect", x=2, y=2, width=20, height=10, class_=state)
    return tag("span", tag("svg", sample, width=24, height=14, viewBox="0 0 24 14", aria_hidden="true"), state)


def _picture(seconds: int, brokers: Mapping[int, Sequence[Span]]) -> Markup:
    bottom = _TOP + _LANE * len(brokers)

    def place(second: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * second / max(seconds, 1), 1)

    parts: list[Child] = []
    for number in range(11):
        second = seconds * number / 10
        x = place(second)
        parts += [line(x, _TOP, x, bottom, "grid"), words(x, bottom + 16, f"{second:g} s", "soft middle")]
    for lane, (broker, spans) in enumerate(brokers.items()):
        y = _TOP + lane * _LANE
        parts.append(words(_LEFT - 8, y + 17, f"broker {broker}", "end"))
        for span in spans:
            parts += _span(span, place(span.start), place(span.end), y)
    text = "; ".join(f"broker {b}: {' '.join(dict.fromkeys(s.state for s in spans))}" for b, spans in brokers.items())
    return drawing(WIDTH, bottom + 24, "State and leaders of each broker over time", text[:2000], *parts)


def _span(span: Span, left: float, right: float, y: float) -> list[Child]:
    width = round(max(right - left, 0.5), 1)
    what = f"{span.start} to {span.end} s: {span.state}, {'demoted, ' if span.demoted else ''}{span.leaders} leaders"
    parts: list[Child] = [
        tag("rect", tag("title", what), x=left, y=y + 3, width=width, height=_LANE - 8, class_=span.state)
    ]
    if span.demoted:
        parts.append(line(left, y + _LANE - 3, left + width, y + _LANE - 3, "demoted"))
    if width > 7 * len(str(span.leaders)) + 6:
        parts.append(words(left + 4, y + 17, str(span.leaders), "lane"))
    return parts

"""A dashboard as an HTML page: its panels in Grafana's grid, with what their queries give over a range of time.

In: the dashboard's JSON and a Prometheus. Out: the page, with the titles, units, decimals, thresholds, mappings,
transformations and legends of the JSON. It draws in its own way; stacked lines and histograms as plain lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from typing import Any

from realparts.prometheus import PrometheusServer
from testkit.alerts.dashboard_panels import sent

WIDTH, CELL, GAP, TOP, LEFT = 1920, 38, 8, 84, 70
SCREEN = TOP + 22 * CELL
STYLE = """
:root { --green: #73bf69; --blue: #5794f2; --yellow: #f2cc0c; --orange: #ff9830; --red: #f2495c; --purple: #b877d9 }
:root { --text: #a0a0ac } body { margin: 0; background: #111217; color: #ccccdc; font: 13px 'DejaVu Sans', sans-serif }
.panel { position: absolute; background: #181b1f; border: 1px solid #2a2d33; box-sizing: border-box; overflow: hidden }
.title { font-weight: bold; padding: 4px 8px; white-space: nowrap } .row { position: absolute; font-weight: bold }
.value { text-align: center; font-size: 26px; color: #111; padding-top: 8px; height: 100% } .name { font-size: 13px }
table { width: 100%; border-collapse: collapse; font-size: 12px } tr { border-bottom: 1px solid #2a2d33 }
td, th { text-align: left; padding: 2px 6px; white-space: nowrap } th { color: #7eb0ff; font-weight: normal }
.none { text-align: center; padding-top: 24px; color: #888 } text { fill: #9a9aa8; font-size: 11px }
.legend { padding: 0 8px; font-size: 11px; max-height: 34%; overflow: hidden; position: absolute; bottom: 2px }
.legend span { margin-right: 10px; white-space: nowrap; display: inline-block }
"""
Series = dict[str, Any]
Found = list[tuple[Mapping[str, Any], list[Series]]]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | float | None


def tag(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """An element. ``None`` is left out; ``class_`` is ``class``, and other underscores become hyphens."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    said = "".join(f' {key}="{_text(value)}"' for key, value in given.items())
    return Markup(f"<{name}{said}>{join(*children)}</{name}>")


def join(*children: Child) -> Markup:
    """Children one after the other."""
    return Markup("".join(_text(child) for child in children if child is not None))


def _text(child: Child) -> str:
    return child if isinstance(child, Markup) else escape(str(child), quote=True)


class Page:
    """Dashboards over one range of time, in Unix seconds."""

    def __init__(self, prometheus: PrometheusServer, start: float, end: float) -> None:
        self._prometheus, self._start, self._end = prometheus, start, end
        self._step = max(1.0, (end - start) / 240)

    def draw(self, board: Mapping[str, Any]) -> Markup:
        """The page of a dashboard."""
        marks = board["annotations"]["list"]
        self._marks = [(f"var(--{mark['iconColor']})", time) for mark in marks for time in self._times(mark)]
        said = [board["title"], f"Links: {', '.join(link['title'] for link in board['links'])}"]
        said += ["All clusters, namespaces, policies", f"Marks: {', '.join(mark['name'] for mark in marks)}"]
        head = (tag("div", text, class_="title") for text in (" - ".join(said[:2]), " - ".join(said[2:])))
        panels = (self._panel(model) for model in board["panels"])
        page = tag("html", tag("head", tag("style", Markup(STYLE))), tag("body", *head, *panels))
        return Markup(f"<!doctype html>{page}")

    def _panel(self, model: Mapping[str, Any]) -> Markup:
        at = model["gridPos"]
        width, height = at["w"] * WIDTH // 24 - GAP, at["h"] * CELL - GAP
        left, top = at["x"] * WIDTH // 24 + GAP // 2, TOP + at["y"] * CELL
        place = f"left: {left}px; top: {top}px; width: {width}px; height: {height}px"
        if model["type"] == "row":
            return tag("div", model["title"], class_="row", style=place)
        defaults = model.get("fieldConfig", {}).get("defaults", {})
        found = [(target, self._ask(target)) for target in model["targets"]]
        if not any(series for _, series in found):
            body = tag("div", defaults.get("noValue") or "No data", class_="none")
        elif model["type"] == "stat":
            body = _stat(model, defaults, *found[0])
        elif model["type"] == "table":
            body = _table(model, found)
        else:
            named = [(_legend(target, one), one["values"]) for target, series in found for one in series]
            draw = self._states if model["type"] == "state-timeline" else self._lines
            body = draw(named, defaults, width, height - 26)
        return tag("div", tag("div", model["title"], class_="title"), body, class_="panel", style=place)

    def _ask(self, target: Mapping[str, Any]) -> list[Series]:
        asked = sent(target["expr"], shown=f"{int(self._end - self._start)}s")
        if target["instant"]:
            return self._prometheus.query(asked)
        return self._prometheus.query_range(asked, self._start, self._end, self._step)

    def _times(self, mark: Mapping[str, Any]) -> list[float]:
        found = self._prometheus.query_range(sent(mark["expr"]), self._start, self._end, float(mark["step"][:-1]))
        if mark["useValueForTime"]:
            return [float(value) / 1000 for series in found for _, value in series["values"]]
        return [series["values"][0][0] for series in found]

    def _lines(self, series: list[tuple[str, Any]], defaults: Any, width: int, height: int) -> Markup:
        lines = [[(t, float(v)) for t, v in values if v != "NaN"] for _, values in series]
        every = [value for line in lines for _, value in line]
        low = min([float(defaults.get("min", min(every, default=0.0))), *every])
        high = max([*every, low]) * 1.05 or 1.0
        rows = 1 + sum(8 * len(name) + 30 for name, _ in series) // width
        deep = height - 22 - min(0.34 * height, 16 * rows)

        def y_of(value: float) -> float:
            return round(6 + deep - deep * (value - low) / (high - low), 1)

        parts = [
            tag("line", x1=self._x(t, width), x2=self._x(t, width), y1=4, y2=deep, stroke=c) for c, t in self._marks
        ]
        for share in (0.0, 0.5, 1.0):
            said = _formatted(low + share * (high - low), defaults.get("unit", ""), defaults.get("decimals"))
            parts.append(tag("text", said, x=2, y=round(10 + deep * (1 - share), 1)))
        for step in defaults.get("thresholds", {}).get("steps", ()):
            if step["value"] is not None and low <= step["value"] <= high:
                y, color = y_of(step["value"]), f"var(--{step['color']})"
                parts.append(tag("line", x1=LEFT, x2=width, y1=y, y2=y, stroke=color, stroke_dasharray="6"))
        for index, line in enumerate(lines):
            points = " ".join(f"{self._x(t, width)},{y_of(v)}" for t, v in line)
            parts.append(tag("polyline", points=points, fill="none", stroke=_line_color(index), stroke_width=1.5))
        names = [tag("span", f"- {n}", style=f"color: {_line_color(i)}") for i, (n, _) in enumerate(series)]
        return join(self._drawing(parts, width, height, deep + 20), tag("div", *names, class_="legend"))

    def _states(self, series: list[tuple[str, Any]], defaults: Any, width: int, height: int) -> Markup:
        each = min(36.0, (height - 24) / len(series))
        wide = round((width - LEFT) * self._step / (self._end - self._start) + 0.5, 1)
        parts = []
        for index, (name, values) in enumerate(series):
            top = round(index * each, 1)
            for t, value in values:
                color = _mapped(f"{float(value):g}", defaults["mappings"])[1]
                place = {"x": self._x(t, width), "y": top + 14, "width": wide, "height": each - 16}
                parts.append(tag("rect", **place, fill=color))
            said = _mapped(f"{float(values[-1][1]):g}", defaults["mappings"])[0]
            parts.append(tag("text", f"{name}: {said}", x=LEFT, y=top + 11))
        return self._drawing(parts, width, height, height - 6)

    def _drawing(self, parts: Iterable[Markup], width: int, height: int, y: float) -> Markup:
        times = [self._start + share * (self._end - self._start) for share in (0, 0.25, 0.5, 0.75)]
        clock = (tag("text", f"{datetime.fromtimestamp(t, UTC):%H:%M:%S}", x=self._x(t, width), y=y) for t in times)
        return tag("svg", *parts, *clock, width=width, height=height)

    def _x(self, time: float, width: int) -> float:
        return round(LEFT + (width - LEFT - 4) * (time - self._start) / (self._end - self._start), 1)


def _formatted(value: float, unit: str, decimals: int | None = None) -> str:
    """A value with its unit; without ``decimals`` with three figures."""

    def digits(number: float) -> str:
        return f"{number:.3g}" if decimals is None and abs(number) < 99.95 else f"{number:.{decimals or 0}f}"

    if unit == "percentunit":
        return f"{digits(value * 100)}%"
    if unit == "s":
        sizes = {"days": 86400.0, "hours": 3600.0, "mins": 60.0, "s": 1.0, "ms": 0.001}
        name = next((name for name, size in sizes.items() if abs(value) >= size), "s")
        return f"{digits(value / sizes[name])} {name}"
    return f"{digits(value)}{' req/s' if unit == 'reqps' else ''}"


def _stat(model: Mapping[str, Any], defaults: Any, target: Mapping[str, Any], series: list[Series]) -> Markup:
    value = float(series[0]["value"][1])
    steps = defaults["thresholds"]["steps"]
    color = [step["color"] for step in steps if step["value"] is None or step["value"] <= value][-1]
    name = _legend(target, series[0]) if model["options"]["textMode"] == "value_and_name" else ""
    said = _formatted(value, defaults.get("unit", ""), defaults.get("decimals"))
    return tag("div", said, tag("div", name, class_="name"), class_="value", style=f"background: var(--{color})")


def _table(model: Mapping[str, Any], found: Found) -> Markup:
    shown = model["transformations"][-1]["options"]
    titles: dict[str, str] = shown["renameByName"]
    columns = sorted(shown["indexByName"], key=shown["indexByName"].get)
    overrides = {o["matcher"]["options"]: o["properties"] for o in model["fieldConfig"].get("overrides", ())}
    shared = sorted(set.intersection(*(set(one["metric"]) for _, series in found for one in series)))
    rows: list[dict[str, str]] = []
    for target, series in found:
        name = f"Value #{target['refId']}" if len(found) > 1 else "Value"
        for one in series:
            cells = {**one["metric"], name: one["value"][1]}
            same = (row for row in rows if name not in row and all(row[label] == cells[label] for label in shared))
            if (row := next(same, None)) is None:
                rows.append(row := {})
            row.update(cells)
    for order in model["options"].get("sortBy", ()):
        source = next(source for source, title in titles.items() if title == order["displayName"])
        rows.sort(key=lambda row: row.get(source, ""))

    def cell(row: Mapping[str, str], source: str) -> Markup:
        settings = {p["id"]: p["value"] for p in overrides.get(titles[source], ())}
        text, color = _mapped(row.get(source, ""), settings.get("mappings", ()))
        if source.startswith("Value") and text:
            text = _formatted(float(text), settings.get("unit", ""))
        underlined = "; text-decoration: underline" if "links" in settings else ""
        return tag("td", text, style=f"color: {color}{underlined}")

    lines = (tag("tr", *(cell(row, source) for source in columns)) for row in rows)
    return tag("table", tag("tr", *(tag("th", titles[source]) for source in columns)), *lines)


def _mapped(value: str, mappings: Iterable[Mapping[str, Any]]) -> tuple[str, str]:
    """What a value is shown as, and its colour."""
    found = next((m["options"][value] for m in mappings if value in m["options"]), {"text": value})
    return found["text"], f"var(--{found['color']})" if "color" in found else "inherit"


def _legend(target: Mapping[str, Any], series: Series) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: series["metric"].get(found[1], ""), target["legendFormat"]).strip()


def _line_color(index: int) -> str:
    return f"hsl({(130 + index * 137) % 360} 60% 62%)"

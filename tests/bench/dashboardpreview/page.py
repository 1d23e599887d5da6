"""A dashboard as an HTML page: its panels in Grafana's grid, with what their queries give over a range of time.

In: the dashboard's JSON and a Prometheus. Out: the page, with the titles, units, decimals, thresholds, mappings,
transformations and legends of the JSON. It shows what is in the dashboard, not all that Grafana can.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bellwether.pages.markup import Markup, join, tag
from dashboardpreview.figures import COLORS, LINES, formatted, mapped, threshold_color
from realparts.prometheus import PrometheusServer
from testkit.alerts.dashboard_panels import sent

WIDTH, CELL, GAP, TOP = 1920, 38, 8, 84
STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 13px 'DejaVu Sans', sans-serif; position: relative }
.panel { position: absolute; background: #181b1f; border: 1px solid #2a2d33; box-sizing: border-box; overflow: hidden }
.title { font-weight: bold; padding: 4px 8px; white-space: nowrap } .row { position: absolute; font-weight: bold }
.value { text-align: center; font-size: 26px; color: #111 } .name { font-size: 13px }
table { width: 100%; border-collapse: collapse; font-size: 12px } td, th { text-align: left; padding: 2px 6px }
td, th { white-space: nowrap } th { color: #7eb0ff; font-weight: normal } tr { border-bottom: 1px solid #2a2d33 }
.none { text-align: center; padding-top: 24px; color: #888 } text { fill: #9a9aa8; font-size: 11px }
.legend { padding: 0 8px; font-size: 11px; max-height: 34%; overflow: hidden; position: absolute; bottom: 2px }
.legend span { margin-right: 10px; white-space: nowrap; display: inline-block }
"""

Series = Mapping[str, Any]


class Page:
    """One dashboard over one range of time, in Unix seconds."""

    def __init__(self, prometheus: PrometheusServer, start: float, end: float) -> None:
        self._prometheus, self._start, self._end = prometheus, start, end
        self._step = max(1.0, (end - start) / 240)

    def draw(self, board: Mapping[str, Any]) -> tuple[Markup, int]:
        """The page and its height in pixels."""
        self._marks = [(COLORS[m["iconColor"]], t) for m in board["annotations"]["list"] for t in self._times(m)]
        panels = [self._panel(model) for model in board["panels"]]
        links = ", ".join(link["title"] for link in board["links"])
        head = tag("div", tag("b", board["title"]), f" - links: {links}", style="padding: 12px; height: 24px")
        names = ", ".join(mark["name"] for mark in board["annotations"]["list"])
        choices = tag("div", f"Kubernetes cluster: All, Namespace: All, Policy: All; marks: {names}", class_="title")
        height = TOP + CELL * max(m["gridPos"]["y"] + m["gridPos"]["h"] for m in board["panels"])
        page = tag("html", tag("head", tag("style", Markup(STYLE))), tag("body", head, choices, *panels))
        return Markup(f"<!doctype html>{page}"), height

    def _panel(self, model: Mapping[str, Any]) -> Markup:
        at = model["gridPos"]
        width, height = at["w"] * WIDTH // 24 - GAP, at["h"] * CELL - GAP
        place = f"left: {at['x'] * WIDTH // 24 + GAP // 2}px; top: {TOP + at['y'] * CELL}px; width: {width}px; "
        if model["type"] == "row":
            return tag("div", model["title"], class_="row", style=place)
        defaults = model.get("fieldConfig", {}).get("defaults", {})
        drawers = {"stat": self._stat, "table": self._table, "heatmap": self._heat}
        found = [(target, self._ask(target)) for target in model["targets"]]
        if any(series for _, series in found):
            body = drawers.get(model["type"], self._over_time)(model, defaults, found, width, height - 26)
        else:
            body = tag("div", defaults.get("noValue") or "No data", class_="none")
        title = tag("div", model["title"], class_="title")
        return tag("div", title, body, class_="panel", style=f"{place}height: {height}px")

    def _ask(self, target: Mapping[str, Any]) -> list[Series]:
        shown = f"{int(self._end - self._start)}s"
        if target["instant"]:
            return self._prometheus.query(sent(target["expr"], shown=shown))
        asked = sent(target["expr"], shown=shown)
        return self._prometheus.query_range(asked, self._start, self._end, self._step)

    def _times(self, mark: Mapping[str, Any]) -> list[float]:
        found = self._prometheus.query_range(sent(mark["expr"]), self._start, self._end, float(mark["step"][:-1]))
        if mark["useValueForTime"]:
            return [float(value) / 1000 for series in found for _, value in series["values"]]
        return [series["values"][0][0] for series in found]

    def _stat(self, model: Mapping[str, Any], defaults: Any, found: Any, _width: int, height: int) -> Markup:
        target, [series, *_] = found[0]
        value = float(series["value"][1])
        said = formatted(value, defaults.get("unit", ""), defaults.get("decimals"))
        name = _legend(target, series) if model["options"]["textMode"] == "value_and_name" else ""
        color = threshold_color(value, defaults["thresholds"]["steps"])
        style = f"background: {color}; height: {height}px; padding-top: 8px"
        return tag("div", said, tag("div", name, class_="name"), class_="value", style=style)

    def _table(self, model: Mapping[str, Any], _defaults: Any, found: Any, _width: int, _height: int) -> Markup:
        shown = model["transformations"][-1]["options"]
        columns = sorted(shown["indexByName"], key=shown["indexByName"].get)
        overrides = {o["matcher"]["options"]: o["properties"] for o in model["fieldConfig"].get("overrides", ())}
        rows: list[dict[str, str]] = []
        shared = set.intersection(*(set(s["metric"]) for _, series in found for s in series))
        for target, series in found:
            for one in series:
                name = "Value" if len(found) == 1 else f"Value #{target['refId']}"
                cells = {**one["metric"], name: one["value"][1]}
                key = [cells[label] for label in sorted(shared)]
                row = next((r for r in rows if [r[label] for label in sorted(shared)] == key and name not in r), None)
                rows.append(cells) if row is None else row.update(cells)
        lines = []
        for row in rows:
            cells = []
            for source in columns:
                settings = {p["id"]: p["value"] for p in overrides.get(shown["renameByName"][source], ())}
                text, color = mapped(row.get(source, ""), settings.get("mappings", ()))
                if source.startswith("Value") and text:
                    text = formatted(float(text), settings.get("unit", ""))
                underlined = "; text-decoration: underline" if "links" in settings else ""
                cells.append(tag("td", text, style=f"color: {color or 'inherit'}{underlined}"))
            lines.append(tag("tr", *cells))
        return tag("table", tag("tr", *(tag("th", shown["renameByName"][source]) for source in columns)), *lines)

    def _heat(self, _model: Any, _defaults: Any, found: Any, width: int, height: int) -> Markup:
        series = sorted((s for _, some in found for s in some), key=lambda s: float(s["metric"]["le"]))
        cells, below = [], dict.fromkeys((t for s in series for t, _ in s["values"]), 0.0)
        step = height / len(series)
        for index, one in enumerate(series):
            for t, value in one["values"]:
                count, below[t] = float(value) - below[t], float(value)
                shade = min(1.0, count / 10)
                y = round(height - step * (index + 1), 1)
                fill = {"x": self._x(t, width), "y": y, "width": 4, "height": round(step, 1), "fill": "#ff9830"}
                cells.append(tag("rect", **fill, fill_opacity=round(shade, 2)) if count > 0 else "")
            cells.append(tag("text", f"{one['metric']['le']} s", x=2, y=round(height - step * index, 1)))
        return tag("svg", *cells, width=width, height=height)

    def _over_time(self, model: Mapping[str, Any], defaults: Any, found: Any, width: int, height: int) -> Markup:
        series = [(_legend(target, one), one["values"]) for target, some in found for one in some]
        if model["type"] == "state-timeline":
            return self._states(series, defaults, width, height)
        legend = tag(
            "div",
            *(
                tag("span", f"\N{EM DASH} {name}", style=f"color: {LINES[i % len(LINES)]}")
                for i, (name, _) in enumerate(series)
            ),
            class_="legend",
        )
        deep = height - 22 - min(0.34 * height, 16 * (1 + sum(8 * len(n) + 30 for n, _ in series) // width))
        stacked = defaults["custom"].get("stacking", {}).get("mode") == "normal"
        base: dict[float, float] = {}
        drawn = []
        for _, values in series:
            line = [(t, float(v) + base.get(t, 0.0)) for t, v in values if v != "NaN"]
            base |= dict(line) if stacked else {}
            drawn.append(line)
        steps = [s for s in defaults.get("thresholds", {}).get("steps", ()) if s["value"] is not None]
        every = [v for line in drawn for _, v in line]
        low = min([defaults.get("min", min(every, default=0.0)), *every])
        high = max([*every, low + 1e-9]) * 1.05
        y_of = lambda v: round(6 + deep - deep * (v - low) / (high - low), 1)  # noqa: E731
        parts = [
            tag("line", x1=self._x(t, width), x2=self._x(t, width), y1=4, y2=deep + 6, stroke=c) for c, t in self._marks
        ]
        for share in (0, 0.5, 1):
            value = low + share * (high - low)
            text = formatted(value, defaults.get("unit", ""), defaults.get("decimals"))
            parts.append(tag("text", text, x=2, y=y_of(value) + (4 if share < 1 else 8)))
        for s in steps:
            if low <= s["value"] <= high:
                y = y_of(s["value"])
                parts.append(tag("line", x1=70, x2=width, y1=y, y2=y, stroke=COLORS[s["color"]], stroke_dasharray="6"))
        for index, line in enumerate(drawn):
            points = " ".join(f"{self._x(t, width)},{y_of(v)}" for t, v in line)
            parts.append(
                tag("polyline", points=points, fill="none", stroke=LINES[index % len(LINES)], stroke_width=1.5)
            )
        return join(tag("svg", *parts, *self._clock(width, deep + 18), width=width, height=height), legend)

    def _states(self, series: Sequence[tuple[str, Any]], defaults: Any, width: int, height: int) -> Markup:
        each = min(36.0, (height - 24) / len(series))
        parts = []
        for index, (name, values) in enumerate(series):
            top = round(index * each, 1)
            for t, value in values:
                _, color = mapped(f"{float(value):g}", defaults["mappings"])
                fill = {"x": self._x(t, width), "y": top + 14, "width": 4, "height": each - 16, "fill": color or "#888"}
                parts.append(tag("rect", **fill))
            said, _ = mapped(f"{float(values[-1][1]):g}", defaults["mappings"])
            parts.append(tag("text", f"{name}: {said}", x=70, y=top + 11))
        return tag("svg", *parts, *self._clock(width, height - 6), width=width, height=height)

    def _clock(self, width: int, y: float) -> list[Markup]:
        times = [self._start + share * (self._end - self._start) for share in (0, 0.25, 0.5, 0.75)]
        said = [f"{datetime.fromtimestamp(t, UTC):%H:%M:%S}" for t in times]
        return [tag("text", text, x=self._x(t, width), y=y) for t, text in zip(times, said, strict=True)]

    def _x(self, time: float, width: int) -> float:
        return round(70 + (width - 74) * (time - self._start) / (self._end - self._start), 1)


def _legend(target: Mapping[str, Any], series: Series) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: series["metric"].get(found[1], ""), target["legendFormat"]).strip()

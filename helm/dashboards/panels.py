"""Panel types of the dashboards: lines, figures, states over time, tables, histograms.

A panel that may have no series says in ``empty`` what that means; Grafana shows it in place of "No data".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models import prometheus as prometheus_models

from bellwether import documentation
from dashboards.promql import Query

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
RUNBOOKS = documentation.page("alerts/README.md")
"""The chart replaces the part that ``docsUrl`` names."""
REASONS = documentation.page("reasons.md#${__value.raw}")

Panel = Builder[models.Panel]

Steps = Sequence[tuple[float | None, str]]
"""Colours, each from a value on; the first from ``None`` on."""

GOOD: Steps = ((None, "green"),)
RED_IF_ANY: Steps = ((None, "green"), (1e-9, "red"))
YELLOW_IF_ANY: Steps = ((None, "green"), (1e-9, "yellow"))


@dataclass(frozen=True)
class Column:
    """A column of a table: a label of the series, or the value of a query as ``Value #A``."""

    source: str
    title: str
    unit: str = ""
    colors: Mapping[str, str] = field(default_factory=dict)
    link: str = ""


def graph(
    title: str,
    why: str,
    *queries: Query,
    unit: str = "short",
    decimals: int | None = None,
    stacked: bool = False,
    least: float | None = 0,
    lines: Steps = (),
    empty: str = "",
    span: int = 12,
    height: int = 8,
) -> Panel:
    """Lines over time, and a dashed line at each value of ``lines``."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(why)
        .unit(unit)
        .span(span)
        .height(height)
        .datasource(SOURCE)
        .fill_opacity(30 if stacked else 5)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if least is not None:
        panel = panel.min(least)
    if decimals is not None:
        panel = panel.decimals(decimals)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if lines:
        dashed = common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds(_thresholds((*GOOD, *lines))).thresholds_style(dashed)
    if empty:
        panel = panel.no_value(empty)
    for letter, query in zip(ascii_uppercase, queries, strict=False):
        panel = panel.with_target(_target(query, letter))
    return panel


def number(
    title: str,
    why: str,
    query: Query,
    steps: Steps = RED_IF_ANY,
    *,
    unit: str = "short",
    decimals: int | None = None,
    named: bool = False,
    empty: str = "no operator",
    span: int = 3,
    height: int = 3,
) -> Panel:
    """The current value, coloured by ``steps``. ``named``: with the policy that it belongs to."""
    mode = common_models.BigValueTextMode
    panel = (
        stat.Panel()
        .title(title)
        .description(why)
        .unit(unit)
        .span(span)
        .height(height)
        .datasource(SOURCE)
        .thresholds(_thresholds(steps))
        .color_mode(common_models.BigValueColorMode.BACKGROUND_SOLID)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .text_mode(mode.VALUE_AND_NAME if named else mode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value(empty)
        .with_target(_target(query).instant())
    )
    return panel if decimals is None else panel.decimals(decimals)


def states(
    title: str,
    why: str,
    query: Query,
    names: Mapping[int, tuple[str, str]],
    *,
    empty: str = "",
    span: int = 24,
    height: int = 8,
) -> Panel:
    """A state over time; ``names`` are the names and colours of the values."""
    options = {
        str(value): models.ValueMappingResult(text=name, color=color, index=index)
        for index, (value, (name, color)) in enumerate(names.items())
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(why)
        .span(span)
        .height(height)
        .datasource(SOURCE)
        .mappings([models.ValueMap(options=options)])
        .no_value(empty)
        .with_target(_target(query))
    )


def listing(
    title: str,
    why: str,
    queries: Sequence[Query],
    columns: Sequence[Column],
    *,
    empty: str,
    sort: str = "",
    span: int = 12,
    height: int = 8,
) -> Panel:
    """The current series as rows, joined by the labels that all queries have. Labels have to be among ``columns``."""
    letters = ascii_uppercase[: len(queries)]
    values = {f"Value #{letter}" for letter in letters} if len(queries) > 1 else {"Value"}
    hidden = {"Time", *values} - {column.source for column in columns}
    organize = {
        "excludeByName": dict.fromkeys(sorted(hidden), True),
        "indexByName": {column.source: index for index, column in enumerate(columns)},
        "renameByName": {column.source: column.title for column in columns},
    }
    panel = table.Panel().title(title).description(why).span(span).height(height).datasource(SOURCE).no_value(empty)
    panel = panel.cell_height(common_models.TableCellHeight.SM)
    if sort:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort)])
    if len(queries) > 1:
        panel = panel.with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
    panel = panel.with_transformation(models.DataTransformerConfig(id_val="organize", options=organize))
    for column in columns:
        if settings := _settings(column):
            panel = panel.override_by_name(column.title, settings)
    for letter, query in zip(letters, queries, strict=True):
        panel = panel.with_target(_target(query, letter).instant().format(prometheus_models.PromQueryFormat.TABLE))
    return panel


def heat(title: str, why: str, query: Query, span: int = 24) -> Panel:
    """A histogram over time; the query's series are its buckets."""
    return (
        heatmap.Panel()
        .title(title)
        .description(why)
        .span(span)
        .height(8)
        .datasource(SOURCE)
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
        .with_target(_target(query).format(prometheus_models.PromQueryFormat.HEATMAP))
    )


def _settings(column: Column) -> list[models.DynamicConfigValue]:
    found: dict[str, Any] = {}
    if column.unit:
        found["unit"] = column.unit
    if column.colors:
        options = {name: {"text": name, "color": color} for name, color in column.colors.items()}
        found["mappings"] = [{"type": "value", "options": options}]
        found["custom.cellOptions"] = {"type": "color-text"}
    if column.link:
        found["links"] = [{"title": "Runbook", "url": column.link, "targetBlank": True}]
    return [models.DynamicConfigValue(id_val=name, value=value) for name, value in found.items()]


def _thresholds(steps: Steps) -> dashboard.ThresholdsConfig:
    made = [models.Threshold(value=value, color=color) for value, color in steps]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(made)


def _target(query: Query, letter: str = "A") -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).datasource(SOURCE).ref_id(letter)
    return made.range()

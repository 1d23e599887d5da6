"""Shared parts of the dashboards: variables and panel types.

Queries use ``SCOPE`` as label matchers, so that the variables ``namespace`` and ``policy`` apply to every panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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

SCOPE = 'namespace=~"$namespace", policy=~"$policy"'
"""The matchers of every query."""

_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT = 8


@dataclass(frozen=True)
class Query:
    """A PromQL expression and its legend, with labels in ``{{ }}``."""

    expr: str
    legend: str = ""


Panel = Builder[models.Panel]


def board(uid: str, title: str, description: str, rows: Sequence[tuple[str, Sequence[Panel]]]) -> models.Dashboard:
    """A dashboard of rows of panels, with the variables ``datasource``, ``namespace`` and ``policy``."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["bellwether", "kafka"])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_labels("namespace", "Namespace", "bellwether_operator_leading"))
        .with_variable(_labels("policy", "Policy", 'bellwether_operator_leading{namespace=~"$namespace"}'))
    )
    for name, panels in rows:
        made = made.with_row(dashboard.Row(name))
        for panel in panels:
            made = made.with_panel(panel)
    return made.build()


def graph(title: str, why: str, *queries: Query, unit: str = "short", stacked: bool = False, span: int = 12) -> Panel:
    """Lines over time."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(why)
        .unit(unit)
        .min(0)
        .span(span)
        .height(_HEIGHT)
        .datasource(_SOURCE)
        .fill_opacity(30 if stacked else 5)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.LIST)
            .placement(common_models.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI))
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    for letter, query in zip("ABCDEF", queries, strict=False):
        panel = panel.with_target(_target(query).ref_id(letter))
    return panel


def number(
    title: str, why: str, query: Query, unit: str = "short", bad_above: float | None = 0, span: int = 4
) -> Panel:
    """The current value; red above ``bad_above``, if set."""
    steps = [models.Threshold(value=None, color="green")]
    if bad_above is not None:
        steps.append(models.Threshold(value=bad_above + 1e-9, color="red"))
    return (
        stat.Panel()
        .title(title)
        .description(why)
        .unit(unit)
        .span(span)
        .height(4)
        .datasource(_SOURCE)
        .thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .with_target(_target(query, instant=True))
    )


def states(title: str, why: str, query: Query, names: Sequence[tuple[str, str]], span: int = 24) -> Panel:
    """A state over time; ``names`` are the names and colours of the values 0, 1, 2 and so on."""
    options = {
        str(value): models.ValueMappingResult(text=name, color=color, index=value)
        for value, (name, color) in enumerate(names)
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(why)
        .span(span)
        .height(_HEIGHT)
        .datasource(_SOURCE)
        .mappings([models.ValueMap(options=options)])
        .with_target(_target(query))
    )


def listing(title: str, why: str, query: Query, hidden: Sequence[str] = (), span: int = 12) -> Panel:
    """The labels of the current series, one row for each."""
    organize = models.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": dict.fromkeys(("Time", "Value", "__name__", *hidden), True)},
    )
    return (
        table.Panel()
        .title(title)
        .description(why)
        .span(span)
        .height(_HEIGHT)
        .datasource(_SOURCE)
        .with_transformation(organize)
        .with_target(_target(query, instant=True).format(prometheus_models.PromQueryFormat.TABLE))
    )


def heat(title: str, why: str, query: Query, span: int = 12) -> Panel:
    """A histogram over time; the query's series are its buckets."""
    return (
        heatmap.Panel()
        .title(title)
        .description(why)
        .span(span)
        .height(_HEIGHT)
        .datasource(_SOURCE)
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Oranges").steps(64))
        .with_target(_target(query).format(prometheus_models.PromQueryFormat.HEATMAP))
    )


def _labels(name: str, title: str, selector: str) -> Builder[models.VariableModel]:
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .datasource(_SOURCE)
        .query(f"label_values({selector}, {name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(text="All", value="$__all", selected=True))
    )


def _target(query: Query, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(query.expr).legend_format(query.legend).datasource(_SOURCE).ref_id("A")
    return made.instant() if instant else made.range()

"""The frame of every dashboard: variables, marks for demotions, promotions and waves, and links."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as models

from dashboards.panels import RUNBOOKS, SOURCE, Panel
from dashboards.promql import gauge

ON_CALL = "bellwether-on-call"
AVAILABILITY = "bellwether-availability"

_BEFORE = "offset 1m"
"""A mark lasts so long, so that a query every 15 s finds it."""

_TITLES = {ON_CALL: "Bellwether: on call", AVAILABILITY: "Bellwether: availability and tail latency"}


class _Mark(models.AnnotationQuery):
    """An annotation from Prometheus. ``dated``: the values are times in milliseconds."""

    def __init__(self, name: str, color: str, expr: str, title: str, dated: bool = False) -> None:
        super().__init__(name=name, datasource=SOURCE, icon_color=color, expr=expr)
        self._more = {
            "titleFormat": title,
            "textFormat": "{{namespace}}/{{policy}} {{cluster}}",
            "step": "15s",
            "useValueForTime": dated,
        }

    def to_json(self) -> dict[str, object]:
        """The fields of the SDK's model, and those of Prometheus, which it lacks."""
        return {**super().to_json(), **self._more}


def board(uid: str, description: str, rows: Sequence[tuple[str, Sequence[Panel]]]) -> models.Dashboard:
    """A dashboard of rows of panels; a row without a title has no heading."""
    made = (
        dashboard.Dashboard(_TITLES[uid])
        .uid(uid)
        .description(description)
        .tags(["bellwether", "kafka"])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_labels("cluster", "Kubernetes cluster", "bellwether_operator_leading"))
        .with_variable(_labels("namespace", "Namespace", 'bellwether_operator_leading{cluster=~"$cluster"}'))
        .with_variable(
            _labels("policy", "Policy", 'bellwether_operator_leading{cluster=~"$cluster", namespace=~"$namespace"}')
        )
        .link(dashboard.DashboardLink("Runbooks").icon("doc").url(RUNBOOKS).target_blank(True))
    )
    for other, title in _TITLES.items():
        if other != uid:
            link = dashboard.DashboardLink(title).icon("dashboard").url(f"/d/{other}")
            made = made.link(link.keep_time(True).include_vars(True))
    for name, panels in rows:
        if name:
            made = made.with_row(dashboard.Row(name))
        for panel in panels:
            made = made.with_panel(panel)
    finished = made.build()
    finished.annotations = models.AnnotationContainer(list_val=_marks())
    return finished


def _marks() -> list[models.AnnotationQuery]:
    demoted = "bellwether_broker_demoted"
    since = gauge("bellwether_broker_demoted_since_timestamp_seconds", "broker")
    promoted = f"{gauge(demoted, 'broker', at=_BEFORE)} == 1 and {gauge(demoted, 'broker')} == 0"
    restored = _increased("bellwether_broker_restoration_ratio", "broker")
    rebalanced = _increased("bellwether_rebalance_partitions", where='result="applied"')
    return [
        _Mark("Demotions", "red", f"{since} * 1000", "Broker {{broker}} demoted", dated=True),
        _Mark("Promotions", "green", promoted, "Broker {{broker}} promoted"),
        _Mark("Restoration waves", "blue", restored, "Wave: leaders return to broker {{broker}}"),
        _Mark("Rebalance waves", "purple", rebalanced, "Wave of a rebalance by load"),
    ]


def _increased(metric: str, *labels: str, where: str = "") -> str:
    now, before = gauge(metric, *labels, where=where), gauge(metric, *labels, where=where, at=_BEFORE)
    return f"{now} > ({before} or 0 * {now})"


def _labels(name: str, title: str, selector: str) -> Builder[models.VariableModel]:
    return (
        dashboard.QueryVariable(name)
        .label(title)
        .datasource(SOURCE)
        .query(f"label_values({selector}, {name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(text="All", value="$__all", selected=True))
    )

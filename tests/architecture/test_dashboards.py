"""What an on-call engineer may rely on in the dashboards, as rules over the generated JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bellwether import documentation
from dashboards import generate
from dashboards.board import AVAILABILITY, ON_CALL
from testkit.alerts import alert_rules
from testkit.alerts.dashboard_panels import Panel, boards, panels

ALL = panels()
BOARDS = boards()
POLICY = ("cluster", "namespace", "policy")
SCREEN = 22
"""Rows of Grafana's grid that a screen of 1080 pixels shows without scrolling."""

WHOLE = {"Requests to Kubernetes": "of operators, not of policies", "All probes": "one histogram of all that is chosen"}
"""Panels whose series are not those of a policy, and what they are."""


def named(title: str) -> Panel:
    [panel] = [panel for panel in ALL if panel.model["title"] == title]
    return panel


def red(panel: Panel, value: float) -> bool:
    """Whether a figure has the colour of its last threshold at or below the value, and that is red."""
    steps = panel.model["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [step["color"] for step in steps if step["value"] is None or step["value"] <= value][-1] == "red"


def merging(expr: str) -> list[str]:
    """Groupings and matchings in which brokers of two policies would be one."""
    wanted = re.escape(", ".join(POLICY))
    return re.findall(rf"\b(?:by|on) \((?!{wanted}\b)(?!\))[^)]*\)", expr)


def unnamed(target: Mapping[str, Any]) -> list[str]:
    """Labels of a query's series that its legend lacks: two series could have one name."""
    groupings = re.findall(r"\bby \(([^)]*)\)", target["expr"])
    labels = {label for grouping in groupings[:1] for label in grouping.split(", ")} | set(POLICY)
    return sorted(label for label in labels - {"le"} if f"{{{{{label}}}}}" not in target["legendFormat"])


def drawn() -> Iterator[tuple[Panel, Mapping[str, Any]]]:
    """Queries whose series have names: of lines and of states."""
    for panel in ALL:
        if panel.model["type"] in {"timeseries", "state-timeline"}:
            yield from ((panel, target) for target in panel.targets)


def links(panel: Panel) -> Iterable[str]:
    for override in panel.model["fieldConfig"].get("overrides", ()):
        for setting in override["properties"]:
            if setting["id"] == "links":
                yield from (link["url"] for link in setting["value"])


def first_screen(name: str) -> list[str]:
    """Titles of the panels that are seen without scrolling, as one reads."""
    seen = [p.model for p in ALL if p.board == name and p.model["gridPos"]["y"] + p.model["gridPos"]["h"] <= SCREEN]
    return [model["title"] for model in sorted(seen, key=lambda model: (model["gridPos"]["y"], model["gridPos"]["x"]))]


@pytest.mark.parametrize("window", ["5m", "1h", "1d", "30d"])
def test_four_nines_can_be_read_and_are_red_below_objective(window: str) -> None:
    panel = named(f"Availability, {window}")
    defaults = panel.model["fieldConfig"]["defaults"]
    assert (defaults["unit"], defaults["decimals"]) == ("percentunit", 3)
    assert red(panel, 0.99989)
    assert not red(panel, 0.99991)


def test_the_budget_is_red_when_it_is_spent() -> None:
    panel = named("Error budget left, 30 days")
    assert red(panel, 0)
    assert red(panel, -2.5)
    assert not red(panel, 0.01)


def test_every_figure_can_turn_red_or_yellow() -> None:
    for panel in ALL:
        if panel.model["type"] == "stat":
            colors = [step["color"] for step in panel.model["fieldConfig"]["defaults"]["thresholds"]["steps"]]
            assert {"red", "yellow"} & set(colors), panel


def test_the_objective_of_the_dashboard_is_that_of_the_alerts() -> None:
    text = (alert_rules.FOLDER / "availability.yaml").read_text()
    assert "14.4 * 0.0001" in text
    for title in ("Error budget left, 30 days", "Burn rate, 1 hour", "Burn rate"):
        assert all("/ 0.0001" in target["expr"] for target in named(title).targets)


@pytest.mark.parametrize("panel", ALL, ids=str)
def test_no_query_merges_the_brokers_of_two_policies_or_clusters(panel: Panel) -> None:
    for target in panel.targets:
        if panel.model["title"] not in WHOLE:
            assert merging(target["expr"]) == []
        assert "$cluster" in target["expr"]
        assert "$policy" in target["expr"] or panel.model["title"] == "Requests to Kubernetes"
        assert target["datasource"]["uid"] == "${datasource}"


def test_a_query_that_merges_policies_is_found() -> None:
    assert merging("max by (broker) (a) and on (cluster, namespace, policy, broker) b or on () c") == ["by (broker)"]


@pytest.mark.parametrize(("panel", "target"), [*drawn()])
def test_every_line_is_named_by_all_that_tells_it_from_others(panel: Panel, target: Mapping[str, Any]) -> None:
    assert "vector(" not in target["expr"]
    if panel.model["title"] not in WHOLE:
        assert unnamed(target) == []


def test_a_panel_without_series_says_what_that_means_if_a_calm_cluster_has_none() -> None:
    for panel in ALL:
        assert panel.empty or panel.model["type"] in {"timeseries", "heatmap"}, panel
        # Lines without that text must have series on a calm cluster: the tests of alerts hold it.


def test_no_two_queries_of_a_panel_have_one_letter() -> None:
    for panel in ALL:
        letters = [target["refId"] for target in panel.targets]
        assert len(set(letters)) == len(letters) > 0


def test_what_may_be_minus_one_is_seen() -> None:
    assert "min" not in named("Age of sources").model["fieldConfig"]["defaults"]
    [mapping] = named("Readings").model["fieldConfig"]["defaults"]["mappings"]
    assert mapping["options"]["-1"]["text"] == "unknown"


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_has_its_variables_marks_and_links(name: str) -> None:
    board = BOARDS[name]
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", *POLICY]
    assert all(v["allValue"] == ".*" for v in board["templating"]["list"][1:])  # matches an absent label, too
    marks = {mark["name"]: mark for mark in board["annotations"]["list"]}
    assert list(marks) == ["Demotions", "Promotions", "Restoration waves", "Rebalance waves"]
    for mark in marks.values():
        assert merging(mark["expr"]) == []
        assert all(f"${label}" in mark["expr"] for label in POLICY)
        assert all(f"{{{{{label}}}}}" in mark["textFormat"] for label in POLICY)
    [other] = {ON_CALL, AVAILABILITY} - {board["uid"]}
    urls = {link["url"]: link for link in board["links"]}
    assert urls[f"/d/{other}"]["keepTime"]
    assert urls[f"/d/{other}"]["includeVars"]
    assert alert_rules.RUNBOOKS in urls


def test_alerts_and_reasons_lead_to_their_runbooks() -> None:
    assert list(links(named("Alerts, firing and pending"))) == [alert_rules.RUNBOOKS + "${__value.raw}/"]
    for title in ("Who, why, since when", "Policies that cannot be reconciled"):
        assert set(links(named(title))) == {documentation.page("reasons.md#${__value.raw}")}


def test_one_screen_says_who_why_since_when_what_moved_and_what_is_blocked_in_that_order() -> None:
    assert first_screen("on-call.json") == [
        *("Sick", "Down", "Unknown", "Demoted", "Without leader", "At or under min ISR"),
        *("Not enforcing", "Since last reconcile"),
        *("Who, why, since when", "Alerts, firing and pending"),
        *("Verdicts", "Leaders by broker", "Moves"),
        *("Blocked moves, by reason", "Blocked brokers, by reason", "Partitions at risk, by class"),
    ]
    shown = named("Who, why, since when").model["transformations"][-1]["options"]
    columns = [shown["renameByName"][source] for source in sorted(shown["indexByName"], key=shown["indexByName"].get)]
    assert columns[3:] == ["broker", "verdict", "why", "for", "demoted for", "leaders", "blocked by"]


def test_panels_neither_overlap_nor_leave_gaps_in_the_first_screen() -> None:
    places = [p.model["gridPos"] for p in ALL if p.board == "on-call.json" and p.model["gridPos"]["y"] < SCREEN]
    cells = [(x + p["x"], y + p["y"]) for p in places for x in range(p["w"]) for y in range(p["h"])]
    assert sorted(cells) == sorted({(x, y) for x in range(24) for y in range(SCREEN)})


def test_the_dashboards_are_what_their_source_says() -> None:
    assert generate.differences() == "", "run: make generate"


def test_a_changed_a_missing_and_a_strange_dashboard_are_found(tmp_path: Path) -> None:
    for name, text in generate.files().items():
        (tmp_path / name).write_text(text)
    assert generate.differences(tmp_path) == ""
    (tmp_path / "on-call.json").write_text("{}\n")
    (tmp_path / "availability.json").unlink()
    (tmp_path / "old.json").write_text("{}\n")
    found = generate.differences(tmp_path)
    assert all(f"/{name}" in found for name in ("on-call.json", "availability.json", "old.json"))

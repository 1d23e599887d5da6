"""Metrics, alerts, dashboards and runbook pages tell of one another truly, and what is generated is fresh."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from sourcetree import ROOT
from testkit.alerts import alert_rules
from testkit.alerts.dashboard_panels import boards, panels

METRIC = re.compile(r"\bbellwether_[a-z_]+\b")
LISTED = re.compile(r"^\| `(bellwether_[a-z_]+)` \| (\w+) \|", re.MULTILINE)
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "What not to do")
SEVERITIES = {"critical", "warning", "info"}


def known(page: str) -> set[str]:
    """The series that the page of metrics lists."""
    names = set()
    for name, kind in LISTED.findall(page):
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names


def unknown_metrics(expressions: Iterable[str], page: str) -> list[str]:
    """Metrics that expressions name and no process serves."""
    # A recording rule's name has colons: its parts are no metrics.
    named = {name for text in expressions for name in METRIC.findall(re.sub(r"\w+:\w+:\w+", "", text))}
    return sorted(named - known(page))


def expressions() -> list[str]:
    """All PromQL of the rule files and of the dashboards."""
    rules = [
        rule["expr"]
        for path in alert_rules.files()
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]
    marks = [mark["expr"] for board in boards().values() for mark in board["annotations"]["list"]]
    return rules + marks + [target["expr"] for panel in panels() for target in panel.targets]


def faults(rule: alert_rules.Rule) -> list[str]:
    """What an alert lacks that every alert has."""
    annotations, labels = rule["annotations"], rule["labels"]
    found = [name for name in ("summary", "description", "runbook_url") if not annotations.get(name)]
    if annotations.get("runbook_url") != f"{alert_rules.RUNBOOKS}{rule['alert']}.md":
        found.append("runbook_url")
    if labels.get("severity") not in SEVERITIES:
        found.append("severity")
    return found


def unmatched(names: Iterable[str], folder: Path) -> list[str]:
    """Alerts without a runbook page, pages without an alert, and pages that the index does not name."""
    wanted, pages = set(names), {path.stem for path in folder.glob("*.md")} - {"README"}
    indexed = set(re.findall(r"^\| \[(\w+)\]\(\w+\.md\) \|", (folder / "README.md").read_text(), re.MULTILINE))
    return sorted((wanted ^ pages) | (wanted ^ indexed))


def incomplete(page: str) -> list[str]:
    """What a runbook page does not tell."""
    parts = dict(re.findall(r"^## (.+)\n\n((?:(?!^## ).*\n?)+)", page, re.MULTILINE))
    return [title for title in SECTIONS if not parts.get(title, "").strip()]


def metrics_page() -> str:
    return (ROOT / "docs" / "reference" / "metrics.md").read_text()


def test_rules_and_dashboards_ask_for_metrics_that_are_served() -> None:
    assert unknown_metrics(expressions(), metrics_page()) == []


def test_a_metric_that_nobody_serves_is_found() -> None:
    page = (
        "| `bellwether_reconcile_duration_seconds` | histogram | | x |\n"
        "| `bellwether_reconcile_errors_total` | counter | | x |"
    )
    asked = [
        "rate(bellwether_reconcile_duration_seconds_bucket[5m]) > bellwether_reconcile_duration_seconds",
        "bellwether_reconcile_errors_total",
    ]
    assert unknown_metrics(asked, page) == ["bellwether_reconcile_duration_seconds"]


@pytest.mark.parametrize("rule", alert_rules.alerts(), ids=lambda rule: rule["alert"])
def test_every_alert_says_what_it_is_how_bad_it_is_and_where_to_read_on(rule: alert_rules.Rule) -> None:
    assert faults(rule) == []


def test_an_alert_that_says_too_little_is_found() -> None:
    told = {"summary": "x", "description": "", "runbook_url": f"{alert_rules.RUNBOOKS}Other.md"}
    assert faults({"alert": "A", "annotations": told, "labels": {"severity": "page"}}) == [
        "description",
        "runbook_url",
        "severity",
    ]


def without_cluster(expression: str) -> list[str]:
    """Groupings and matchings that merge the brokers and policies of several Kubernetes clusters."""
    return re.findall(r"\b(?:by|on) \((?!cluster\b|\))[^)]*\)", expression)


@pytest.mark.parametrize("rule", alert_rules.alerts(), ids=lambda rule: rule["alert"])
def test_every_rule_keeps_the_label_of_the_kubernetes_cluster(rule: alert_rules.Rule) -> None:
    assert without_cluster(rule["expr"]) == []


def test_a_rule_that_merges_clusters_is_found() -> None:
    merged = "max by (namespace, policy) (a) and on (cluster, policy) b or on () c"
    assert without_cluster(merged) == ["by (namespace, policy)"]


@pytest.mark.parametrize("rule", alert_rules.alerts(), ids=lambda rule: rule["alert"])
def test_a_command_in_an_alert_names_the_policy_and_the_namespace(rule: alert_rules.Rule) -> None:
    for command in re.findall(r'"((?:bellwether|kubectl) [^"]*)', rule["annotations"]["description"]):
        assert "$labels.namespace" in command or "doctor" in command, command


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    assert unmatched((rule["alert"] for rule in alert_rules.alerts()), alert_rules.PAGES) == []


def test_a_missing_a_left_over_and_an_unlisted_page_are_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("| [Listed](Listed.md) |\n")
    for name in ("Listed", "Old", "Unlisted"):
        (tmp_path / f"{name}.md").touch()
    assert unmatched(["Listed", "Missing", "Unlisted"], tmp_path) == ["Missing", "Old", "Unlisted"]


@pytest.mark.parametrize("page", sorted(alert_rules.PAGES.glob("Bellwether*.md")), ids=lambda page: page.stem)
def test_a_runbook_page_tells_all_that_is_needed_at_night(page: Path) -> None:
    text = page.read_text()
    assert incomplete(text) == []
    [severity] = {rule["labels"]["severity"] for rule in alert_rules.alerts() if rule["alert"] == page.stem}
    assert text.startswith(f"# {page.stem}\n\n{severity}, ")


def test_a_page_that_tells_too_little_is_found() -> None:
    page = "# A\n\nwarning, now\n\n## Meaning\n\nx\n\n## Impact\n\n## Diagnosis\n\nx\n"
    assert incomplete(page) == ["Impact", "Mitigation", "What not to do"]


def test_every_alert_is_told_by_policy_but_for_those_of_a_whole_process() -> None:
    whole = {"BellwetherKubernetesWritesFailing", "BellwetherWebhookRejecting"}
    for rule in alert_rules.alerts():
        if rule["alert"] not in whole:
            assert "namespace_policy:" in rule["expr"] or "namespace, policy" in rule["expr"], rule["alert"]


def test_the_page_of_metrics_is_what_the_metrics_are() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "draw_metrics.py", "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

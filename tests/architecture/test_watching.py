"""Metrics, alerts, dashboards and runbook pages tell of one another truly, and what is generated is fresh."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import yaml

from sourcetree import ROOT
from testkit.alerts import alert_rules
from testkit.alerts.dashboard_panels import boards, panels
from testkit.runbooks import page_commands
from testkit.runbooks.acts import ACTS, PARTINGS
from testkit.runbooks.looks import LOOKS
from testkit.runbooks.page_commands import PageCommand
from waiting import ran

METRIC = re.compile(r"\bbellwether_[a-z_]+\b")
LISTED = re.compile(r"^\| `(bellwether_[a-z_]+)` \| (\w+) \|", re.MULTILINE)
SECTIONS = ("Meaning", "Impact", "Diagnosis", "Mitigation", "What not to do", "How to stop everything")
WHERE = "[Where these commands run](../runbook.md#where-the-commands-run):\n\n```"
STOP = """\
`bellwether suspend --policy NAME -n NAMESPACE` stops every move of the policy
([without the CLI, and all policies at once](../runbook.md#stop-everything))."""
CAUSE = "bellwether status --policy NAME -n NAMESPACE"
OTHER_CAUSES = {
    "BellwetherCertificateExpiringSoon",  # a metric alone has the time
    "BellwetherErrorBudgetBurnSlow",  # the past is in Prometheus
    "BellwetherKubernetesWritesFailing",  # about a process, not a policy
    "BellwetherOperatorDown",  # status is old
    "BellwetherReplicaSetConflict",  # an event names the partitions
    "BellwetherSamplerGaps",  # the sampler has no status
    "BellwetherSamplerRoundsPartial",
}
"""Pages whose cause another command shows than that of all others."""
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
    """All PromQL of the rule files, of the dashboards and of the runbook pages."""
    rules = [
        rule["expr"]
        for path in alert_rules.files()
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
    ]
    marks = [mark["expr"] for board in boards().values() for mark in board["annotations"]["list"]]
    queries = [one.text for page in page_commands.PAGES for one in page_commands.commands(page) if one.query]
    return rules + marks + queries + [target["expr"] for panel in panels() for target in panel.targets]


def faults(rule: alert_rules.Rule) -> list[str]:
    """What an alert lacks that every alert has."""
    annotations, labels = rule["annotations"], rule["labels"]
    found = [name for name in ("summary", "description", "runbook_url") if not annotations.get(name)]
    if annotations.get("runbook_url") != f"{alert_rules.RUNBOOKS}{rule['alert']}/":
        found.append("runbook_url")
    if labels.get("severity") not in SEVERITIES:
        found.append("severity")
    return found


def unmatched(names: Iterable[str], folder: Path) -> list[str]:
    """Alerts without a runbook page, pages without an alert, and pages that the index does not name."""
    wanted, pages = set(names), {path.stem for path in folder.glob("*.md")} - {"README"}
    indexed = set(re.findall(r"^\| \[(\w+)\]\(\w+\.md\) \|", (folder / "README.md").read_text(), re.MULTILINE))
    return sorted((wanted ^ pages) | (wanted ^ indexed))


def without_symptom(index: str) -> list[str]:
    """Pages of the index that no symptom leads to."""
    symptoms = "".join(re.findall(r"^\| [^\[\n]+\| \[.*$", index, re.MULTILINE))
    listed = re.findall(r"^\| \[\w+\]\((\w+\.md)\) \|", index, re.MULTILINE)
    return [page for page in listed if f"({page})" not in symptoms]


def incomplete(page: str) -> list[str]:
    """What a runbook page does not tell."""
    parts = page_commands.sections(page)
    found = [title for title in SECTIONS if not parts.get(title)]
    if not parts.get("Diagnosis", "").startswith(WHERE):
        found.append("where the commands run")
    if parts.get("How to stop everything", STOP) != STOP:
        found.append("the common way to stop")
    return found


def unsuitable(page: str, commands: Sequence[PageCommand]) -> list[str]:
    """What is wrong with the number and the order of the commands of a page's diagnosis."""
    diagnosis = [one.text for one in commands if one.section == "Diagnosis"]
    found = [] if len(diagnosis) == 3 else [f"{len(diagnosis)} commands, not three"]
    if diagnosis and (diagnosis[0] == CAUSE) == (page in OTHER_CAUSES):
        found.append(f"begins with {diagnosis[0]}")
    return found


def metrics_page() -> str:
    return (ROOT / "docs" / "reference" / "metrics.md").read_text()


def test_rules_and_dashboards_ask_for_metrics_that_are_served() -> None:
    assert unknown_metrics(expressions(), metrics_page()) == []


def test_a_metric_that_is_not_exported_is_found() -> None:
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
    noted = {"summary": "x", "description": "", "runbook_url": f"{alert_rules.RUNBOOKS}Other/"}
    assert faults({"alert": "A", "annotations": noted, "labels": {"severity": "page"}}) == [
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
def test_command_in_alert_names_policy_and_namespace(rule: alert_rules.Rule) -> None:
    for command in re.findall(r'"((?:bellwether|kubectl) [^"]*)', rule["annotations"]["description"]):
        assert "$labels.namespace" in command or "doctor" in command, command


def test_every_alert_has_its_page_and_every_page_its_alert() -> None:
    assert unmatched((rule["alert"] for rule in alert_rules.alerts()), alert_rules.PAGES) == []


def test_a_symptom_leads_to_every_page() -> None:
    assert without_symptom((alert_rules.PAGES / "README.md").read_text()) == []


def test_missing_left_over_and_unlisted_page_are_found(tmp_path: Path) -> None:
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
    page = (
        "# A\n\nwarning, now\n\n## Meaning\n\nx\n\n## Impact\n\n## Diagnosis\n\nx\n\n## How to stop everything\n\nx\n"
    )
    missing = ["Impact", "Mitigation", "What not to do", "where the commands run", "the common way to stop"]
    assert incomplete(page) == missing


@pytest.mark.parametrize("page", sorted(alert_rules.PAGES.glob("Bellwether*.md")), ids=lambda page: page.stem)
def test_diagnosis_is_three_commands_and_first_one_shows_cause(page: Path) -> None:
    assert unsuitable(page.stem, page_commands.commands(page)) == []


def test_every_command_of_the_pages_is_one_that_a_test_runs_and_the_other_way_round() -> None:
    commands = {one.text for page in page_commands.PAGES for one in page_commands.commands(page) if not one.query}
    assert commands == {*LOOKS, *ACTS, *PARTINGS}


def test_block_continued_line_comment_and_span_are_read_as_commands(tmp_path: Path) -> None:
    text = "# P\n\n`kubectl get lp`\n## D\n\n```sh\nkubectl get \\\n  bh    # all\n```\n\n```promql\nup{a='B'}\n```\n\n"
    (tmp_path / "p.md").write_text(text + "Then `bellwether doctor`, `bellwether drain\n1`.\n")
    assert page_commands.commands(tmp_path / "p.md") == (
        PageCommand("p", "#", "kubectl get lp"),
        PageCommand("p", "D", "kubectl get bh", "all"),
        PageCommand("p", "D", "up{a='B'}", query=True),
        PageCommand("p", "D", "bellwether drain 1"),
    )


def test_every_alert_is_by_policy_except_those_of_a_process() -> None:
    for rule in alert_rules.alerts():
        if rule["alert"] != "BellwetherKubernetesWritesFailing":
            assert "namespace_policy:" in rule["expr"] or "namespace, policy" in rule["expr"], rule["alert"]


def test_the_page_of_metrics_is_what_the_metrics_are() -> None:
    done = ran([sys.executable, ROOT / "docs" / "draw_metrics.py", "--check"])
    assert done.returncode == 0, done.stderr

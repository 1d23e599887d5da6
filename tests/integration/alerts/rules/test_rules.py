"""Every alert fires when it should, and not in the nearest harmless case, by the word of the real promtool."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from bellwether.telemetry.metrics.metric_registry import JointRegistry
from bellwether.telemetry.metrics.probe_metrics import PluginMetrics, ProbeMetrics, QueryMetrics
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from testkit.alerts import alert_rules
from testkit.alerts.cases import ALL
from testkit.alerts.cases.alert_case import Case, of_policy, series
from testkit.alerts.dashboard_panels import boards, panels, sent

pytestmark = pytest.mark.prometheus

GROUPS = [list(cases) for _, cases in groupby(ALL, key=lambda case: (case.alert, case.every))]
SICK = series("broker_verdict", broker="1", verdict="Sick")
WRONG = [
    [Case("BellwetherBrokerSick", "x", "2m", {SICK: values}, fires)]
    for values, fires in (("1x20", ()), ("0x20", (of_policy(broker="1"),)), ("1x20", (of_policy(broker="2"),)))
]


def called(cases: Sequence[Case]) -> str:
    return f"{cases[0].alert}, {cases[0].every}"


def untested(cases: Sequence[Case]) -> set[str]:
    """Alerts without a case in which they fire, or without one in which they do not."""
    wanted = {rule["alert"] for rule in alert_rules.alerts()}
    return (wanted - {c.alert for c in cases if c.fires}) | (wanted - {c.alert for c in cases if not c.fires})


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """What one promtool printed on each of the groups, and on each wrong case."""
    return alert_rules.verdicts([*GROUPS, *WRONG], tmp_path_factory.mktemp("rules"))


@pytest.mark.parametrize("number", range(len(GROUPS)), ids=[called(cases) for cases in GROUPS])
def test_an_alert_fires_when_it_should_and_only_then(number: int, outcomes: list[tuple[str, str]]) -> None:
    assert outcomes[number][0] == ""


def test_every_alert_has_a_case_in_which_it_fires_and_a_harmless_one() -> None:
    assert untested(ALL) == set()


def test_an_alert_without_a_harmless_case_is_found() -> None:
    assert untested([c for c in ALL if c.fires or c.alert != "BellwetherBrokerSick"]) == {"BellwetherBrokerSick"}


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_case_that_does_not_come_about_is_found(number: int, outcomes: list[tuple[str, str]]) -> None:
    assert "exp" in outcomes[len(GROUPS) + number][0]


FIRING = [number for number, cases in enumerate(GROUPS) if any(case.fires for case in cases)]


@pytest.mark.parametrize("number", FIRING, ids=[called(GROUPS[number]) for number in FIRING])
def test_what_an_alert_says_is_said_in_whole(number: int, outcomes: list[tuple[str, str]]) -> None:
    said = outcomes[number][1]
    assert f"{alert_rules.RUNBOOKS}{GROUPS[number][0].alert}/" in said
    assert "<no value>" not in said
    assert "error expanding" not in said


def test_an_alert_says_why_its_broker_is_sick(outcomes: list[tuple[str, str]]) -> None:
    texts = "".join(text for _, text in outcomes)
    assert "has been Sick for one minute (ExternallyUnreachable: Refused). Its partitions" in texts


def test_the_rules_are_sound() -> None:
    done = alert_rules.promtool("check", "rules", "--lint=all", "--lint-fatal", *alert_rules.files())
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_shortened_for_tests_are_sound_and_the_same_but_for_their_times(tmp_path: Path) -> None:
    copies = alert_rules.shortened(tmp_path, hold=3, pace=60, silence=8)
    assert alert_rules.promtool("check", "rules", *copies).returncode == 0
    times = re.compile(r"\[\w+\]|> (45|8)\b")
    for rule, copy in zip(alert_rules.alerts(), alert_rules.alerts(tmp_path), strict=True):
        assert times.sub("", copy["expr"]) == times.sub("", rule["expr"])
        assert copy.get("for") == ("3s" if "for" in rule else None)
    fast = [rule["expr"] for rule in alert_rules.alerts(tmp_path) if rule["labels"].get("window") == "1h"]
    assert all("[60s]" in expr and "[20s]" in expr for expr in fast)


def test_every_query_of_the_dashboards_is_promql(tmp_path: Path) -> None:
    queries = [sent(target["expr"]) for panel in panels() for target in panel.targets]
    marks = [sent(mark["expr"]) for board in boards().values() for mark in board["annotations"]["list"]]
    assert (len(queries), len(marks)) > (50, 4)
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate([*queries, *marks])]
    path = tmp_path / "queries.yaml"
    path.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    done = alert_rules.promtool("check", "rules", "--lint=none", path)
    assert done.returncode == 0, done.stdout + done.stderr


def used(registry: CollectorRegistry) -> str:
    """What a process serves that has something to tell."""
    return generate_latest(registry).decode()


def sampler() -> SamplingMetrics:
    metrics = SamplingMetrics({"namespace": "kafka", "policy": "main"})
    metrics.sampled([1], complete=False)
    metrics.last_written.set(1.0)
    return metrics


def prober() -> JointRegistry:
    metrics = ProbeMetrics({"namespace": "kafka", "policy": "main", "source": "rules"})
    joint = JointRegistry("prober", {"source": "rules"})
    joint.add(metrics.registry)
    PluginMetrics(metrics).measurements.labels(1, "passing").inc()
    QueryMetrics(metrics).queries.add("latency", "ok", seconds=0.1)
    return joint


@pytest.mark.parametrize("served", [used(sampler().registry), used(prober())], ids=["sampler", "prober"])
def test_promtool_has_nothing_to_say_against_metrics(served: str) -> None:
    done = alert_rules.promtool("check", "metrics", "--lint=all", stdin=served)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_promtool_does_find_metrics_that_are_named_badly() -> None:
    done = alert_rules.promtool(
        "check", "metrics", stdin="# TYPE bellwether_milliseconds counter\nbellwether_milliseconds 1\n"
    )
    assert done.returncode != 0

"""The preset of firing alerts against a real Prometheus: no series means no alert only while its rule is evaluated."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.ports.errors import Terminal
from bellwether.probes.prometheus.prometheus_probe import answer_of
from bellwether.probes.prometheus.query_rules import figures, judge
from realparts.prometheus import PrometheusServer
from testkit.kubernetes.api_objects import prometheus, rules_of
from testkit.processes.exporters import BROKERS, Site, past, pod_monitor
from testkit.values.security_settings import WITHOUT_CREDENTIALS
from waiting import until

pytestmark = pytest.mark.prometheus

OFFLINE = "last_over_time(kafka_log_logmanager_offlinelogdirectorycount[1h])"
RULES = {
    "DiskFailing": f"{OFFLINE} > 0",  # broker 1
    "SlowDisk": f"{OFFLINE} == 1",
    "DiskGone": f"{OFFLINE} > 99",
    "Broken": f"{OFFLINE} * on (namespace) {OFFLINE}",
    "Anonymous": 'label_replace(vector(1), "namespace", "kafka", "", "")',
}


@pytest.fixture(scope="module")
def evaluating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    """A Prometheus that has evaluated these rules at least once."""
    folder, now = tmp_path_factory.mktemp("alerts"), time.time()
    rules = [{"alert": name, "expr": query} for name, query in RULES.items()]
    (folder / "rules.yml").write_text(json.dumps({"groups": [{"name": "brokers", "rules": rules}]}))
    server = PrometheusServer(folder / "server", rules=[folder / "rules.yml"])
    # No sample may lie ahead, as the server takes none that are older than those that it has.
    server.remember(past(Site(now, pod_monitor).jmx().lines, now, ahead_minutes=0))
    with server:
        until(lambda: len(server.query("ALERTS")), 60, so=lambda count: count == 3)
        yield server


def judged(server: PrometheusServer, alerts: str) -> list[bool | None]:
    """Whether each broker's value is bad; None where it cannot be judged."""
    selector = f'alertname=~"{alerts}",namespace="kafka"'
    body = prometheus(preset="FiringAlerts", threshold="0", selector=selector)
    (rule,) = rules_of(body)
    client = PrometheusClient(server.url, WITHOUT_CREDENTIALS)
    try:
        found = figures(answer_of(client, rule, 10).samples, rule, dict.fromkeys(BROKERS, ()))
    finally:
        client.close()
    return [judge(broker, found, rule).bad for broker in BROKERS]


def test_broker_fails_while_one_of_the_alerts_fires_for_it_and_others_pass(evaluating: PrometheusServer) -> None:
    assert judged(evaluating, "DiskFailing") == [True, False, False]
    assert judged(evaluating, "DiskFailing|SlowDisk|DiskGone") == [True, False, False]


def test_every_broker_passes_while_no_alert_of_known_rule_fires(evaluating: PrometheusServer) -> None:
    assert judged(evaluating, "DiskGone") == [False, False, False]


def test_alert_without_a_rule_is_no_answer(evaluating: PrometheusServer) -> None:
    with pytest.raises(Terminal, match=r"^has no rule of alert Renamed: name an alert of this Prometheus in selector$"):
        judged(evaluating, "DiskFailing|Renamed")


def test_alert_whose_rule_cannot_be_evaluated_is_no_answer(evaluating: PrometheusServer) -> None:
    with pytest.raises(Terminal, match=r"^cannot evaluate the rule of alert Broken: see its error there, at /rules"):
        judged(evaluating, "Broken")


def test_alert_that_names_no_broker_leaves_those_without_series_unknown(evaluating: PrometheusServer) -> None:
    assert judged(evaluating, "DiskFailing|Anonymous") == [True, None, None]

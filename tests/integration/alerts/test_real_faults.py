"""Alerts that a real Prometheus fires, through real faults, and that stop once the fault is repaired."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from testkit.alerts import alert_rules

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.alerts.monitored_site import WatchedSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.prometheus, pytest.mark.slow]


def cut(kafka: KafkaCluster, *brokers: int) -> None:
    assert kafka.proxy is not None
    for broker in brokers:
        kafka.proxy.cut(f"broker-{broker}")


def test_promtool_has_nothing_to_say_against_what_is_really_served(watched: WatchedSite) -> None:
    for name in watched.processes:
        served = watched.site.scrape(watched.ports[name])
        done = alert_rules.promtool("check", "metrics", "--lint=all", stdin=served)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), name


def test_more_brokers_than_the_cap_are_a_systemic_cause(watched: WatchedSite, kafka: KafkaCluster) -> None:
    cut(kafka, 2, 3)
    watched.until_fires("BellwetherSystemicCause")
    watched.until_fires("BellwetherSickBrokerLeading")
    kafka.mend()
    watched.until_quiet(["BellwetherSystemicCause", "BellwetherSickBrokerLeading", "BellwetherBrokerDemoted"])


def test_silent_vantages_are_named_until_the_quorum_is_lost(watched: WatchedSite) -> None:
    probers = [watched.processes[zone] for zone in ("zone-a", "zone-b")]
    probers[0].pause()
    try:
        watched.until_fires("BellwetherProberDown", 90, source="zone-a")
        probers[1].pause()
        watched.until_fires("BellwetherVantageQuorumLost", 90)
    finally:
        for prober in probers:
            prober.resume()
    watched.until_quiet(["BellwetherProberDown", "BellwetherVantageQuorumLost"])


def test_operator_that_is_killed_is_missed_until_another_one_leads(watched: WatchedSite) -> None:
    watched.processes["operator"].kill()
    watched.until_fires("BellwetherOperatorDown", namespace=watched.site.namespace, policy="main")
    watched.operator()
    watched.until_quiet(["BellwetherOperatorDown"])
    watched.site.until(
        lambda: watched.ask("max by (policy) (bellwether_operator_leading) == 1"),
        60,
        "an operator leads",
        watched.firing,
    )


def test_a_second_policy_for_the_cluster_alerts_until_removed(watched: WatchedSite) -> None:
    watched.site.policy("second")
    watched.until_fires("BellwetherClusterClaimed", policy="second")
    assert not watched.fires("BellwetherNoActiveOperator")
    watched.site.delete(name="second")
    watched.site.until(lambda: watched.site.gone("second"), 60, "it is gone")
    watched.until_quiet(["BellwetherClusterClaimed", "BellwetherNoActiveOperator"])


def test_a_policy_whose_cluster_does_not_answer_alerts(watched: WatchedSite) -> None:
    nowhere: dict[str, Any] = {"bootstrapServers": [f"127.0.0.1:{watched.site.free_port()}"]}
    watched.site.policy("lost", kafka=nowhere)
    for alert in ("BellwetherReconcileFailing", "BellwetherNoActiveOperator", "BellwetherKafkaRequestsFailing"):
        watched.until_fires(alert, policy="lost")
    watched.site.delete(name="lost")
    watched.until_quiet(["BellwetherReconcileFailing", "BellwetherNoActiveOperator", "BellwetherKafkaRequestsFailing"])


def test_a_damaged_undo_record_alerts(watched: WatchedSite, kafka: KafkaCluster) -> None:
    site = watched.site
    damaged = {"data": {"format": "99"}}  # as a later version would write
    [name] = [n for n in site.kubectl("get", "cm", "-o", "name").split() if n.endswith("bellwether-undo-main")]
    before = site.kubectl("get", name, "-o", "json")
    site.kubectl("patch", name, "--type=merge", "-p", json.dumps(damaged))
    watched.processes["operator"].kill()
    watched.operator()
    watched.until_fires("BellwetherUndoRecordUnavailable")
    site.kubectl("patch", name, "--type=merge", "-p", json.dumps({"data": json.loads(before)["data"]}))
    watched.until_quiet(["BellwetherUndoRecordUnavailable", "BellwetherReconcileFailing"])


def test_an_orderly_handover_to_another_operator_alerts_nothing(watched: WatchedSite) -> None:
    site, first = watched.site, watched.processes["operator"]
    watched.operator("operator-2")
    site.until(lambda: held(watched, "operator-2") == 0, 60, "another one stands by")
    first.ask_to_stop()
    heard: list[dict[str, str]] = []

    def taken_over() -> bool:
        heard.extend(watched.noise())
        return held(watched, "operator-2") == 1

    site.tell(f"taken over {site.until(taken_over, 60, 'the second one leads'):.1f} s after it was asked to stop")
    assert heard == []


def held(watched: WatchedSite, name: str) -> float | None:
    """What an operator says of its leadership, as Prometheus has it."""
    found = watched.ask(f'bellwether_operator_leading{{pod="{name}", policy="main"}}')
    return float(found[0]["value"][1]) if found else None

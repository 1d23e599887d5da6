"""What the recorded ratio and the panels make of series, by the word of the real promtool."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboards.oncall import HEALTH_STATES
from testkit.alerts import alert_rules
from testkit.alerts.cases.alert_case import series
from testkit.alerts.dashboard_panels import boards, panels, sent

pytestmark = pytest.mark.prometheus

RATIO = "namespace_policy:bellwether_unavailability:ratio_rate1m"
OURS = f'{RATIO}{{namespace="kafka",policy="main"}}'


def asks(broker: str, result: str, source: str = "zone-a") -> str:
    return series("probe_requests_total", broker=broker, path="external", source=source, result=result)


def leads(broker: str, instance: str = "operator-a") -> str:
    return series("broker_leaders", broker=broker, instance=instance)


def query(title: str, letter: str = "A") -> str:
    """A query of a panel of the dashboard for the on-call."""
    [panel] = [panel for panel in panels() if str(panel) == f"on-call.json: {title}"]
    return next(sent(target["expr"]) for target in panel.targets if target["refId"] == letter)


def mark(name: str) -> str:
    """The query of a mark."""
    return next(sent(m["expr"]) for m in boards()["on-call.json"]["annotations"]["list"] if m["name"] == name)


def of(broker: str, **labels: str) -> str:
    """A series of a broker, as promtool writes it."""
    every = {"broker": broker, "namespace": "kafka", "policy": "main", **labels}
    return "{" + ",".join(f'{name}="{value}"' for name, value in sorted(every.items())) + "}"


def verdicts(broker: str, now: str, before: str = "", **labels: str) -> dict[str, str]:
    """The series of a broker's verdict: five samples of ``before``, then ``now``."""
    return {
        series("broker_verdict", broker=broker, verdict=name, instance="operator-a", **labels): (
            f"{int(name == (before or now))}x4 {int(name == now)}x20"
        )
        for name in HEALTH_STATES
    }


@pytest.mark.parametrize(
    ("given", "ratio"),
    [
        ({asks("1", "ok"): "0+15x20", leads("1"): "10x20"}, 0.0),
        ({asks("1", "Connect"): "0+15x20", leads("1"): "10x20"}, 0.2),
        ({asks("1", "Connect"): "0+15x20", leads("1"): "0x20"}, 0.0),
        ({asks("1", "Connect"): "0+15x20", asks("1", "ok", "zone-b"): "0+15x20", leads("1"): "10x20"}, 0.1),
        ({asks("1", "Connect"): "0+5x20", asks("1", "ok"): "0+15x20", leads("1"): "10x20"}, 0.05),
    ],
    ids=["all well", "a leader cut off", "cut off and demoted", "from one of two vantages", "a quarter of the time"],
)
def test_unavailability_is_the_share_of_leaders_that_is_not_reached(
    given: dict[str, str], ratio: float, tmp_path: Path
) -> None:
    others = {asks("2", "ok"): "0+15x20", leads("2"): "40x20", series("partitions_leaderless"): "0x20"}
    assert alert_rules.value(RATIO, {**others, **given}, [(OURS, ratio)], tmp_path) == ""


def test_a_partition_without_leader_counts_whole(tmp_path: Path) -> None:
    noted = {asks("2", "ok"): "0+15x20", leads("2"): "75x20", series("partitions_leaderless"): "25x20"}
    assert alert_rules.value(RATIO, noted, [(OURS, 0.25)], tmp_path) == ""


def test_two_operators_that_tell_of_the_same_leaders_count_once(tmp_path: Path) -> None:
    noted = {
        asks("1", "Connect"): "0+15x20",
        asks("2", "ok"): "0+15x20",
        **{leads(broker, instance): "10x20" for broker in ("1", "2") for instance in ("operator-a", "operator-b")},
        series("partitions_leaderless"): "0x20",
    }
    assert alert_rules.value(RATIO, noted, [(OURS, 0.5)], tmp_path) == ""


def test_the_timeline_shows_the_brokers_that_were_not_healthy_by_the_number_of_their_verdict(tmp_path: Path) -> None:
    noted = {**verdicts("1", "Healthy"), **verdicts("2", "Sick"), **verdicts("3", "Unknown")}
    noted |= verdicts("4", "Healthy", before="Sick")
    wanted = [(of("2"), 5.0), (of("3"), 3.0), (of("4"), 0.0)]
    assert alert_rules.value(query("Verdicts"), noted, wanted, tmp_path) == ""


def test_broker_1_of_two_clusters_is_two_rows(tmp_path: Path) -> None:
    noted = {**verdicts("1", "Sick"), **verdicts("1", "Down", policy="other"), **verdicts("1", "Down", cluster="eu")}
    wanted = [(of("1"), 5.0), (of("1", policy="other"), 4.0), (of("1", cluster="eu"), 4.0)]
    assert alert_rules.value(query("Verdicts"), noted, wanted, tmp_path) == ""


def test_the_table_has_the_time_of_the_verdict_and_of_the_demotion_and_what_is_blocked(tmp_path: Path) -> None:
    noted = {**verdicts("1", "Sick"), **verdicts("2", "Healthy"), **verdicts("3", "Healthy")}
    noted |= {series("broker_verdict_since_timestamp_seconds", broker=b): "60x20" for b in ("1", "2", "3")}
    noted |= {series("broker_demoted", broker=b): f"{int(b == '2')}x20" for b in ("1", "2", "3")}
    noted |= {series("broker_leaders", broker=b): "7x20" for b in ("1", "2", "3")}
    noted[series("broker_demoted_since_timestamp_seconds", broker="2")] = "120x20"
    noted[series("broker_action_blocked", broker="1", reason="CapReached")] = "1x20"
    for letter, wanted in {
        "A": [(of("1", verdict="Sick"), 240.0), (of("2", verdict="Healthy"), 240.0)],
        "C": [(of("2"), 180.0)],
        "D": [(of("1", blocked="CapReached"), 1.0)],
        "E": [(of("1"), 7.0), (of("2"), 7.0)],
    }.items():
        assert alert_rules.value(query("Who, why, since when", letter), noted, wanted, tmp_path) == "", letter


def test_alert_is_listed_with_time_since_when_it_is_active(tmp_path: Path) -> None:
    labels = 'alertname="BellwetherBrokerDown",namespace="kafka",policy="main",severity="warning"'
    noted = {f'ALERTS{{{labels},alertstate="firing"}}': "1x20", f"ALERTS_FOR_STATE{{{labels}}}": "30x20"}
    wanted = [(f'{{{labels},alertstate="firing"}}', 270.0)]
    assert alert_rules.value(query("Alerts, firing and pending"), noted, wanted, tmp_path) == ""


@pytest.mark.parametrize(("values", "wanted"), [("0x10 1x9", []), ("1x18 0x1", [of("1")]), ("1x10 0x9", [])])
def test_a_promotion_is_marked_for_a_minute(values: str, wanted: list[str], tmp_path: Path) -> None:
    noted = {series("broker_demoted", broker="1"): values, series("broker_demoted", broker="2"): "1x20"}
    assert alert_rules.value(mark("Promotions"), noted, [(name, 1.0) for name in wanted], tmp_path) == ""


@pytest.mark.parametrize(
    ("values", "wanted"),
    [("0.1x20", []), ("_x18 0.1x1", [0.1]), ("0.1x17 0.5x3", [0.5]), ("0x20", [])],
    ids=["no new wave", "the first", "the second", "none yet"],
)
def test_a_wave_is_marked_where_more_leaders_may_return(values: str, wanted: list[float], tmp_path: Path) -> None:
    noted = {series("broker_restoration_ratio", broker="1"): values}
    assert alert_rules.value(mark("Restoration waves"), noted, [(of("1"), ratio) for ratio in wanted], tmp_path) == ""


def test_a_demotion_is_marked_at_its_time_in_milliseconds(tmp_path: Path) -> None:
    noted = {series("broker_demoted_since_timestamp_seconds", broker="1"): "120x20"}
    assert alert_rules.value(mark("Demotions"), noted, [(of("1"), 120_000.0)], tmp_path) == ""


def test_a_standby_does_not_double_what_the_active_operator_reports(tmp_path: Path) -> None:
    noted = {series("broker_demoted", broker="1", instance=name): "1x20" for name in ("operator-a", "operator-b")}
    noted[series("broker_demoted", broker="2", instance="operator-a")] = "1x20"
    assert alert_rules.value(query("Demoted"), noted, [("{}", 2.0)], tmp_path) == ""

"""What the recorded ratio and the panels make of series, by the word of the real promtool."""

from __future__ import annotations

from pathlib import Path

import pytest

from testkit.alerts import alert_rules
from testkit.alerts.cases.alert_case import series

pytestmark = pytest.mark.prometheus

RATIO = "namespace_policy:bellwether_unavailability:ratio_rate1m"
OURS = f'{RATIO}{{namespace="kafka",policy="main"}}'


def asks(broker: str, result: str, source: str = "zone-a") -> str:
    return series("probe_requests_total", broker=broker, path="external", source=source, result=result)


def leads(broker: str, instance: str = "operator-a") -> str:
    return series("broker_leaders", broker=broker, instance=instance)


def panel(title: str) -> str:
    """The first query of a panel of the dashboard for the on-call."""
    return next(expr for name, expr in alert_rules.panels() if name == f"on-call.json: {title}")


@pytest.mark.parametrize(
    ("told", "ratio"),
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
    told: dict[str, str], ratio: float, tmp_path: Path
) -> None:
    others = {asks("2", "ok"): "0+15x20", leads("2"): "40x20", series("partitions_leaderless"): "0x20"}
    assert alert_rules.value(RATIO, {**others, **told}, [(OURS, ratio)], tmp_path) == ""


def test_a_partition_without_leader_counts_whole(tmp_path: Path) -> None:
    told = {asks("2", "ok"): "0+15x20", leads("2"): "75x20", series("partitions_leaderless"): "25x20"}
    assert alert_rules.value(RATIO, told, [(OURS, 0.25)], tmp_path) == ""


def test_two_operators_that_tell_of_the_same_leaders_count_once(tmp_path: Path) -> None:
    told = {
        asks("1", "Connect"): "0+15x20",
        asks("2", "ok"): "0+15x20",
        **{leads(broker, instance): "10x20" for broker in ("1", "2") for instance in ("operator-a", "operator-b")},
        series("partitions_leaderless"): "0x20",
    }
    assert alert_rules.value(RATIO, told, [(OURS, 0.5)], tmp_path) == ""


def test_a_panel_shows_each_brokers_verdict_as_the_number_that_it_is_mapped_from(tmp_path: Path) -> None:
    standings = ("Healthy", "Recovering", "Suspect", "Unknown", "Down", "Sick")
    told = {
        series("broker_verdict", broker=broker, verdict=name, instance="operator-a"): f"{int(name == its)}x20"
        for broker, its in (("1", "Healthy"), ("2", "Sick"), ("3", "Unknown"))
        for name in standings
    }
    wanted = [('{broker="1"}', 0.0), ('{broker="2"}', 5.0), ('{broker="3"}', 3.0)]
    assert alert_rules.value(panel("Verdicts"), told, wanted, tmp_path) == ""


def test_a_stand_by_does_not_double_what_the_leader_tells(tmp_path: Path) -> None:
    told = {series("broker_demoted", broker="1", instance=name): "1x20" for name in ("operator-a", "operator-b")}
    told[series("broker_demoted", broker="2", instance="operator-a")] = "1x20"
    assert alert_rules.value(panel("Demoted brokers"), told, [("{}", 2.0)], tmp_path) == ""

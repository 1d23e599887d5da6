"""The main fault, as a real Prometheus tells it: alerts that fire and stop, and dashboards that show something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testkit.alerts import alert_rules

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.alerts.monitored_site import WatchedSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.prometheus]

OF_A_SICK_BROKER = ("BellwetherBrokerSick", "BellwetherBrokerDemoted", "BellwetherPartitionMovesBlocked")


def cut(kafka: KafkaCluster, *brokers: int) -> None:
    assert kafka.proxy is not None
    for broker in brokers:
        kafka.proxy.cut(f"broker-{broker}")


@pytest.mark.slow
def test_a_broker_cut_off_is_told_until_it_is_well_and_every_panel_shows_something(
    watched: WatchedSite, kafka: KafkaCluster
) -> None:
    site = watched.site
    cut(kafka, 2)
    for alert in OF_A_SICK_BROKER:
        site.tell(f"{alert} fires {watched.until_fires(alert, namespace=site.namespace, policy='main'):.1f} s later")
    watched.until_fires("BellwetherErrorBudgetBurnFast")

    def told() -> bool:
        found = watched.annotations()
        sick, risk = (found.get(f"Bellwether{name}", {}) for name in ("BrokerSick", "PartitionMovesBlocked"))
        return "broker 2" in sick.get("description", "") and risk.get("summary", "").startswith("2 Kafka partitions")

    # A scrape that comes too late leaves a gap, and whatever is asked within it is empty.
    site.until(told, 60, "the alerts name the broker and its partitions", watched.annotations)
    silent = set(alert_rules.panels())

    def shown() -> bool:
        silent.difference_update([one for one in silent if watched.ask(one[1])])
        return not silent

    site.until(shown, 60, "every panel shows something", lambda: sorted(panel for panel, _ in silent))
    kafka.mend()
    watched.until_quiet([*OF_A_SICK_BROKER, "BellwetherErrorBudgetBurnFast"])

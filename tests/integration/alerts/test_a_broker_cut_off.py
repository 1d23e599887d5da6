"""The main fault, as a real Prometheus tells it: alerts that fire and stop, and dashboards that show something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testkit import alertrules

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.firing import WatchedSite

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.prometheus]

OF_A_SICK_BROKER = ("BellwetherBrokerSick", "BellwetherBrokerDemoted", "BellwetherPartitionsAtRisk")


def cut(kafka: KafkaCluster, *brokers: int) -> None:
    assert kafka.proxy is not None
    for broker in brokers:
        kafka.proxy.cut(f"broker-{broker}")


def test_a_broker_cut_off_is_told_until_it_is_well_and_every_panel_shows_something(
    watched: WatchedSite, kafka: KafkaCluster
) -> None:
    site = watched.site
    cut(kafka, 2)
    for alert in OF_A_SICK_BROKER:
        site.tell(f"{alert} fires {watched.until_fires(alert, namespace=site.namespace, policy='main'):.1f} s later")
    watched.until_fires("BellwetherAvailabilityBurnsFast")
    told = watched.annotations()
    assert "broker 2" in told["BellwetherBrokerSick"]["description"]
    assert told["BellwetherPartitionsAtRisk"]["summary"].startswith("2 Kafka partitions")
    silent = sorted({panel for panel, asked in alertrules.panels() if not watched.ask(asked)})
    assert silent == []
    kafka.mend()
    watched.until_quiet([*OF_A_SICK_BROKER, "BellwetherAvailabilityBurnsFast"])

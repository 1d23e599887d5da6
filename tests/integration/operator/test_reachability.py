"""The main job, end to end: probers see a broker cut off, the operator takes its leaders away and gives them back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.core.signals import Reading
from testkit.processes.sites import condition, demoted

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

VANTAGES = {"externalReachability": {"vantages": ["zone-a", "zone-b"]}}


def test_broker_cut_off_loses_its_leaders_and_gets_them_back(shared_site: Site, breakable_kafka: KafkaCluster) -> None:
    site = shared_site
    all_healthy(site, "zone-a", "zone-b")
    before = site.orders()
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    cut = time.monotonic()
    site.until(lambda: site.led_by(2) == 0, 60, "broker 2 leads nothing", site.partitions)
    site.tell(f"zero leaders {time.monotonic() - cut:.1f} s after the cut")
    site.until_demoted(2, before)
    unreachable = ("Sick", "ExternallyUnreachable")
    site.until(lambda: site.verdict(2) == unreachable, 30, "it is called so", lambda: site.health(2))
    assert "zone-a, zone-b" in condition(site.health(2), "Demoted")["message"]
    assert all(2 in p.isr for p in site.partitions().values()), "it goes on following"

    proxy.mend("broker-2")
    repaired = time.monotonic()
    site.until_restored(before)
    site.tell(f"back in place {time.monotonic() - repaired:.1f} s after the repair, with stabilizationSeconds 2")
    site.until(lambda: site.verdict(2)[0] == "Healthy", 30, "it is called Healthy")


@pytest.mark.slow
def test_one_failing_vantage_alone_demotes_no_broker(site: Site, breakable_kafka: KafkaCluster) -> None:
    voice = site.voice("zone-b")
    voice.calls_well(1, 2, 3)
    all_healthy(site, "zone-a")
    before = site.partitions()
    proxy = breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    site.until(lambda: site.verdict(2) == ("Suspect", "VantagesDisagree"), 30, "it is suspect", lambda: site.health(2))
    assert not demoted(site.health(2))
    assert site.partitions() == before
    voice.says(2, Reading.FAILING)
    site.until(lambda: site.led_by(2) == 0, 30, "the second vantage makes the quorum")


@pytest.mark.slow
def test_a_broker_without_answers_is_down_and_left_to_kafka(site: Site, breakable_kafka: KafkaCluster) -> None:
    all_healthy(site, "zone-a", "zone-b")
    orders = site.orders()
    breakable_kafka.broker(3).pause()
    site.until(lambda: site.verdict(3)[0] == "Down", 60, "it is called Down", lambda: site.health(3))
    site.until(lambda: site.led_by(3) == 0, 60, "Kafka has fenced it")
    site.until(lambda: site.verdict(3) == ("Down", "BrokerDown"), 90, "that is said", lambda: site.health(3))
    assert not demoted(site.health(3))
    assert site.orders() == orders
    record = site.record()
    assert record is None or record.empty


@pytest.mark.slow
def test_with_one_broker_dead_and_one_cut_off_the_last_one_leads(site: Site, breakable_kafka: KafkaCluster) -> None:
    all_healthy(site, "zone-a", "zone-b")
    before = site.orders()
    proxy = breakable_kafka.proxy
    assert proxy is not None
    breakable_kafka.broker(3).kill()
    site.until(lambda: site.verdict(3)[0] == "Down" and site.led_by(3) == 0, 90, "3 is dead", lambda: site.health(3))
    assert site.led_by(1) > 0
    proxy.cut("broker-1")
    cut = time.monotonic()
    site.until(lambda: site.led_by(2) == len(before), 90, "2 leads everything", site.partitions)
    site.tell(f"zero leaders {time.monotonic() - cut:.1f} s after the cut, with another broker dead")
    site.until(lambda: demoted(site.health(1)), 30, "1 is demoted", lambda: site.health(1))
    assert [demoted(site.health(broker)) for broker in (2, 3)] == [False, False]
    blocked = lambda: condition(site.status(), "DemotionBlocked")["status"] == "False"  # noqa: E731
    site.until(blocked, 30, "nothing is blocked", site.status)

    breakable_kafka.broker(3).start()
    proxy.mend("broker-1")
    site.until_restored(before, 180)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 60, "all are Healthy", site.status)


@pytest.mark.slow
def test_a_second_listener_that_is_cut_is_named_and_its_broker_loses_its_leaders(
    site: Site, breakable_kafka: KafkaCluster
) -> None:
    """Clients inside use the listener INTERNAL, those behind the load balancer EXTERNAL."""
    watched = {**VANTAGES["externalReachability"], "listeners": ["INTERNAL"]}
    site.change(detection={"externalReachability": watched})
    advice = "listener EXTERNAL of brokers 1, 2 and 3 is not watched: if clients use it, add EXTERNAL to"
    assert advice in site.run("doctor", "--policy", "main").output
    watched["listeners"].append("EXTERNAL")
    all_healthy(site, "zone-a", "zone-b", reachability=watched)
    said = site.run("doctor", "--policy", "main").output
    assert ("listener SECURE of " in said, "listener EXTERNAL" in said) == (True, False)
    assert all("; EXTERNAL: " in entry["message"] for entry in site.health(2)["signals"])
    before, proxy = site.orders(), breakable_kafka.proxy
    assert proxy is not None
    proxy.cut("broker-2")
    cut = time.monotonic()
    site.until(lambda: site.led_by(2) == 0, 60, "broker 2 leads nothing", site.partitions)
    site.tell(f"zero leaders {time.monotonic() - cut:.1f} s after a second listener was cut")
    site.until(lambda: "listener EXTERNAL: " in site.health(2)["verdict"]["message"], 30, "it is named", site.status)
    entries = site.health(2)["signals"]
    assert {one["name"] for entry in entries for one in entry.get("listeners", ())} == {"EXTERNAL"}
    proxy.mend("broker-2")
    site.until_restored(before)


def all_healthy(site: Site, *probed: str, reachability: Mapping[str, Any] = VANTAGES["externalReachability"]) -> None:
    """Let real probers look from some vantages until everyone is called healthy."""
    site.change(detection={"externalReachability": reachability})
    for vantage in probed:
        site.prober(vantage)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 60, "all are Healthy", site.status)

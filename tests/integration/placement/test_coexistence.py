"""The example of ``examples/placement/coexistence``: which operations are waited for, and the orders afterwards.

The commands are those of its README, with Kafka's own tools; Strimzi's resources are set by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.core.model.cluster import TopicPartition
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.strimzi_fixture import StrimziSite
from testkit.processes.readme_runner import Guide
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "coexistence"
HOME = (1, 2, 3)


def orders_of(site: Site) -> list[tuple[int, ...]]:
    return [order for _, order in sorted(site.orders().items(), key=lambda one: one[0].partition)]


def waits(site: Site) -> bool:
    return bool(condition(site.status(), "WaitingForExternalOperation"))


def until_displaced(site: Site) -> None:
    """Status says so already; whom we ask may hear of it a moment later than whom the operator asked."""
    baselines = {TopicPartition("orders", number): HOME for number in range(4)}
    site.until(lambda: site.displaced(1, baselines), 10, "broker 1 is displaced", site.partitions)


def until_stands(site: Site, orders: list[tuple[int, ...]], **led: int) -> None:
    """As ``until_displaced``: these orders, and so many leaders of each broker."""
    wanted = {int(name.removeprefix("by_")): number for name, number in led.items()}

    def stands() -> bool:
        return orders_of(site) == orders and {b: site.led_by(b) for b in wanted} == wanted

    site.until(stands, 10, f"{orders} with {wanted}", site.partitions)


@pytest.fixture
def demoted(policy_site: Site) -> tuple[Site, Guide]:
    """The README's cluster, with its topic, and broker 1 kept from leading it."""
    site = policy_site
    site.adopt("orders")
    site.operator()
    guide = Guide(site, EXAMPLE)
    guide.follow("The cluster")
    guide.follow("Broker 1 is demoted")
    until_displaced(site)
    return site, guide


def test_a_throttled_move_is_waited_for_and_left_alone(demoted: tuple[Site, Guide]) -> None:
    site, guide = demoted
    moved = TopicPartition("orders", 0)
    guide.follow("Replicas on their way")
    site.until(lambda: site.led_by(1) == 0 and site.partitions()[moved].reassigning, 10, "it moves", site.partitions)
    on_its_way = site.partitions()[moved]
    assert (on_its_way.adding, on_its_way.removing) == ((4,), (3,)), "it goes on while it is waited for"
    assert condition(site.status(), "WaitingForExternalOperation")["reason"] == "ExternalOperation"
    assert site.led_by(1) == 0
    assert all(p.replicas[-1] == 1 for name, p in site.partitions().items() if name != moved)

    guide.follow("The move ends")
    until_stands(site, [(1, 4, 2), HOME, HOME, HOME], by_1=4)
    assert not waits(site)


def test_a_foreign_order_and_another_replication_factor_become_what_is_gone_back_to(
    demoted: tuple[Site, Guide],
) -> None:
    site, guide = demoted
    guide.follow("Another order")
    site.until(lambda: site.orders()[TopicPartition("orders", 1)][-1] == 1, 10, "it is asserted again", site.orders)
    guide.follow("Another replication factor")
    baselines = site.baselines(site.record())
    assert baselines[TopicPartition("orders", 1)] == (3, 1, 2)
    assert baselines[TopicPartition("orders", 2)] == (1, 2, 5, 3)
    assert site.led_by(1) == 0
    guide.follow("The demotion ends")
    until_stands(site, [HOME, (3, 1, 2), (1, 2, 5, 3), HOME], by_1=3, by_3=1)


def test_the_baselines_of_a_recreated_topic_are_dropped(demoted: tuple[Site, Guide]) -> None:
    site, guide = demoted
    old = {p.topic_id for p in site.partitions().values()}
    guide.follow("A recreated topic", seconds=60)
    until_stands(site, [(1, 3, 2), (1, 3, 2)], by_1=2)
    assert old.isdisjoint(p.topic_id for p in site.partitions().values())
    said = json.loads(site.kubectl("get", "events", "--field-selector", "reason=ChangedSincePlan", "-o", "json"))
    assert all(any(topic_id in event["message"] for topic_id in old) for event in said["items"])
    record = site.record()
    assert record is not None
    assert old.isdisjoint(key.topic_id for key in record.entries)


def test_pause_of_strimzi_holds_way_back_and_not_persons_word(policy_site: Site, apiserver: ApiServer) -> None:
    from realparts import strimzi

    apiserver.apply(strimzi.definitions())
    site = policy_site
    played, plain = StrimziSite(site, site.kafka), strimzi_objects.listener("plain", 9092, tls=False)
    addresses = {"plain": site.kafka.bootstrap}
    played.put(played.kafkas, strimzi_objects.kafka(namespace=site.namespace, listeners=(plain,), bootstrap=addresses))
    site.topics({"orders": 4}, assignments={"orders": [list(HOME)] * 4})
    site.operator()
    guide = Guide(site, EXAMPLE)
    guide.follow("Strimzi is paused")
    assert condition(site.status(), "WaitingForExternalOperation")["reason"] == "ExternalOperation"
    until_displaced(site)
    guide.follow("Strimzi continues")
    until_stands(site, [HOME] * 4, by_1=4)
    assert not waits(site)

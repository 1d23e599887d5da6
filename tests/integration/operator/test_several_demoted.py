"""The example of ``examples/placement/several-demoted``: where only demoted ones are left, the least sick leads.

Broker 1 is found unreachable by a real prober, broker 2 is demoted by a person, broker 3 is stopped and comes back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testkit.processes.readme_runner import Guide
from testkit.processes.sites import demoted

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "several-demoted"


def leaders(site: Site, topic: str) -> list[int | None]:
    return [p.leader for _, p in sorted(site.partitions(topic).items(), key=lambda one: one[0].partition)]


def until_led(site: Site, **wanted: list[int]) -> None:
    """Status says so already; whom we ask may hear of it a moment later than whom the operator asked."""
    site.until(lambda: {topic: leaders(site, topic) for topic in wanted} == wanted, 10, str(wanted), site.partitions)


@pytest.fixture
def site(crds: None, apiserver: ApiServer, tmp_path: Path) -> Iterator[Site]:
    """On brokers of its own: the README tells how many partitions each leads, and other tests leave some behind."""
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

    with KafkaCluster(3, directory=tmp_path / "kafka", controllers=1) as kafka:
        site = Site(apiserver, kafka, tmp_path)
        try:
            yield site
        finally:
            kafka.mend()
            site.close()


@pytest.mark.slow
def test_the_example_as_its_readme_tells_it(site: Site) -> None:
    proxy = site.kafka.proxy
    assert proxy is not None
    site.adopt("orders", "pair", "alone")
    site.operator()
    guide = Guide(site, EXAMPLE)
    guide.follow("The cluster")
    site.prober("zone-a")
    guide.follow("All are well")
    at_first = site.orders()

    proxy.cut("broker-1")
    guide.follow("One is cut off")
    until_led(site, orders=[3, 2, 3], pair=[2, 2], alone=[1])

    guide.follow("Another is demoted")
    until_led(site, orders=[3, 3, 3])
    sickest_last = {(3, 2, 1), (2, 1), (1,)}
    site.until(lambda: set(site.orders().values()) == sickest_last, 10, "the sickest is last", site.orders)

    site.kafka.broker(3).stop()
    guide.follow("The last healthy one is lost")
    until_led(site, orders=[2, 2, 2], pair=[2, 2], alone=[1])
    assert all(demoted(site.health(broker)) for broker in (1, 2)), "leading where no one else can ends no demotion"

    site.kafka.broker(3).start()
    guide.follow("It comes back")
    until_led(site, orders=[3, 3, 3])

    proxy.mend("broker-1")
    guide.follow("All is undone")
    site.until_restored(at_first)
    site.until(site.settled, 30, "it is settled", site.ready)

"""One slow log directory of two on real brokers, from the slow writes to the leaders' return, with the real probers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kafka.brokers.log_dirs import KafkaLogDirs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from testkit.processes.sites import POLICY, condition, demoted
from testkit.values.security_settings import PLAINTEXT

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

SICK = 1
PARTITIONS = 24


@pytest.fixture
def site(crds: None, apiserver: ApiServer, tmp_path: Path) -> Iterator[Site]:
    """Three brokers with two directories each, the first of which can be slow, and a prober for each directory."""
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

    with KafkaCluster(3, controllers=1, slow_disk=True, disks=2) as kafka:
        site = Site(apiserver, kafka, tmp_path)
        try:
            site.topics({site.topic: PARTITIONS})
            site.policy(promotion={"stabilizationSeconds": 10})
            site.operator()
            for broker in kafka.brokers.values():
                for number, directory in enumerate(broker.log_dirs):
                    beside = ["--policy", POLICY, "-n", site.namespace]
                    which = ["--directory", str(directory), "--source", f"broker-{broker.id}-disk-{number}"]
                    probe = [sys.executable, "-m", "bellwether", "probe", "storage", *beside, *which]
                    site.start(f"storage-{broker.id}-{number}", probe, kafka.slow_disk(broker.id).environment())
            site.until(lambda: all(site.verdict(b)[0] == "Healthy" for b in (1, 2, 3)), 60, "all are healthy")
            yield site
        finally:
            kafka.mend()
            site.close()


def in_first_directory(site: Site) -> frozenset[TopicPartition]:
    """What lies in the directory that will be slow, by the broker's own answer."""
    nodes = BrokerPool(Connection(tuple(site.kafka.bootstrap.split(",")), PLAINTEXT))
    KafkaReader(nodes).read()
    placement: Mapping[str, frozenset[TopicPartition]] | None = KafkaLogDirs(nodes).log_dirs(SICK)
    assert placement is not None
    return placement[str(site.kafka.broker(SICK).log_dir)] & site.partitions().keys()


def test_only_what_lies_in_the_slow_directory_is_led_by_others_until_it_is_fast_again(site: Site) -> None:
    home, slow = site.orders(), in_first_directory(site)
    kept = {name for name, p in site.partitions().items() if p.leader == SICK and name not in slow}
    assert kept
    assert any(p.leader == SICK for name, p in site.partitions().items() if name in slow)
    site.kafka.slow_disk(SICK).set(80)

    def moved() -> bool:
        found = site.partitions()
        return all(found[name].replicas[-1] == SICK != found[name].leader for name in slow)

    took = site.until(moved, 120, "its leaders moved", lambda: str(condition(site.health(SICK), "Demoted")))
    site.tell(f"{len(slow)} partitions of the slow directory led by others after {took:.1f} s")
    site.until(lambda: bool(site.health(SICK).get("demotedLogDirs")), 30, "the status names the directory")
    (noted,) = site.health(SICK)["demotedLogDirs"]
    assert (noted["directory"], noted["partitions"]) == (str(site.kafka.broker(SICK).log_dir), len(slow))
    assert site.verdict(SICK) == ("Suspect", "LogDirSlow")
    assert not demoted(site.health(SICK))
    now = site.partitions()
    assert {name: now[name].replicas for name in home.keys() - slow} == {n: home[n] for n in home.keys() - slow}
    assert {name for name in kept if now[name].leader == SICK} == kept
    site.kafka.slow_disk(SICK).clear()
    back = site.until_restored(home, 120)
    site.tell(f"restored {back:.1f} s after the directory was fast again")
    site.until(lambda: not site.health(SICK).get("demotedLogDirs"), 30, "the status names none any more")

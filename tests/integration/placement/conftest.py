"""Six brokers in three racks, the controller apart, and operators on them: in memory, or as processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testkit.kafka.kafka_site import KafkaSite
from testkit.simulation.invariant_watcher import Watcher
from testkit.simulation.operators import Operator

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

ROOT = Path(__file__).parents[3]
GRACE_SECONDS = 1.0


@pytest.fixture(scope="session")
def six(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Brokers 1 and 4 in dc-1, 2 and 5 in dc-2, 3 and 6 in dc-3."""
    from realparts.kafka import KafkaCluster

    directory, racks = tmp_path_factory.mktemp("six"), ("dc-1", "dc-2", "dc-3")
    with KafkaCluster(6, directory=directory, controllers=1, racks=racks, proxied=False) as cluster:
        yield cluster


@pytest.fixture
def stretched(six: KafkaCluster) -> Iterator[KafkaCluster]:
    """The six, and a killed one is back after the test."""
    yield six
    six.mend()


@pytest.fixture
def policy_site(apiserver: ApiServer, stretched: KafkaCluster, tmp_path: Path) -> Iterator[Site]:
    """A namespace in which nothing runs yet."""
    from testkit.processes.sites import Site

    apiserver.apply(ROOT / "crds")
    site = Site(apiserver, stretched, tmp_path)
    try:
        yield site
    finally:
        stretched.mend()
        site.close()


@pytest.fixture
def site(stretched: KafkaCluster) -> KafkaSite:
    site = KafkaSite(stretched)
    site.restore_leaders()
    return site


@pytest.fixture
def watcher(site: KafkaSite) -> Iterator[Watcher]:
    """Watches every operator that ``begin`` makes; no invariant may be broken, whatever the test is about."""
    watching = Watcher(site.store)
    yield watching
    assert watching.violations == []


@pytest.fixture
def begin(site: KafkaSite, watcher: Watcher) -> Callable[..., Operator]:
    """Starts an operator in memory."""

    def start(**options: Any) -> Operator:
        operator = Operator(site, grace_seconds=GRACE_SECONDS, arrival_seconds=GRACE_SECONDS, **options)
        operator.world = watcher.around(operator.world)
        return operator

    return start


@pytest.fixture
def topic(stretched: KafkaCluster, site: KafkaSite) -> Iterator[Callable[..., str]]:
    """Makes topics with the replicas given, which every broker knows then, and removes them after the test."""
    from realparts.kafka_topics import create_topics, delete_topics

    made: list[str] = []

    def make(name: str, *assignment: tuple[int, ...]) -> str:
        create_topics(stretched.bootstrap, {name: len(assignment)}, assignments={name: [list(a) for a in assignment]})
        made.append(name)
        site.everywhere(lambda c: sum(p.topic == name for p in c.partitions) == len(assignment))
        return name

    yield make
    delete_topics(stretched.bootstrap, made)

"""Operators as processes against the session's API server and brokers: one ``Site`` a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def crds(apiserver: ApiServer) -> None:
    """Both kinds, served."""
    apiserver.apply(ROOT / "crds")


@pytest.fixture
def bare_site(crds: None, apiserver: ApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Site]:
    """A namespace in which nothing runs; faults are repaired before it is closed."""
    from testkit.processes.sites import Site

    site = Site(apiserver, breakable_kafka, tmp_path)
    try:
        yield site
    finally:
        breakable_kafka.mend()
        site.close()


@pytest.fixture
def site(bare_site: Site) -> Site:
    """A topic of 40 partitions, an enforcing policy, and an operator that has settled."""
    bare_site.topics()
    bare_site.policy()
    bare_site.operator()
    bare_site.until_reported()
    return bare_site


@pytest.fixture(scope="session")
def kept_sites(apiserver: ApiServer, kafka: KafkaCluster) -> Iterator[list[Site]]:
    """The site whose operator goes on from test to test; none where the last test did not leave it well."""
    kept: list[Site] = []
    yield kept
    for process in (process for site in kept for process in site.processes):
        process.kill()


@pytest.fixture
def bare_shared_site(
    kept_sites: list[Site],
    crds: None,
    apiserver: ApiServer,
    breakable_kafka: KafkaCluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    """An operator that other tests use, too, as its start takes longer than most of them; no policy, no topic."""
    from testkit.processes.sites import Site

    site = kept_sites.pop() if kept_sites else Site(apiserver, breakable_kafka, tmp_path_factory.mktemp("shared-site"))
    if not site.processes:
        site.health_port = site.free_port()
        site.operator("--health-port", str(site.health_port))
    try:
        yield site
        breakable_kafka.mend()
        site.clear()
        kept_sites.append(site)
    finally:
        if site not in kept_sites:
            site.close()


@pytest.fixture
def shared_site(bare_shared_site: Site) -> Site:
    """A topic of 12 partitions and an enforcing policy that has settled, with an operator that other tests use, too."""
    bare_shared_site.topics({bare_shared_site.topic: 12})
    bare_shared_site.policy()
    bare_shared_site.until_reported()
    return bare_shared_site


@pytest.fixture(scope="session")
def other_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Another cluster: one broker, no topic."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(1, directory=tmp_path_factory.mktemp("other-kafka"), proxied=False) as cluster:
        yield cluster

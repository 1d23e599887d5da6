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
    """A namespace in which nothing runs; faults are mended before it is closed."""
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
def other_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Another cluster: one broker, no topic."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(1, directory=tmp_path_factory.mktemp("other-kafka"), proxied=False) as cluster:
        yield cluster

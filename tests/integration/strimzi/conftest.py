"""Strimzi's real definitions on the session's API server, and brokers whose listeners have the names it gives them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.kubernetes.strimzi_fixture import StrimziSite

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def strimzi_api(apiserver: ApiServer) -> ApiServer:
    """The session's API server, with Bellwether's definitions and those of the current Strimzi."""
    from realparts import strimzi

    apiserver.apply(ROOT / "crds", strimzi.definitions())
    return apiserver


@pytest.fixture(scope="session")
def strimzi_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three brokers in three racks, listening to clients inside and outside over TLS, for users with passwords."""
    from realparts.kafka import KafkaCluster
    from testkit.kubernetes.strimzi_fixture import LISTENER_NAMES

    with KafkaCluster(
        3,
        directory=tmp_path_factory.mktemp("strimzi-kafka"),
        controllers=1,
        racks=("zone-a", "zone-b", "zone-c"),
        sasl_ssl=True,
        external_ssl=True,
        listener_names=LISTENER_NAMES,
    ) as cluster:
        yield cluster


@pytest.fixture
def bare(strimzi_api: ApiServer, strimzi_kafka: KafkaCluster, tmp_path: Path) -> Iterator[StrimziSite]:
    """A namespace with nothing of Strimzi's in it yet; faults are repaired before it is closed."""
    from testkit.kubernetes.strimzi_fixture import StrimziSite
    from testkit.processes.sites import Site

    site = Site(strimzi_api, strimzi_kafka, tmp_path)
    try:
        yield StrimziSite(site, strimzi_kafka)
    finally:
        strimzi_kafka.mend()
        site.close()


@pytest.fixture
def strimzi(bare: StrimziSite) -> StrimziSite:
    """A cluster as Strimzi leaves it, a topic, a policy that names the cluster, and an operator that has settled."""
    bare.everything()
    bare.site.topics()
    bare.policy()
    bare.site.operator()
    bare.until_ready()
    return bare

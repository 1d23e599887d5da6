"""An API server without Strimzi, on which an older one is then installed that knows ``v1beta2`` alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver]

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_strimzi_may_come_later_and_be_an_older_one(strimzi_kafka: KafkaCluster, tmp_path: Path) -> None:
    from realparts import strimzi
    from realparts.apiserver import ApiServer
    from testkit.kubernetes.strimzi_fixture import StrimziSite
    from testkit.processes.sites import Site

    with ApiServer(tmp_path / "apiserver") as server:
        server.apply(ROOT / "crds")
        site = Site(server, strimzi_kafka, tmp_path)
        try:
            older = StrimziSite(site, strimzi_kafka, "v1beta2")
            site.topics()
            older.policy()
            site.operator()
            older.until_said("StrimziReferenceInvalid", "kafka.strimzi.io is not served", "install Strimzi")
            server.apply(strimzi.definitions(strimzi.OLDER))
            older.until_said("StrimziReferenceInvalid", "Kafka my-cluster does not exist")
            older.everything()
            older.until_ready()
            before = site.demote_and_wait(1)
            site.until(lambda: site.health(1).get("pod") == "my-cluster-brokers-1", 30, "its pod is known")
            site.lift_and_wait(1, before)
        finally:
            site.close()

"""A site that a real Prometheus watches: one for all tests of this folder, as it takes its time to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.alerts.monitored_site import WatchedSite

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def definitions(apiserver: ApiServer) -> None:
    """Both kinds, served."""
    apiserver.apply(ROOT / "crds")


@pytest.fixture(scope="module")
def watched_site(
    definitions: None, apiserver: ApiServer, empty_kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WatchedSite]:
    """See ``monitored_site``."""
    from testkit.alerts.monitored_site import monitored_site

    with monitored_site(apiserver, empty_kafka, tmp_path_factory.mktemp("watched")) as watched:
        yield watched


@pytest.fixture
def watched(watched_site: WatchedSite, kafka: KafkaCluster) -> Iterator[WatchedSite]:
    """The site, quiet; faults are repaired after the test."""
    watched_site.site.until(
        lambda: [watched_site.site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 120, "all are healthy"
    )
    watched_site.site.until(lambda: not watched_site.noise(), 120, "no alert fires", watched_site.firing)
    yield watched_site
    kafka.mend()

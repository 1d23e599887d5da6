"""What the person on call sees of each scene on real parts: the table, the status, the alert and the event.

``--update-golden`` writes what is seen into ``scenes/``: read the difference before it is committed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testkit.alerts.scenes import SCENES, Scene, alert_text, seen

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.alerts.monitored_site import WatchedSite

HERE = Path(__file__).parent / "scenes"


@pytest.fixture(scope="module")
def scenery(
    definitions: None, apiserver: ApiServer, empty_kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WatchedSite]:
    """A policy that enforces, with two vantages, and an operator with a store for plans; all of it scraped."""
    from testkit.alerts.monitored_site import ZONES, WatchedSite
    from testkit.processes.sites import Site

    directory = tmp_path_factory.mktemp("scenes")
    site = Site(apiserver, empty_kafka, directory)
    watched = WatchedSite(site, directory)
    try:
        orders = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 4
        site.topics({site.topic: 12}, assignments={site.topic: orders}, configs={"min.insync.replicas": "2"})
        site.policy(detection={"externalReachability": {"vantages": list(ZONES)}}, demotion={"dwellSeconds": 5})
        watched.operator()
        site.until_reported()
        watched.vantages()
        watched.watch()
        yield watched
    finally:
        watched.close()
        empty_kafka.mend()
        site.close()


@pytest.fixture
def quiet(scenery: WatchedSite) -> WatchedSite:
    """All brokers are healthy and lead what they should."""
    site = scenery.site
    site.until(lambda: site.ready()[0] == "UpToDate", 120, "all is as it should be", site.ready)
    site.until(lambda: [site.verdict(b)[0] for b in (1, 2, 3)] == ["Healthy"] * 3, 120, "all are healthy", site.status)
    site.until(lambda: [site.led_by(b) for b in (1, 2, 3)] == [4, 4, 4], 120, "leaders are spread", site.partitions)
    return scenery


@pytest.mark.kafka
@pytest.mark.apiserver
@pytest.mark.prometheus
@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_scene_is_seen_as_it_was_recorded(scene: Scene, quiet: WatchedSite, request: pytest.FixtureRequest) -> None:
    path = HERE / f"{scene.name}.txt"
    scene.begin(quiet)
    try:
        quiet.site.until(lambda: alert_text(quiet, scene), 120, f"{scene.alert} fires", quiet.firing)
        alert = alert_text(quiet, scene)
        scene.later(quiet)
        if request.config.getoption("--update-golden"):
            path.write_text(settled(quiet, scene, alert))
        wanted = path.read_text()
        quiet.site.until(
            lambda: seen(quiet, scene, alert) == wanted,
            60,
            "it is seen as recorded",
            lambda: "\n".join(difflib.unified_diff(wanted.splitlines(), seen(quiet, scene, alert).splitlines())),
        )
    finally:
        scene.end(quiet)


def settled(watched: WatchedSite, scene: Scene, alert: str) -> str:
    """What is seen once it does not change for some seconds, the event among it."""
    found = [""]

    def stays() -> bool:
        found.append(seen(watched, scene, alert))
        return found[-1] == found[-2] and scene.shows in found[-1] and "event: not yet" not in found[-1]

    watched.site.until(stays, 120, "it stays", lambda: found[-1])
    return found[-1]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_scene_names_the_cause_and_what_to_do(scene: Scene) -> None:
    text = (HERE / f"{scene.name}.txt").read_text()
    assert scene.shows in text
    assert "Nothing to do" not in text
    assert f"alert: {scene.alert}, " in text
    assert "event: none" in text if not scene.event else f" {scene.event} on " in text

"""Both images, built (or from the cache) and unpacked once a session; skipped where nothing can be built.

``BELLWETHER_IMAGES`` names a folder of docker-archives to look at instead: ``operator.tar`` and ``spark.tar``.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from images import building, recipe
from images.running import Container, Room, Unpacked
from images.unpacking import opened
from realparts.ports import LOOPBACK

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster
    from testkit.processes.sites import Site

Start = Callable[..., Container]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Building takes minutes where the cache is empty."""
    for item in items:
        if item.get_closest_marker("image"):
            item.add_marker(pytest.mark.timeout(1800))
            if os.geteuid() != 0:
                item.add_marker(pytest.mark.skip(reason="images are built and run as root, see docs/image.md"))


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Unpacked]]:
    """A target's image with its files laid out."""
    made: dict[str, Unpacked] = {}

    def unpacked(target: str) -> Unpacked:
        if target not in made:
            given = os.environ.get("BELLWETHER_IMAGES")
            image = opened(Path(given) / f"{target}.tar" if given else building.archive(target))
            made[target] = Unpacked(image, image.unpack(tmp_path_factory.mktemp("image") / target))
        return made[target]

    yield unpacked
    for one in made.values():
        shutil.rmtree(one.root)


@pytest.fixture(params=recipe.TARGETS)
def either(request: pytest.FixtureRequest, images: Callable[[str], Unpacked]) -> Unpacked:
    """Each of the two images in turn."""
    return images(request.param)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a container that ends with the test: ``start(unpacked, *arguments, room=...)``."""
    begun: list[Container] = []

    def begin(unpacked: Unpacked, *arguments: str, room: Room | None = None) -> Container:
        container = Container(unpacked, arguments, tmp_path / "containers", room)
        begun.append(container.__enter__())
        return container

    yield begin
    for container in begun:
        container.__exit__(None, None, None)


@pytest.fixture
def access(apiserver: ApiServer, tmp_path: Path) -> Room:
    """What lets a container into the session's API server: a kubeconfig that its user may read."""
    folder = tmp_path / "access"
    folder.mkdir()
    shutil.copyfile(apiserver.kubeconfig, folder / "kubeconfig")
    (folder / "kubeconfig").chmod(0o644)
    folder.chmod(0o755)
    return Room(environment={"KUBECONFIG": "/run/access/kubeconfig", **LOOPBACK}, shown={"/run/access": folder})


@pytest.fixture
def site(apiserver: ApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Site]:
    """A namespace on the real API with a topic on real brokers, and no process yet."""
    from testkit.processes.sites import Site

    apiserver.apply(recipe.ROOT / "crds")
    site = Site(apiserver, breakable_kafka, tmp_path)
    try:
        site.topics()
        yield site
    finally:
        breakable_kafka.mend()
        site.close()

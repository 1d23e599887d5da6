"""A whole Kubernetes node, and on it Kafka and Bellwether as a platform team would install them; once for all tests.

A node that was up before stays up, with what the tests left on it; one that was not is gone at the end.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from node.kubectl import Kubectl
    from node.places import Places
    from nodeparts.stage import Stage


@pytest.fixture(scope="session")
def places() -> Iterator[Places]:
    """The node, up, with the image of Bellwether on it."""
    from images import building
    from node import images, lifecycle
    from node.places import places

    was_up = lifecycle.serves(places())
    where = lifecycle.up()
    try:
        images.load(lifecycle.running(where), building.archive("operator"))
        yield where
    finally:
        if not was_up and not os.environ.get("KEEP"):
            lifecycle.down()


@pytest.fixture(scope="session")
def kubectl(places: Places) -> Kubectl:
    """kubectl as the node's administrator."""
    from node.kubectl import Kubectl

    return Kubectl(places.kubeconfig)


@pytest.fixture(scope="session")
def stage(places: Places, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Bellwether installed by its chart, and three brokers with its sidecars, all of them judged Healthy."""
    from nodeparts.stage import set_up

    return set_up(places, kubectl, tmp_path_factory.mktemp("helm"))


@pytest.fixture
def whole(stage: Stage) -> Iterator[Stage]:
    """The stage with everything well, before the test and again after it."""
    stage.kafka.mend()
    stage.all_well()
    yield stage
    stage.kafka.mend()
    stage.all_well()

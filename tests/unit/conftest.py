from __future__ import annotations

import pytest

from bellwether.core.signals import OverrideState
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes.memory_api import MemoryApi
from testkit.simulation.memory_site import MemorySite


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api() -> MemoryApi:
    return MemoryApi()


@pytest.fixture
def site() -> MemorySite:
    """Four brokers and one partition, on brokers 1 to 3, led by 1; broker 1 is to be demoted."""
    cluster = MemoryCluster(4)
    cluster.create_topic("orders", assignment=[(1, 2, 3)])
    made = MemorySite(cluster)
    made.signals.override(1, OverrideState.DEMOTED)
    return made

from __future__ import annotations

import pytest

from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes.memory_api import MemoryApi


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api() -> MemoryApi:
    return MemoryApi()

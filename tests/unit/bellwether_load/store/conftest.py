from __future__ import annotations

from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_store import FilePlanStore


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


@pytest.fixture
def shelf(store: Store) -> FilePlanStore:
    return FilePlanStore(store, "memory-cluster", "kafka/main")

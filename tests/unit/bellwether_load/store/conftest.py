from __future__ import annotations

from pathlib import Path

import pytest

from bellwether_load.store.filesystems import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))

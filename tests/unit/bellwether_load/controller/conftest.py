from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.simulation.rebalance_fixture import Desked


@pytest.fixture
def desked(tmp_path: Path) -> Iterator[Desked]:
    """An operator whose policy rebalances, with a small planner in the place of Spark."""
    made = Desked(tmp_path)
    yield made
    made.close()

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.desks import Desked
from testkit.offices import Office


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office.well()
    yield made
    made.close()


@pytest.fixture
def desked(tmp_path: Path) -> Iterator[Desked]:
    """An operator whose policy rebalances, with a small planner in the place of Spark."""
    made = Desked(tmp_path)
    yield made
    made.close()

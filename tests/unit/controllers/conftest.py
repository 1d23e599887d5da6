from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.simulation.operator_fixture import MemoryOperator


@pytest.fixture
def operator() -> Iterator[MemoryOperator]:
    made = MemoryOperator.well()
    yield made
    made.close()

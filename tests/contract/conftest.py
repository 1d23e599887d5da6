"""One suite, two subjects: see ``testkit.kafka.contract_clusters``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testkit.kafka.contract_clusters import KafkaSubject, MemorySubject, Subject


@pytest.fixture(
    scope="module", params=["memory 4.4", "memory 4.2", "memory 4.0", pytest.param("kafka", marks=pytest.mark.kafka)]
)
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Either cluster; what the suite makes on real brokers is gone afterwards."""
    if request.param != "kafka":
        major, minor = request.param.removeprefix("memory ").split(".")
        yield MemorySubject((int(major), int(minor)))
        return
    real = KafkaSubject(request.getfixturevalue("four"))
    yield real
    real.clear()

"""One suite, two subjects: see ``testkit.subjects``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testkit.subjects import KafkaSubject, MemorySubject, Subject


@pytest.fixture(scope="session")
def four_brokers() -> Iterator[Any]:
    from realparts.kafka import KafkaCluster

    with KafkaCluster(4, proxied=False) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def subject(request: pytest.FixtureRequest) -> Subject:
    if request.param == "memory":
        return MemorySubject()
    return KafkaSubject(request.getfixturevalue("four_brokers"))

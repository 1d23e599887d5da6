"""The real parts that a test session shares, started when the first test asks and stopped at its end.

A test that breaks a broker asks for ``breakable_kafka``, which is the same cluster, mended after the test. Nothing is
downloaded or started unless a test that runs asks for it.

Hypothesis runs by profile: ``quick`` by default, with the same few examples everywhere, so that a red test is red for
everybody; ``thorough`` (``--hypothesis-profile=thorough``, as ``make test-all`` does) looks for new ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster

# A busy machine is no reason to fail: neither profile has a deadline.
settings.register_profile(
    "quick", max_examples=30, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=200, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our own option."""
    parser.addoption("--update-golden", action="store_true", help="write the golden parts of tests/scenarios anew")


@pytest.fixture(autouse=True)
def logs_as_they_come() -> Iterator[None]:
    """A test that runs a command sets that command's level of logging; the next test hears everything again."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three real brokers behind a proxy, each on a disk that can be slowed, with a SASL_SSL listener besides."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(3, directory=tmp_path_factory.mktemp("kafka"), slow_disk=True, sasl_ssl=True) as cluster:
        yield cluster


@pytest.fixture
def breakable_kafka(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    """The session's brokers, and every fault undone after the test."""
    yield kafka
    kafka.mend()


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real Kubernetes API server, without any of Kubernetes' controllers."""
    from realparts.apiserver import ApiServer

    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        yield server

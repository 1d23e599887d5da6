"""The real parts that a test session shares, started when the first test asks and stopped at its end.

A test that breaks a broker asks for ``breakable_kafka``, which is the same cluster, repaired after the test. Nothing is
downloaded or started unless a test that runs asks for it.

Hypothesis runs by profile: ``quick`` by default, with the same examples everywhere, so that a red test is red for
everyone; ``few`` (``make test-fast``) with a third of them; ``thorough`` (``make test-all``) looks for new ones.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

from testkit.messages import Catalogue
from testkit.processes.shared_parts import SharedParts
from testkit.processes.slow_test_selection import chosen_files, shard_files
from testkit.processes.xdist_groups import begins, begins_in_shard, lot_of
from waiting import limit

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.kafka import KafkaCluster

STARTED = time.monotonic()

# Each worker, and each process that a test starts, would compile the whole tree again where the environment forbids to
# write bytecode, as that of many container images does: 20 s of CPU for each worker.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine is no reason to fail: neither profile has a deadline.
settings.register_profile(
    "quick", max_examples=15, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", max_examples=200, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("few", settings.get_profile("quick"), max_examples=5)
settings.load_profile("quick")

# A collection makes millions of objects that all stay: to look for garbage among them doubled its time.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, but not among what was collected."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our own options."""
    parser.addoption("--update-golden", action="store_true", help="write golden files: tests/messages, scenarios")
    parser.addoption("--shard", metavar="K/N", help="only the K-th of N shares of the selected test files")
    parser.addoption("--changed-since", metavar="REV", help="only, or added to --shard, tests of changed sources")
    parser.addoption("--within", metavar="SECONDS", type=float, help="skip tests that would begin later than this")


def pytest_configure(config: pytest.Config) -> None:
    """Watch the shared parts, and compare messages with their catalogue."""
    config.pluginmanager.register(SharedParts())
    config.pluginmanager.register(Catalogue(Path(__file__).parent, update=config.getoption("update_golden")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen files' tests, lot by lot, the longest first, with time limits that suit the machine."""
    items.sort(key=lambda item: begins(item.nodeid))
    files = {item: item.path.relative_to(Path(__file__).parent).as_posix() for item in items}
    chosen = chosen_files(set(files.values()), config.getoption("shard"), config.getoption("changed_since"))
    if left_out := [item for item in items if files[item] not in chosen]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if files[item] in chosen]
    if shard := config.getoption("shard"):
        own = shard_files(files.values(), shard)
        items.sort(key=lambda item: begins_in_shard(item.nodeid, files[item] in own))
    if config.getoption("timeout") is None:
        for item in items:
            mark = item.get_closest_marker("timeout")
            seconds = mark.args[0] if mark else float(config.getini("timeout"))
            item.add_marker(pytest.mark.timeout(limit(seconds)), append=False)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """A revision since which no slow test's source changed is no error."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("changed_since"):
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """``--dist=loadscope`` keeps together what shares a real part, and not what is in one file."""
    from xdist.scheduler import LoadScopeScheduling

    class ByLot(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lot_of(nodeid)

    return ByLot(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what would begin too late, and tests on Spark where no Java runs it; the reason says what to do."""
    within = item.config.getoption("within")
    if within is not None and time.monotonic() - STARTED > within:
        pytest.skip(f"not begun within {within:.0f} s; run: make test-slow PYTEST_ARGS={item.nodeid}")
    if item.get_closest_marker("spark") and (missing := _missing_java()):
        pytest.skip(missing)


@functools.cache
def _missing_java() -> str:
    from realparts.sparkjava import NoJava, find_java

    try:
        find_java()
    except NoJava as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def logs_as_they_come() -> Iterator[None]:
    """A test that runs a command sets that command's level of logging; the next test hears everything again."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three real brokers behind a proxy, each on a disk that can be slowed, with a SASL_SSL listener as well.

    The controller is apart, so that any broker may freeze.
    """
    from realparts.kafka import KafkaCluster

    directory = tmp_path_factory.mktemp("kafka")
    with KafkaCluster(3, directory=directory, controllers=1, slow_disk=True, sasl_ssl=True) as cluster:
        yield cluster


@pytest.fixture
def breakable_kafka(kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    """The session's brokers, and every fault undone after the test."""
    yield kafka
    kafka.mend()


@pytest.fixture(scope="module")
def empty_kafka(kafka: KafkaCluster) -> KafkaCluster:
    """The session's brokers without any topic of earlier tests, for tests of what is shown of the whole cluster.

    A test that consumes by group, for one, leaves ``__consumer_offsets`` behind.
    """
    from realparts.kafka_topics import delete_all_topics
    from testkit.kafka.kafka_site import KafkaSite

    delete_all_topics(kafka.bootstrap)
    KafkaSite(kafka).everywhere(lambda c: not c.partitions)
    return kafka


@pytest.fixture(scope="session")
def four() -> Iterator[KafkaCluster]:
    """Four real brokers with internal topics, the controller apart so that any of them may freeze or die."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    from realparts.kafka import KafkaCluster
    from testkit.kafka.kafka_site import KafkaSite

    with KafkaCluster(4, controllers=1, proxied=False, sasl_ssl=True) as cluster:
        # A request for a group's coordinator makes __consumer_offsets; the answer may come before it serves.
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "a-reader"})
        with suppress(KafkaException):
            consumer.committed([TopicPartition("orders", 0)], timeout=limit(60))
        consumer.close()
        KafkaSite(cluster).eventually(
            lambda c: (
                len([p for p in c.partitions if p.topic == "__consumer_offsets" and len(p.isr) == 3]) == 10
                and c.live == {1, 2, 3, 4}
            ),
            180,
        )
        yield cluster


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real Kubernetes API server, without any of Kubernetes' controllers."""
    from realparts.apiserver import ApiServer

    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        yield server

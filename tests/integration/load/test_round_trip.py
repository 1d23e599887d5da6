"""From real traffic to a plan and back: what is measured, forecast and moved, held against what the clients did.

Producers write at uneven, steady rates, and consumers read one topic four times and the other once. The sampler
samples, and asks a real Prometheus, which scrapes the brokers' JMX exporters, what is read; ``bellwether rebalance``
measures, plans, rechecks and applies. Nothing of Bellwether's own is believed: what was sent is counted by the
producers as brokers acknowledge it, what was read by the consumers, what a broker carries by the kernel (bytes that its
process read and wrote), and data is held against itself by reading all of it before and after.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from testkit.loads.measured_traffic import (
    Key,
    Traffic,
    Workload,
    carried,
    carried_by_kernel,
    measured_loads,
    partitions_of,
    payload,
    planned,
    rates,
    rebalance,
    sampling,
    scraping,
    serving,
    tell,
)
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from realparts.prometheus import PrometheusServer

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.slow, pytest.mark.timeout(900)]


# Heavy-tailed; the heaviest partitions, and all of the topic that is read most, are led by broker 1 to begin with.
WORK = {
    "orders": Workload(
        (40, 28, 22, 16, 12, 10, 8, 6, 5, 4, 3, 2),
        [[1, 2, 3], [1, 3, 2], [1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 3, 1], [3, 1, 2], [2, 1, 3], [3, 2, 1]]
        + [[1, 2, 3]] * 3,
        consumers=1,
    ),
    "prices": Workload((10, 7, 5, 3), [[1, 2, 3], [1, 3, 2]] * 2, consumers=4),
}
PARTITIONS = tuple(rates(WORK))
MEASURED_SECONDS = 130
AFTERWARDS_SECONDS = 45


class Checksums:
    """A digest over every record, partition by partition, each in its order up to a given end."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": f"check-{uuid.uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }

    def ends(self) -> dict[Key, int]:
        consumer = Consumer(self._settings)
        found = {key: consumer.get_watermark_offsets(TopicPartition(*key), 30)[1] for key in PARTITIONS}
        consumer.close()
        return found

    def read(self, ends: Mapping[Key, int]) -> dict[Key, str]:
        consumer = Consumer(self._settings)
        consumer.assign([TopicPartition(*key, 0) for key in ends])
        digests = {key: hashlib.sha256() for key in ends}
        left = dict(ends)
        deadline = time.monotonic() + limit(120)
        while any(left.values()):
            assert time.monotonic() < deadline, left
            message = consumer.poll(1)
            if message is None or message.error():
                continue
            key, offset = (message.topic(), message.partition()), message.offset()
            if offset >= ends[key]:
                continue
            number = int(message.key())
            assert number == offset, "every record once, and in its order"
            assert message.value() == payload(key[1], number)
            digests[key].update(message.key() + message.value())
            left[key] -= 1
        consumer.close()
        return {key: digest.hexdigest() for key, digest in digests.items()}


@pytest.fixture(scope="module")
def brokers() -> Iterator[KafkaCluster]:
    with serving(WORK) as cluster:
        yield cluster


@pytest.fixture
def prometheus(brokers: KafkaCluster, tmp_path: Path) -> Iterator[PrometheusServer]:
    with scraping(brokers, tmp_path / "prometheus") as server:
        yield server


@pytest.fixture
def store(brokers: KafkaCluster, prometheus: PrometheusServer, tmp_path: Path) -> Iterator[Path]:
    """Sampled into."""
    with sampling(brokers, prometheus, tmp_path / "store"):
        yield tmp_path / "store"


def test_loads_forecast_and_data_hold_on_real_brokers(
    brokers: KafkaCluster, prometheus: PrometheusServer, store: Path, tmp_path: Path
) -> None:
    checks = Checksums(brokers.bootstrap)
    with Traffic(brokers.bootstrap, WORK) as traffic:
        time.sleep(5)
        start = traffic.counted()
        time.sleep(MEASURED_SECONDS)
        sent, read = traffic.counted().since(start)
        before = partitions_of(brokers, WORK)
        ends = checks.ends()

        digest = planned(brokers, store)

        # Measured loads within 10 % of what the clients sent and were given, partition by partition.
        for name, true in (("produce", sent), ("consume", read)):
            loads = measured_loads(store, f"{name}_median")
            assert set(loads) == set(PARTITIONS)
            off = {key: (load or 0.0) / true[key] - 1 for key, load in loads.items()}
            tell(f"{name} loads against the clients' count: worst {max(off.values(), key=abs):+.2%}")
            assert all(abs(value) < 0.1 for value in off.values()), off

        stood = checks.read(ends)
        rebalance(brokers, store, "--approve", digest, "--record", str(tmp_path / "undo.json"))
        prometheus.stop()  # being scraped is no part of the load
        after = partitions_of(brokers, WORK)
        time.sleep(5)
        began = traffic.counted()
        by_kernel = carried_by_kernel(brokers, AFTERWARDS_SECONDS)
        ended = traffic.counted()
        assert traffic.refused == []

    # Only leaders moved: the same replicas, other orders, and the first of each leads.
    assert {i: sorted(p.replicas) for i, p in after.items()} == {i: sorted(p.replicas) for i, p in before.items()}
    assert all(p.leader == p.replicas[0] for p in after.values())

    # The busiest broker carries what the plan foretold, by the clients' count and by the kernel's.
    plan = read_plan(Store.open(str(store)), digest)
    by_clients = carried(after, *ended.since(began))
    busiest, physical = max(by_clients.values()), max(by_kernel.values())
    unplanned = max(carried(before, sent, read).values())
    unread = max(carried(after, sent, dict.fromkeys(read, 0.0)).values())
    tell(
        f"busiest broker: {unplanned:,.0f} B/s before, {plan.after.max:,.0f} foretold, {busiest:,.0f} by the"
        f" clients' count ({busiest / plan.after.max - 1:+.2%}), {physical:,.0f} by the kernel's"
        f" ({physical / plan.after.max - 1:+.2%}); {unread:,.0f} without the consumers; gap to the bound"
        f" {plan.gap:.3%}"
    )
    assert abs(unplanned / plan.before.max - 1) < 0.1
    assert abs(busiest / plan.after.max - 1) < 0.1
    assert abs(physical / plan.after.max - 1) < 0.1
    assert busiest < 0.8 * unplanned
    assert unread < 0.9 * busiest, "a forecast that left the consumers out would be off by more than it may"

    # Data is untouched: what was before the plan reads the same, and all that was acknowledged since is there once.
    whole = checks.ends()
    assert whole == dict(traffic.acknowledged)
    assert checks.read(ends) == stood
    checks.read(whole)

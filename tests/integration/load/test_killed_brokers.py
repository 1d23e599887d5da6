"""A real broker is killed: each other one then carries what ``bellwether losses`` and the plan said, within 10 %.

Producers and consumers go on. What a broker carries is measured by the kernel: bytes that its process read and wrote.
``losses`` and plan state the busiest survivor; what each of the others should carry is added up here, from the measured
loads and the order of each partition's replicas.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import ElectionType

from bellwether.core.model.cluster import Partition
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.plan_files import read_plan
from realparts.kafka_topics import admin
from testkit.loads.measured_traffic import (
    Key,
    Traffic,
    Workload,
    bellwether,
    carried,
    carried_by_kernel,
    measured_loads,
    partitions_of,
    planned,
    rates,
    rebalance,
    sampling,
    scraping,
    serving,
    tell,
)
from waiting import limit, until

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.prometheus, pytest.mark.slow, pytest.mark.timeout(900)]

RACKS = ("a", "b", "c", "a", "b")


def replicas(text: str) -> list[list[int]]:
    """The replicas of each partition; a digit is a broker."""
    return [[int(digit) for digit in word] for word in text.split()]


# Broker 1 leads most, and most of it falls to broker 2. Consumers read each byte so often that it matters little what a
# leader no longer sends to a dead follower, which no figure takes off: at most 5.2 % of a broker's bytes.
WORK = {
    "orders": Workload(
        (6, 5, 5, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1),
        replicas("123 124 125 134 135 145 123 124 125 234 235 245 234 345 342 453 512 524"),
        consumers=14,
    ),
    "prices": Workload((5, 4, 2, 1), replicas("134 125 132 423"), consumers=16),
}
# Rates of 20 s are full when sampling begins, and a load needs samples 30 s apart.
STEADY_SECONDS, SAMPLED_SECONDS, KILLED_SECONDS = 22, 75, 30
WITHIN = 0.1


@dataclass(frozen=True)
class Site:
    """Brokers under traffic whose loads are in a store, with a plan of that digest."""

    brokers: KafkaCluster
    traffic: Traffic
    store: Path
    digest: str

    def partitions(self) -> dict[Key, Partition]:
        return partitions_of(self.brokers, WORK)

    def losses(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(bellwether("losses", self.brokers, self.store, "-o", "json"))
        return found

    def carried(self, partitions: Mapping[Key, Partition]) -> dict[int, float]:
        """Bytes/s of each broker with these leaders, by the measured loads."""
        produced, consumed = (measured_loads(self.store, f"{name}_median") for name in ("produce", "consume"))
        assert set(produced) == set(partitions)
        return carried(partitions, *({key: load or 0.0 for key, load in of.items()} for of in (produced, consumed)))

    def carried_without(self, lost: int, partitions: Mapping[Key, Partition]) -> dict[int, float]:
        """The same once a broker is lost: each of its partitions is led by the next replica."""

        def left(partition: Partition) -> Partition:
            heir = next(broker for broker in partition.replicas if broker != lost)
            return replace(partition, leader=heir) if partition.leader == lost else partition

        found = self.carried({key: left(partition) for key, partition in partitions.items()})
        return {broker: load for broker, load in found.items() if broker != lost}

    @contextmanager
    def killed(self, broker: int) -> Iterator[dict[int, float]]:
        """What the others carry while a broker is dead; it comes back afterwards, with its leaders."""
        self.brokers.broker(broker).kill()
        until(lambda: all(p.leader not in (broker, None) for p in self.partitions().values()), 60, every=0.5)
        until(self.caught_up, 60, every=0.5)
        try:
            yield carried_by_kernel(self.brokers, KILLED_SECONDS)
        finally:
            self.brokers.broker(broker).start()
        until(lambda: all(set(p.isr) == set(p.replicas) for p in self.partitions().values()), 120, every=0.5)
        client = admin(self.brokers.bootstrap)  # kept until its answer is in
        client.elect_leaders(ElectionType.PREFERRED).result(limit(30))
        until(lambda: all(p.leader == p.replicas[0] for p in self.partitions().values()), 60, every=0.5)

    def caught_up(self) -> bool:
        """Whether consumers have nearly all that was acknowledged in each partition, and producers wait for nothing."""
        count = self.traffic.counted()
        late = [count.acknowledged[key] - count.consumed[key] / WORK[key[0]].consumers for key in self.partitions()]
        return self.traffic.waiting() < 100 and max(late) < 20


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("killed")
    with serving(WORK, 5, RACKS) as brokers, Traffic(brokers.bootstrap, WORK) as traffic:
        with scraping(brokers, folder / "prometheus") as prometheus:
            until(lambda: min(traffic.counted().consumed[key] for key in rates(WORK)), 60, every=0.5)
            time.sleep(STEADY_SECONDS)
            with sampling(brokers, prometheus, folder / "store"):
                time.sleep(SAMPLED_SECONDS)
        yield Site(brokers, traffic, folder / "store", planned(brokers, folder / "store"))
        assert traffic.refused == []


def compared(said: Mapping[int, float], measured: Mapping[int, float]) -> dict[int, float]:
    """How far each broker is from what was said of it, as a share."""
    off = {broker: measured[broker] / load - 1 for broker, load in said.items()}
    tell("; ".join(f"broker {b}: {said[b]:,.0f} B/s said, {measured[b]:,.0f} measured ({off[b]:+.1%})" for b in off))
    return off


def test_survivors_carry_what_losses_said_without_a_plan(site: Site) -> None:
    document, partitions = site.losses(), site.partitions()
    now = site.carried(partitions)
    lost = max(now, key=lambda broker: now[broker])
    (loss,) = (loss for loss in document["losses"] if loss["kind"] == "broker" and loss["lost"] == lost)
    said = site.carried_without(lost, partitions)
    assert document["busiest"] == pytest.approx(now[lost], rel=0.01)
    assert loss["bytesPerSecond"] == pytest.approx(said[loss["busiest"]], rel=0.01)
    with site.killed(lost) as measured:
        off = compared(said, measured)
        assert max(map(abs, off.values())) < WITHIN
        assert max(measured, key=lambda broker: measured[broker]) == loss["busiest"]
        assert measured[loss["busiest"]] == pytest.approx(loss["bytesPerSecond"], rel=WITHIN)


def test_survivors_carry_what_the_plan_said(site: Site, tmp_path: Path) -> None:
    plan, before = read_plan(Store.open(str(site.store)), site.digest), site.partitions()
    assert plan.losses is not None
    loss = next(loss for loss in plan.losses.kinds if loss.kind == "broker")
    rebalance(site.brokers, site.store, "--approve", site.digest, "--record", str(tmp_path / "undo.json"))
    partitions = site.partitions()
    said = site.carried_without(int(loss.after.lost), partitions)
    assert loss.after.load == pytest.approx(said[loss.after.broker], rel=0.01)
    # The same leaders with the other replicas as they were: what a plan that ignores losses would do.
    unordered = {key: replace(p, replicas=_led(before[key], p.leader)) for key, p in partitions.items()}
    ignored = max(max(site.carried_without(broker, unordered).values()) for broker in site.brokers.brokers)
    tell(f"plan: {plan.after.max:,.0f} B/s, worst loss {loss.after.load:,.0f}, {ignored:,.0f} with orders as before")
    with site.killed(int(loss.after.lost)) as measured:
        off = compared(said, measured)
        assert max(map(abs, off.values())) < WITHIN
        assert max(measured.values()) == pytest.approx(loss.after.load, rel=WITHIN)
        assert max(measured.values()) < 0.9 * ignored


def _led(partition: Partition, leader: int | None) -> tuple[int, ...]:
    assert leader is not None
    return (leader, *(broker for broker in partition.replicas if broker != leader))

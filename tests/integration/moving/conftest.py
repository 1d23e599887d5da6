"""Operators over four real brokers, and what others do to these meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject
from testkit.kafka.kafka_site import KafkaSite, Race
from testkit.simulation.invariant_watcher import Watcher
from testkit.simulation.operators import Operator

GRACE_SECONDS = 1.5


@pytest.fixture
def whole(four: KafkaCluster) -> Iterator[KafkaCluster]:
    """The brokers, and afterwards every fault repaired and every topic of the test's own gone."""
    yield four
    four.mend()
    KafkaSubject(four).clear()


class Others(KafkaSubject):
    """Other people. What they do is done when every broker shows it: an operator may read from any of them."""

    def __init__(self, kafka: KafkaCluster) -> None:
        super().__init__(kafka)
        self._site = KafkaSite(kafka)

    def create(self, *orders: Sequence[int], min_isr: int = 1, topic: str | None = None) -> str:
        name = super().create(*orders, min_isr=min_isr, topic=topic)
        (topic_id,) = {p.topic_id for p in self.reader.partitions([name])}
        self._site.everywhere(
            lambda c: len([p for p in c.partitions if p.topic_id == topic_id and p.leader]) == len(orders)
        )
        return name

    def delete(self, topic: str) -> None:
        super().delete(topic)
        self._site.everywhere(lambda c: topic not in {p.topic for p in c.partitions})

    def reassign(self, topic: str, target: Sequence[int]) -> None:
        super().reassign(topic, target)
        self._site.everywhere(lambda c: all(p.replicas == tuple(target) for p in c.partitions if p.topic == topic))


@pytest.fixture
def others(whole: KafkaCluster) -> Others:
    """Other people: they make topics, reassign and delete them."""
    return Others(whole)


@pytest.fixture
def site(whole: KafkaCluster) -> KafkaSite:
    site = KafkaSite(whole)
    site.restore_leaders()  # other tests on these brokers end some of them
    return site


@pytest.fixture
def race() -> Race:
    return Race()


@pytest.fixture
def watcher(site: KafkaSite) -> Iterator[Watcher]:
    """Watches every operator that ``operators`` makes; no invariant may be broken, whatever the test is about."""
    watching = Watcher(site.store)
    yield watching
    assert watching.violations == []


@pytest.fixture
def begin(site: KafkaSite, watcher: Watcher, race: Race) -> Callable[..., Operator]:
    """Starts an operator process; the Lease of the one before is over."""

    def start(identity: str = "operator-a", **options: Any) -> Operator:
        site.lease.holder = None
        options.setdefault("arrival_seconds", GRACE_SECONDS)
        operator = Operator(site, identity=identity, grace_seconds=GRACE_SECONDS, **options)
        operator.world = watcher.around(race.around(operator.world))
        return operator

    return start


@pytest.fixture
def operator(begin: Callable[..., Operator]) -> Operator:
    """A process that has taken over and found nothing to do."""
    started = begin()
    said = started.reconcile()
    assert said is not None
    assert said.settled
    return started

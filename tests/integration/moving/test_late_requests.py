"""A broker, or the controller, is frozen around one reorder and resumed much later, when another order is wanted.

What freezes at which boundary of the request: the asked broker before a connection, the asked broker between
connection and request, the asked broker shortly after the request, the controller that it forwards to. Each run logs
what was seen.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from bellwether.adapters.kafka.connection.broker_pool import KEPT_SECONDS, BrokerPool, Limits
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.controllers.policy_deletion import DONE
from bellwether.core.execution import arrivals
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.model.undo_record import Sender
from bellwether.core.signals import OverrideState
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import NotSent
from bellwether.ports.kafka import Outcome, Reorder
from bellwether.ports.world import World
from bellwether.simulation.memory_world import START
from realparts.kafka import KafkaCluster
from testkit.kafka.contract_clusters import KafkaSubject
from testkit.kafka.kafka_site import KafkaSite
from testkit.simulation.operator_fixture import MemoryOperator
from testkit.simulation.operators import Operator
from testkit.values.security_settings import PLAINTEXT
from waiting import limit

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

log = logging.getLogger(__name__)

OLD, NEW = (Sender(f"ops/{pod}", pod, "operator", "node", "boot", START) for pod in ("old", "new"))

ARRIVAL_SECONDS = 65.0
"""Kafka's own limit and a margin: the network of this machine delivers at once."""


ARRIVES_WITHIN_SECONDS = 15.0
"""A resumed broker has read its sockets by then, so that an empty record does not end a test before."""


class Freezer:
    """Freezes the asked broker, or the controller, once, at one boundary of the next reorder."""

    def __init__(self, kafka: KafkaCluster, boundary: str) -> None:
        self._kafka = kafka
        self._boundary = boundary
        self._armed = True
        self._asked: int | None = None
        self.frozen: Any = None

    def observe(self, request: str, outcome: str, _seconds: float) -> None:
        """The observer of the connections: a connection to the asked broker is open, nothing is sent yet."""
        if self._asked is None or request != "Open" or outcome != "ok":
            return
        if self._boundary == "before the request":
            self._freeze(self._kafka.broker(self._asked))
        elif self._boundary == "after the request":
            broker = self._kafka.broker(self._asked)
            threading.Timer(0.002, partial(self._freeze, broker)).start()
        self._asked = None

    def reorder(self, inner: KafkaMover, orders: Sequence[Reorder], broker: int) -> Mapping[TopicPartition, Outcome]:
        """One reorder; the first one meets the boundary."""
        if self._armed:
            time.sleep(KEPT_SECONDS)  # so that it opens a connection of its own
            self._armed, self._asked = False, broker
            if self._boundary == "before connecting":
                self._freeze(self._kafka.broker(broker))
            elif self._boundary == "controller":
                self._freeze(self._kafka.controller(101))
        return inner.reorder(orders, broker)

    def _freeze(self, process: Any) -> None:
        self.frozen = process
        process.pause()


class FreezingMover:
    """The mover of production behind a ``Freezer``."""

    def __init__(self, inner: KafkaMover, freezer: Freezer) -> None:
        self._inner = inner
        self._freezer = freezer
        self.request_timeout_seconds = inner.request_timeout_seconds
        self.choose, self.forwards, self.elect, self.cancel = inner.choose, inner.forwards, inner.elect, inner.cancel
        self.start_deadline = inner.start_deadline

    def reorder(self, orders: Sequence[Reorder], broker: int) -> Mapping[TopicPartition, Outcome]:
        return self._freezer.reorder(self._inner, orders, broker)


class PausedMover(FreezingMover):
    """Paused right before its first reorder; afterwards as if its clocks had stopped."""

    def __init__(self, nodes: BrokerPool, seconds: float) -> None:
        self._nodes, self._seconds = nodes, seconds
        self.paused, self.refused = threading.Event(), False
        super().__init__(KafkaMover(nodes), self)  # type: ignore[arg-type]

    def reorder(self, orders: Sequence[Reorder], broker: int) -> Mapping[TopicPartition, Outcome]:
        self.paused.set()
        time.sleep(self._seconds)
        try:
            return self._inner.reorder(orders, broker)
        except NotSent:  # its clocks went on
            self.refused = True
        return KafkaMover(self._nodes).reorder(orders, broker)


class KnownSenders:
    """``ports.kubernetes.FormerSenders`` that knows when the paused operator has ended."""

    ended = False

    def running(self, senders: Sequence[Sender]) -> tuple[Sender, ...]:
        return () if self.ended else tuple(senders)


def frozen_at(site: KafkaSite, freezer: Freezer, world: World) -> World:
    """The world with reorders through the freezer, with the limits of production."""
    nodes = BrokerPool(Connection(site.bootstrap, PLAINTEXT), Limits(), freezer.observe)
    mover = FreezingMover(KafkaMover(nodes), freezer)
    return replace(world, clusters=KafkaReader(nodes), leaders=mover)  # type: ignore[arg-type]


def until_empty(site: KafkaSite, operator: Operator, orders: Callable[[], Collection[Any]], seconds: float) -> set[Any]:
    """Reconciles until the undo record is empty; returns every set of orders that was seen meanwhile."""
    begun = time.monotonic()
    seen, end = set(), begun + seconds
    while time.monotonic() < end:
        seen.add(tuple(orders()))  # before the reconcile, which undoes at once what it sees
        operator.reconcile()
        over = time.monotonic() > begun + ARRIVES_WITHIN_SECONDS
        if over and site.store.record is not None and site.store.record.empty:
            return seen
        time.sleep(0.2)
    raise AssertionError(f"the record is not empty after {seconds:.0f} s: {site.store.record}")


@pytest.mark.timeout(900)
def test_order_of_operator_paused_for_180_seconds_leaves_nothing(
    site: KafkaSite, others: KafkaSubject, begin: Callable[..., Operator]
) -> None:
    others.create(*[(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)] * 3)
    baseline = site.orders()
    old = begin("old")
    old.reconcile()
    nodes = BrokerPool(Connection(site.bootstrap, PLAINTEXT), Limits())
    mover = PausedMover(nodes, 180.0)
    old.world = replace(old.world, clusters=KafkaReader(nodes), leaders=mover)  # type: ignore[arg-type]
    old.reconcile()  # learns the addresses of the brokers
    site.signals.override(1, OverrideState.DEMOTED)
    thread = threading.Thread(target=old.reconcile, daemon=True)
    thread.start()
    assert mover.paused.wait(limit(60))
    assert site.store.record is not None
    site.store.record = replace(site.store.record, senders=(OLD, NEW))
    site.signals.lift(1)

    new, senders = begin("new", arrival_seconds=arrivals.ARRIVAL_SECONDS), KnownSenders()
    new.world = replace(new.world, senders=senders)
    seen = set()
    while thread.is_alive():
        seen.add(tuple(sorted(site.orders().items())))
        new.reconcile()
        time.sleep(0.5)
    assert mover.refused
    assert site.store.record.has_outstanding, "nothing is over while the sender may still send"
    senders.ended = True
    seen |= until_empty(site, new, lambda: sorted(site.orders().items()), limit(300))
    site.until_ordered(baseline)
    assert len(seen) > 1, "the late order was seen"
    assert [note for said in new.reports for note in said.notes] == [], "an order of ours is not another tool's"


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("boundary", "frozen_seconds"),
    [("before connecting", 5.0), ("before the request", 150.0), ("after the request", 45.0), ("controller", 60.0)],
)
def test_order_that_arrives_late_is_undone_and_baseline_stays(
    whole: KafkaCluster,
    site: KafkaSite,
    others: KafkaSubject,
    begin: Callable[..., Operator],
    boundary: str,
    frozen_seconds: float,
) -> None:
    others.create(*[(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)] * 2)
    baseline = site.orders()
    old = begin("old", arrival_seconds=ARRIVAL_SECONDS)
    old.reconcile()
    freezer = Freezer(whole, boundary)
    old.world = frozen_at(site, freezer, old.world)
    old.reconcile()
    site.signals.override(1, OverrideState.DEMOTED)
    asked_at = time.monotonic()
    old.reconcile()
    assert freezer.frozen is not None
    stored = site.store.record
    assert stored is not None
    outstanding = {sent.broker for entry in stored.entries.values() for sent in entry.outstanding}
    site.signals.lift(1)

    new = begin("new", arrival_seconds=ARRIVAL_SECONDS)
    while time.monotonic() < asked_at + frozen_seconds:
        new.reconcile()
        time.sleep(0.2)
    freezer.frozen.resume()
    resumed_at = time.monotonic()
    seen = until_empty(site, new, lambda: sorted(site.orders().items()), limit(240))
    site.until_ordered(baseline)
    notes = [note for said in (*old.reports, *new.reports) for note in said.notes]
    log.info(
        "frozen %.0f s, %s: asked %s, %s, record empty %.0f s after it was resumed",
        frozen_seconds,
        boundary,
        sorted(outstanding, key=str),
        "arrived late" if seen - {tuple(sorted(baseline.items()))} else "no late order seen",
        time.monotonic() - resumed_at,
    )
    assert notes == [], "an order of ours is not another tool's"
    whole.mend()


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("frozen_seconds", "meanwhile"), [(150.0, "policy deleted"), (60.0, "undo record lost")])
def test_controller_undoes_late_order_after_loss_of_policy_or_record(
    whole: KafkaCluster, site: KafkaSite, others: KafkaSubject, frozen_seconds: float, meanwhile: str
) -> None:
    others.create(*[(1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2)] * 2)
    baseline, freezer = site.orders(), Freezer(whole, "before the request")
    operator = MemoryOperator(cast(Any, site), audited=True, faults=partial(frozen_at, site, freezer))
    loop = operator.make()
    operator.step(loop, 2)
    site.signals.override(1, OverrideState.DEMOTED)
    begun = time.monotonic()
    operator.step(loop)
    assert freezer.frozen is not None
    assert loop.record is not None
    assert loop.record.has_outstanding
    site.signals.lift(1)
    if meanwhile == "policy deleted":
        operator.api.delete(POLICIES, "default", "main")
        deleted = operator.api.objects["leadershippolicies", "default", "main"]
        deleted["metadata"]["deletionTimestamp"] = site.clock.now().isoformat()
    else:
        loop.release()
        for name in [name for name in operator.api.objects if name[2].startswith("bellwether-undo-")]:
            del operator.api.objects[name]
        loop = operator.loop()
    while time.monotonic() < begun + frozen_seconds:
        operator.step(loop)
    freezer.frozen.resume()
    seen, end, over = set(), time.monotonic() + limit(300), False
    while not over:
        assert time.monotonic() < end, loop.record
        seen.add(tuple(sorted(site.orders().items())))
        wait = operator.step(loop)
        late = time.monotonic() > begun + frozen_seconds + ARRIVES_WITHIN_SECONDS
        over = wait == DONE or (
            late and meanwhile != "policy deleted" and loop.record is not None and loop.record.empty
        )
    site.until_ordered(baseline)
    log.info("%s: %s", meanwhile, "arrived late" if len(seen) > 1 else "no late order seen")
    assert [name for name in operator.api.objects if "-export-" in name[2]] == []
    operator.close()

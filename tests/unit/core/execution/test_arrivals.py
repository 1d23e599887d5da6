"""When a broker that was asked surely holds no request of ours any more, and when that is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bellwether.core.execution.arrivals import (
    ARRIVAL_SECONDS,
    BrokerCheck,
    after_checks,
    after_sending,
    brokers_to_check,
    drained_brokers,
)
from bellwether.core.model.undo_record import Sender, UndoRecord
from bellwether.core.signals import OverrideState
from bellwether.ports.kafka import Reorder
from bellwether.simulation.memory_world import START
from testkit.simulation.fault_injection import Interruptions, Killed
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import ARRIVAL_SECONDS as SIMULATED_SECONDS
from testkit.simulation.operators import Operator
from testkit.values.builders import cluster, entry, name, partition, record, site

AWAY = (2, 3, 1)
FORWARDING_SECONDS = 60.0
"""How long Kafka keeps a request that it cannot forward."""


def sent_to(*brokers: int | None) -> UndoRecord:
    return record({partition().key: entry(outstanding=[(AWAY, b) for b in brokers])})


ALL = cluster(partition(), brokers=3)


class TestWhoIsAsked:
    def asked(self, undo: UndoRecord, checks: dict[int, BrokerCheck] | None = None, now: float = 100.0) -> set[int]:
        return set(brokers_to_check(undo, ALL, checks or {}, now, ARRIVAL_SECONDS))

    def test_no_broker_while_nothing_is_outstanding(self):
        assert self.asked(record({partition().key: entry()})) == set()

    def test_the_brokers_that_may_hold_a_request(self):
        assert self.asked(sent_to(2, 3)) == {2, 3}

    def test_every_broker_where_it_is_unknown_which(self):
        assert self.asked(sent_to(None)) == {1, 2, 3}

    def test_no_broker_that_is_fenced_or_gone(self):
        fenced = replace(ALL, brokers={**ALL.brokers, 2: replace(ALL.brokers[2], fenced=True)})
        assert brokers_to_check(sent_to(2, 9), fenced, {}, 0, ARRIVAL_SECONDS) == set()

    @pytest.mark.parametrize(("age", "again"), [(9.9, False), (10.0, True)])
    def test_each_now_and_then(self, age: float, again: bool):
        assert self.asked(sent_to(2), {2: BrokerCheck(100.0 - age, None)}) == ({2} if again else set())


class TestProofs:
    def proven(self, *answers: tuple[float, bool]) -> bool:
        checks: dict[int, BrokerCheck] = {}
        for moment, answered in answers:
            checks = after_checks(sent_to(2), ALL, checks, {2: answered}, moment)
        return 2 in drained_brokers(ALL, checks, ARRIVAL_SECONDS)

    def test_two_answers_further_apart_than_kafka_holds_request_prove_it(self):
        assert self.proven((0, True), (ARRIVAL_SECONDS, True))
        assert ARRIVAL_SECONDS > FORWARDING_SECONDS

    def test_one_answer_however_late_proves_nothing(self):
        assert not self.proven((10_000, True))

    def test_two_answers_that_are_too_close_prove_nothing(self):
        assert not self.proven((0, True), (ARRIVAL_SECONDS - 0.1, True))

    def test_time_without_a_second_answer_proves_nothing(self):
        assert not self.proven((0, True), (10_000, False))

    def test_after_a_failed_check_it_begins_again(self):
        assert not self.proven((0, True), (60, False), (70, True), (70 + ARRIVAL_SECONDS - 1, True))

    def test_a_broker_that_is_fenced_meanwhile_begins_again(self):
        checks = after_checks(sent_to(2), ALL, {}, {2: True}, 0)
        fenced = replace(ALL, brokers={**ALL.brokers, 2: replace(ALL.brokers[2], fenced=True)})
        assert after_checks(sent_to(2), fenced, checks, {}, 50) == {}

    def test_a_request_without_an_answer_begins_it_again(self):
        checks = after_checks(sent_to(2, 3), ALL, {}, {2: True, 3: True}, 0)
        assert set(after_sending(checks, {2})) == {3}

    def test_it_is_forgotten_with_the_last_outstanding_request(self):
        assert after_checks(record(), ALL, {2: BrokerCheck(0, 0)}, {}, 1) == {}


def test_a_request_at_an_unknown_broker_is_over_when_every_broker_has_proven_it():
    proof = BrokerCheck(ARRIVAL_SECONDS, 0)
    assert drained_brokers(ALL, {1: proof, 2: proof}, ARRIVAL_SECONDS) == {1, 2}
    assert drained_brokers(ALL, {1: proof, 2: proof, 3: proof}, ARRIVAL_SECONDS) == {1, 2, 3, None}
    fenced = replace(ALL, brokers={**ALL.brokers, 3: replace(ALL.brokers[3], fenced=True)})
    assert drained_brokers(fenced, {1: proof, 2: proof}, ARRIVAL_SECONDS) == {1, 2}  # it may be frozen and hold it
    assert drained_brokers(replace(ALL, brokers={}), {}, ARRIVAL_SECONDS) == frozenset()


def test_a_broker_without_the_asked_listener_may_hold_a_reorder():
    checks = {b: BrokerCheck(100.0, 0.0) for b in (1, 2, 3)}
    assert None in drained_brokers(cluster(partition()), checks, 60.0)
    assert None not in drained_brokers(cluster(partition(replicas=[4, 1, 2])), checks, 60.0)


class PausedSenders:
    """``ports.kubernetes.FormerSenders``: all of them run until they have ``ended``."""

    ended = False

    def running(self, senders: Sequence[Sender]) -> tuple[Sender, ...]:
        return () if self.ended else tuple(senders)


class TestAPausedSender:
    """An operator stops right before it sends, and another one takes over meanwhile."""

    OLD, NEW = (Sender(f"ops/{pod}", pod, "operator", "node", "boot", START) for pod in ("old", "new"))

    @pytest.fixture
    def paused(self) -> MemorySite:
        made = site(3, {"orders": 1})
        made.signals.override(1, OverrideState.DEMOTED)
        life = Interruptions(3, before=True)
        with pytest.raises(Killed):
            Operator(made, identity="old", life=life).reconciles(3)
        assert life.effects[-1] == "save"
        assert made.store.record is not None
        made.store.record = replace(made.store.record, senders=(self.OLD, self.NEW))
        made.signals.lift(1)
        made.lease.holder = None
        return made

    def test_its_order_is_undone_however_late_it_is_sent(self, paused: MemorySite):
        new, senders, before = Operator(paused), PausedSenders(), paused.cluster.partition("orders").replicas
        new.world = replace(new.world, senders=senders)
        new.reconciles(10 * int(SIMULATED_SECONDS))
        assert paused.store.record is not None
        assert paused.store.record.has_outstanding
        (sent,) = [one for e in paused.store.record.entries.values() for one in e.outstanding]
        paused.process("old").leaders.reorder([Reorder(name(), sent.order)])
        new.reconciles(3)
        assert paused.cluster.partition("orders").replicas == before
        assert [note for report in new.reports for note in report.notes] == []
        senders.ended = True
        new.settle()
        assert paused.store.record.senders == (self.NEW,)
        assert not paused.store.record.entries

    def test_brokers_prove_nothing_before_it_has_ended(self, paused: MemorySite):
        new, senders = Operator(paused), PausedSenders()
        new.world = replace(new.world, senders=senders)
        new.reconciles(2 * int(SIMULATED_SECONDS))
        senders.ended = True
        new.reconciles(int(SIMULATED_SECONDS) - 2)
        assert paused.store.record is not None
        assert paused.store.record.has_outstanding

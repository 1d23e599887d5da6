"""Whether Metadata shows every topic: what the brokers hold tells, and a request by name tells hidden from gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeLogDirsRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kafka import visible_topics
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kafka.visible_topics import REPEATED_SECONDS, RETRIED_SECONDS, VisibleTopics
from bellwether.core.model.cluster import TopicPartition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Transient, Unauthorized
from testkit.kafka.scripted_broker import ScriptedBroker
from testkit.kafka.scripted_metadata import answers, held, metadata, partition, topic
from testkit.messages import assert_wording
from testkit.values.security_settings import PLAINTEXT


class Shown:
    """One broker that holds topics, shows some, and tells of the others by name what ``codes`` says (3: unknown)."""

    def __init__(self, *topics: str) -> None:
        self.topics, self.holds = list(topics), list(topics)
        self.codes: dict[str, int] = {}
        self.seconds, self.fails = 0.0, False
        made = answers(metadata=self._metadata, held=self._held)
        self.broker = ScriptedBroker(made)
        self.reader = KafkaReader(BrokerPool(Connection((self.broker.address,), PLAINTEXT)))

    def _held(self, request: Any) -> Any:
        sleep(self.seconds)
        return held(*self.holds)(request)

    def _metadata(self, request: Any) -> Any:
        named = None if request.topics is None else [one.name for one in request.topics]
        found = [topic(name, partition(0)) for name in self.topics if named is None or name in named]
        found += [topic(name, error=self.codes.get(name, 3)) for name in named or () if name not in self.topics]
        answer = metadata(*found)(request)
        answer.error_code = 7 if self.fails and named else 0
        kind = MetadataResponse.MetadataResponseBroker
        answer.brokers = [kind(node_id=1, host="127.0.0.1", port=self.broker.port, rack=None)]
        return answer


@pytest.fixture
def shown() -> Iterator[Shown]:
    made = Shown("orders", "payments")
    with made.broker:
        yield made


def test_topics_hidden_from_user_are_named_and_nothing_is_read(shown: Shown) -> None:
    shown.topics, shown.codes = ["orders"], {"payments": 29}
    for _ in range(3):
        with pytest.raises(Unauthorized, match=r"1 topics \(payments\), .* grant the ACL Describe on Topic \*"):
            shown.reader.read()
    shown.topics = ["orders", "payments"]
    assert len(shown.reader.read().partitions) == 2


def test_topic_that_was_just_deleted_or_created_is_not_hidden(shown: Shown) -> None:
    shown.holds.append("deleted")
    assert shown.reader.read().immovable == ""


def test_hidden_topic_is_found_behind_thousand_that_were_deleted(shown: Shown) -> None:
    shown.holds, shown.codes = [f"deleted-{n}" for n in range(1000)] + ["zz-secret"], {"zz-secret": 29}
    for _ in range(2):
        with pytest.raises(Unauthorized, match=r"1 topics \(zz-secret\)"):
            shown.reader.read()


def test_holdings_of_broker_are_asked_for_until_kafka_tells(shown: Shown) -> None:
    shown.holds, shown.codes = ["payments", "secret"], {"secret": 29}
    shown.fails = True
    with pytest.raises(Transient):
        shown.reader.read()
    shown.fails = False
    with pytest.raises(Unauthorized, match="secret"):
        shown.reader.read()


def test_a_topic_that_vanishes_is_asked_for_by_name(shown: Shown) -> None:
    shown.reader.read()
    shown.topics = ["orders"]
    assert len(shown.reader.read().partitions) == 1
    shown.topics, shown.codes = [], {"orders": 29}
    for _ in range(2):
        with pytest.raises(Unauthorized, match=r"1 topics \(orders\)"):
            shown.reader.read()


def test_a_settled_cluster_is_asked_for_nothing_by_name(shown: Shown) -> None:
    first = shown.reader.read()
    assert shown.reader.read() is first
    asked = [request.topics for request in shown.broker.asked(MetadataRequest)]
    assert [None if topics is None else topics[0].name for topics in asked] == [None, "__consumer_offsets", None]
    assert len(shown.broker.asked(DescribeLogDirsRequest)) == 1


def test_user_of_some_topics_is_named_before_there_are_others(shown: Shown) -> None:
    shown.codes = {"__consumer_offsets": 29}
    with pytest.raises(Unauthorized, match="grant the ACL Describe on Topic"):
        shown.reader.read()


def test_a_view_that_no_broker_proves_moves_nothing(shown: Shown) -> None:
    shown.broker.forget(DescribeLogDirsRequest)
    first = shown.reader.read()
    assert "cannot be proven, as 1 of 1 brokers do not list their partitions" in first.immovable
    assert not first.proving
    assert shown.reader.read() is first


def test_a_slow_answer_is_an_answer(shown: Shown) -> None:
    shown.seconds = 0.6
    assert shown.reader.read().immovable == ""


class Pool:
    """Brokers that hold a topic each; those that are ``silent`` give no answer, ``slow`` ones wait for ``released``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> None:
        self.now, self.asked, self.silent, self.slow, self._seconds = 0.0, list[int](), set[int](), set[int](), seconds
        self.avoided, self.released, self.limits = frozenset[int](), Event(), Limits(proof_seconds=0.5)
        monkeypatch.setattr(visible_topics, "time", SimpleNamespace(monotonic=lambda: self.now))

    def look_at(self, broker: int, *_: object) -> Mapping[str, frozenset[TopicPartition]]:
        self.asked.append(broker)
        if broker in self.slow:
            self.released.wait(10)
        sleep(self._seconds)
        if broker in self.silent:
            raise Transient(f"broker {broker} is silent")
        return {"/data": frozenset({TopicPartition(f"t{broker}", 0)})}


def test_each_broker_is_asked_once_and_later_one_in_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(monkeypatch)
    visible = VisibleTopics(pool)  # type: ignore[arg-type]
    pool.silent = {2}
    assert visible.held({1, 2, 3}) == {"t1", "t3"}
    assert visible.problem({1, 2, 3}) == ""
    assert visible.held({1, 2, 3}) == frozenset()
    pool.now = RETRIED_SECONDS
    assert (visible.held({1, 2, 3}), sorted(pool.asked)) == (frozenset(), [1, 2, 2, 3])
    pool.now, pool.silent = REPEATED_SECONDS, set()
    again = [visible.held({1, 2, 3}) for _ in range(4)]
    assert (set(again[:2]), again[2:]) == ({frozenset({"t1"}), frozenset({"t3"})}, [{"t2"}, frozenset()])
    assert visible.held({1, 4}) == {"t4"}


def test_a_broker_to_avoid_delays_no_first_order(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(monkeypatch)
    visible = VisibleTopics(pool)  # type: ignore[arg-type]
    pool.avoided = frozenset({1})
    assert (visible.held({1, 3}), visible.problem({1, 3}), pool.asked) == ({"t3"}, "", [3])
    assert (visible.held({1, 3}), pool.asked) == ({"t1"}, [3, 1])


def test_many_brokers_far_away_are_asked_in_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(monkeypatch, seconds=0.02)
    visible, live = VisibleTopics(pool), set(range(120))  # type: ignore[arg-type]
    pool.limits = Limits(proof_seconds=10.0)
    assert (len(visible.held(live)), visible.problem(live)) == (120, "")


def test_an_answer_that_is_late_counts_in_a_later_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(monkeypatch)
    visible, live = VisibleTopics(pool), {1, 2, 3}  # type: ignore[arg-type]
    pool.slow = {2}
    assert visible.held(live) == {"t1", "t3"}
    assert_wording(visible.problem(live))
    assert visible.pending(live)
    assert visible.held(live) == frozenset()
    pool.released.set()
    deadline = monotonic() + 10
    while not (late := visible.held(live)) and monotonic() < deadline:
        sleep(0.01)
    assert (late, visible.problem(live), sorted(pool.asked)) == ({"t2"}, "", [1, 2, 3])


def test_few_answers_prove_nothing_for_many_silent_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(monkeypatch)
    visible, live = VisibleTopics(pool), {1, 2, 3}  # type: ignore[arg-type]
    pool.silent = {2, 3}
    visible.held(live)
    assert_wording(visible.problem(live))
    pool.avoided = frozenset({2})
    assert visible.problem(live) == "", "it is known to be in trouble"

"""What constructed metadata is read as: identities, reassignments, ELR, fenced brokers, topics that cannot be read."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeQuorumRequest
from kafka.protocol.admin.topics import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from bellwether.adapters.kafka import metadata_reader
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.connection.metadata_decoding import decode_metadata
from bellwether.adapters.kafka.connection.response_decoding import MOST_BROKERS
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.process_limits import ProcessSum
from bellwether.core.model.cluster import Broker, Partition
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import Terminal, Transient
from testkit.kafka.scripted_broker import ScriptedBroker, versions
from testkit.kafka.scripted_metadata import (
    ELR,
    ID,
    KEPT,
    Answers,
    answers,
    described,
    metadata,
    moves,
    partition,
    quorum,
    topic,
)
from testkit.messages import assert_wording
from testkit.values.security_settings import PLAINTEXT


def reader(broker: ScriptedBroker) -> KafkaReader:
    patient = Limits(opening_seconds=300, request_seconds=300, read_seconds=900)
    return KafkaReader(BrokerPool(Connection((broker.address,), PLAINTEXT), patient))


def test_partition_is_named_by_kafkas_form_of_topic_id() -> None:
    with ScriptedBroker(answers(topic("a", partition(1), partition(0, leader=-1)))) as broker:
        cluster = reader(broker).read()
    assert cluster.cluster_id == "the-cluster"
    assert cluster.brokers[1] == Broker(1, "r1", "127.0.0.1", 1)
    assert KEPT == "5C8ShY1VTxGdT0lM18We3A"
    first, second = cluster.partitions
    assert first == Partition("a", KEPT, 0, (1, 2, 3), (1, 2, 3), None, 5)
    assert second == dataclasses.replace(first, index=1, leader=1)


def test_time_to_decode_large_answer_is_not_brokers(
    monkeypatch: pytest.MonkeyPatch, leap: Callable[[float], None]
) -> None:
    def slowly(frame: bytes, version: int, last: Any, most: int) -> Any:
        leap(1000)
        return decode_metadata(frame, version, last, most)

    monkeypatch.setattr(metadata_reader, "decode_metadata", slowly)
    with ScriptedBroker(answers(topic("a", partition(0)))) as broker:
        nodes = BrokerPool(
            Connection((broker.address,), PLAINTEXT), Limits(opening_seconds=200, request_seconds=200, read_seconds=600)
        )
        assert len(KafkaReader(nodes).read().partitions) == 1
        assert len(broker.asked(ListPartitionReassignmentsRequest)) == 2, "asked once more after the decoding"


def test_cluster_with_impossibly_many_brokers_is_refused() -> None:
    with (
        ScriptedBroker(answers(metadata=metadata(brokers=range(1, MOST_BROKERS + 2)))) as broker,
        pytest.raises(Terminal, match="names 2001 brokers; at most 2000 are supported: check that bootstrapServers"),
    ):
        reader(broker).read()


def test_fenced_brokers_count_as_well() -> None:
    with (
        ScriptedBroker(answers(described=described(*range(3, MOST_BROKERS + 2)))) as broker,
        pytest.raises(Terminal, match="names 2001 brokers"),
    ):
        reader(broker).read()


def test_slowly_answering_broker_is_still_held_to_its_time(leap: Callable[[float], None]) -> None:
    def late(request: Any) -> Any:
        leap(1000)
        return metadata(topic("a", partition(0)))(request)

    with ScriptedBroker(answers(metadata=late)) as broker:
        nodes = BrokerPool(
            Connection((broker.address,), PLAINTEXT),
            Limits(opening_seconds=200, request_seconds=200, read_seconds=2000),
        )
        with pytest.raises(Transient):
            KafkaReader(nodes).read()


def test_metadata_is_asked_for_without_creating_topics() -> None:
    with ScriptedBroker(answers(topic("a", partition(0)))) as broker:
        reader(broker).partitions(["a", "a", "b"])
        (sent,) = broker.asked(MetadataRequest)
    assert sent.allow_auto_topic_creation is False
    assert [t.name for t in sent.topics] == ["a", "b"]


def test_internal_topics_are_marked() -> None:
    with ScriptedBroker(answers(topic("__consumer_offsets", partition(0), internal=True))) as broker:
        assert reader(broker).read().partitions[0].internal


def test_fenced_brokers_are_kept_apart_from_those_that_can_lead() -> None:
    with ScriptedBroker(answers(topic("a", partition(0)), described=described(3))) as broker:
        cluster = reader(broker).read()
    assert cluster.brokers[3].fenced
    assert cluster.live == {1, 2}


@pytest.mark.parametrize(
    ("isr", "removed"),
    [
        pytest.param([1, 2], {3}, id="in no ISR"),
        pytest.param([3], {3}, id="the last in the ISR"),
        pytest.param([1, 3], set(), id="alive, without the listener that was asked"),
    ],
)
def test_a_broker_that_is_listed_nowhere_is_removed_unless_others_are_in_sync_with_it(
    isr: list[int], removed: set[int]
) -> None:
    lists = topic("a", partition(0, isr=isr))
    with ScriptedBroker(answers(lists)) as broker:
        assert reader(broker).read().removed == removed
    with ScriptedBroker(answers(lists, described=described(3))) as broker:
        assert reader(broker).read().removed == set(), "it is fenced"


@pytest.mark.parametrize(
    ("allowed", "denied"),
    [
        pytest.param({7, 8}, False, id="Alter"),
        pytest.param({8, 10}, True, id="no Alter"),
        pytest.param({31}, False, id="unknown"),
        pytest.param(set(), False, id="none listed"),
    ],
)
def test_user_without_alter_moves_nothing_and_acl_is_named(allowed: set[int], denied: bool) -> None:
    with ScriptedBroker(answers(topic("a", partition(0)), described=described(3, allowed=allowed))) as broker:
        said = reader(broker).read().immovable
    assert ("Grant this user the ACL Alter on Cluster" in said) == denied


@pytest.mark.parametrize(
    "without",
    [
        {"versions": versions({DescribeClusterRequest: (0, 1)})},
        {"described": described(error=31)},
    ],
    ids=["older", "not authorised"],
)
def test_cluster_that_cannot_list_fenced_brokers_is_still_read(without: dict[str, Any]) -> None:
    with ScriptedBroker(answers(topic("a", partition(0)), **without)) as broker:
        cluster = reader(broker).read()
    assert set(cluster.brokers) == {1, 2}
    assert cluster.removed == frozenset(), "broker 3 may be fenced"


@pytest.mark.parametrize("turns", [[{("a", 0): ([4], [2])}, {}], [{}, {("a", 0): ([4], [2])}]], ids=["ends", "begins"])
def test_reassignment_that_changes_during_metadata_read_is_seen(turns: list[Any]) -> None:
    with ScriptedBroker(answers(topic("a", partition(0), partition(1)), moves=moves(*turns))) as broker:
        moving, still = reader(broker).partitions(["a"])
    assert (moving.adding, moving.removing, moving.reassigning) == ((4,), (2,), True)
    assert not still.reassigning


@pytest.mark.parametrize("code", [3, 17, 100])
def test_a_topic_that_is_gone_is_absent(code: int) -> None:
    with ScriptedBroker(answers(topic("a", partition(0)), topic("b", error=code))) as broker:
        assert [p.topic for p in reader(broker).partitions(["a", "b"])] == ["a"]


def test_hidden_topic_is_terminal_and_names_acl() -> None:
    with ScriptedBroker(answers(topic("b", error=29))) as broker, pytest.raises(Terminal, match="Describe on Topic"):
        reader(broker).read()


def test_a_topic_that_cannot_be_described_now_is_transient() -> None:
    with ScriptedBroker(answers(topic("b", error=5))) as broker, pytest.raises(Transient, match="LEADER_NOT_AVAILABLE"):
        reader(broker).read()


def test_hidden_reassignments_are_terminal_and_name_acl() -> None:
    denied = answers(topic("a", partition(0)), moves=moves(error=31))
    with ScriptedBroker(denied) as broker, pytest.raises(Terminal, match="ACL Describe on Cluster"):
        reader(broker).read()


def test_a_cluster_without_topic_ids_is_terminal() -> None:
    old = answers(topic("a", partition(0)), versions=versions({MetadataRequest: (0, 9)}))
    with ScriptedBroker(old) as broker, pytest.raises(Terminal, match=r"Kafka 2\.8"):
        reader(broker).read()


def test_a_controllers_address_is_refused_unless_a_broker_is_given() -> None:
    with ScriptedBroker({ApiVersionsRequest: versions(controller=True)}) as controller:
        with pytest.raises(Terminal, match="is a KRaft controller's listener: use that of a broker"):
            reader(controller).read()
        with ScriptedBroker(answers(topic("a", partition(0)))) as broker:
            both = KafkaReader(BrokerPool(Connection((controller.address, broker.address), PLAINTEXT)))
            assert len(both.read().partitions) == 1


def test_broker_following_metadata_log_serves_though_in_no_isr() -> None:
    alone, seen = partition(0, isr=(1,)), {1: 100_000, 3: 99_000}
    made = answers(topic("a", alone), quorum=quorum(seen))
    with ScriptedBroker(made) as broker:
        reads = reader(broker)
        cluster = reads.read()
        assert (cluster.unlisted, cluster.removed) == ({3}, set())
        assert reads.read() is cluster
        seen[1] += 60_000
        gone = reads.read()
        assert (gone.unlisted, gone.removed) == (set(), {3})
        assert reads.read() is gone


@pytest.mark.parametrize(
    "without",
    [
        pytest.param({"quorum": quorum({}, error=31)}, id="not authorised"),
        pytest.param({"quorum": quorum({}, partition_error=6)}, id="not the quorum's leader"),
        pytest.param({"versions": versions(without=[DescribeQuorumRequest])}, id="not offered"),
    ],
)
def test_broker_of_which_quorum_says_nothing_is_not_called_removed(without: dict[str, Any]) -> None:
    with ScriptedBroker(answers(topic("a", partition(0, isr=(1,))), **without)) as broker:
        cluster = reader(broker).read()
    assert (cluster.unlisted, cluster.removed) == (set(), set())


def test_removed_broker_is_called_so_once_quorum_says_it() -> None:
    codes = [6, 0]

    def noted(request: Any) -> Any:
        return quorum({1: 100_000}, partition_error=codes[0])(request)

    with ScriptedBroker(answers(topic("a", partition(0, isr=(1,))), quorum=noted)) as broker:
        reads = reader(broker)
        assert reads.read().removed == set()
        del codes[0]
        assert reads.read().removed == {3}


def test_starting_broker_is_not_serving_where_fenced_are_unlisted() -> None:
    old = versions({DescribeClusterRequest: (0, 1)})
    made = answers(topic("a", partition(0, isr=(1,))), quorum=quorum({1: 100_000, 3: 100_000}), versions=old)
    with ScriptedBroker(made) as broker:
        cluster = reader(broker).read()
    assert (cluster.unlisted, cluster.removed) == (set(), set()), "it recovers its logs, and is fenced"


def test_a_service_without_elections_moves_no_leader() -> None:
    lacking = answers(topic("a", partition(0)), versions=versions(without=[ElectLeadersRequest]))
    with ScriptedBroker(lacking) as broker:
        assert_wording(reader(broker).read().immovable)


def test_an_error_of_the_whole_metadata_is_raised() -> None:
    failing = answers(metadata=metadata(error=-1))
    with ScriptedBroker(failing) as broker, pytest.raises(Transient, match="UNKNOWN_SERVER_ERROR"):
        reader(broker).read()


def test_largest_cluster_is_refused_where_all_hold_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_reader, "_partitions_held", ProcessSum("partitions"))
    monkeypatch.setattr(metadata_reader, "BYTES_OF_A_PARTITION", 24 << 18)  # 4 partitions and topics, 8 of all readers
    with (
        ScriptedBroker(answers(topic("a", *(partition(n) for n in range(3))))) as large,
        ScriptedBroker(answers(topic("b", partition(0), partition(1)))) as small,
    ):
        first, others = reader(large), [reader(small) for _ in range(3)]
        assert len(first.read().partitions) == 3
        for other in others:
            assert len(other.read().partitions) == 2
        with pytest.raises(Terminal, match="have 9 partitions, 8 can be held, and this is the largest with 3"):
            first.read()
        del others, other
        gc.collect()
        assert len(first.read().partitions) == 3


def test_most_brokers_are_refused_where_all_hold_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_reader, "_brokers_held", ProcessSum("brokers"))
    monkeypatch.setattr(metadata_reader, "_MOST_BROKERS_OF_PROCESS", 8)
    with (
        ScriptedBroker(answers(metadata=metadata(brokers=range(1, 5)))) as large,
        ScriptedBroker(answers()) as small,
    ):
        first, others = reader(large), [reader(small) for _ in range(3)]
        assert [len(one.read().brokers) for one in (first, *others)] == [4, 2, 2, 2]
        with pytest.raises(Terminal, match="this is the largest with 4: give it an installation of its own"):
            first.read()


class TestEligibleLeaders:
    @staticmethod
    def paged(request: Any) -> Any:
        """Partition 0 on the first page, partition 1 on the second."""
        kind = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        index = 0 if request.cursor is None else request.cursor.partition_index
        return DescribeTopicPartitionsResponse(
            throttle_time_ms=0,
            topics=[
                kind(
                    error_code=0,
                    name="a",
                    topic_id=ID,
                    is_internal=False,
                    partitions=[
                        kind.DescribeTopicPartitionsResponsePartition(
                            error_code=0,
                            partition_index=index,
                            leader_id=-1,
                            leader_epoch=5,
                            replica_nodes=[1, 2, 3],
                            isr_nodes=[],
                            eligible_leader_replicas=[index + 2],
                            last_known_elr=[1] if index else None,
                            offline_replicas=[],
                        )
                    ],
                )
            ],
            next_cursor=DescribeTopicPartitionsResponse.Cursor(topic_name="a", partition_index=1)
            if index == 0
            else None,
        )

    def test_pages_are_read_for_topics_with_replicas_out_of_isr(self) -> None:
        topics = [topic("a", partition(0, isr=()), partition(1, isr=(1,))), topic("b", partition(0))]
        with ScriptedBroker(answers(*topics, features=ELR) | {DescribeTopicPartitionsRequest: self.paged}) as broker:
            cluster = reader(broker).read()
            asked = broker.asked(DescribeTopicPartitionsRequest)
        assert [[t.name for t in request.topics] for request in asked] == [["a"], ["a"]]
        assert [p.elr for p in cluster.partitions if p.topic == "a"] == [(2,), (3,)]
        assert [(p.topic, p.index, p.last_known_elr) for p in cluster.partitions] == [
            ("a", 0, ()),
            ("a", 1, (1,)),
            ("b", 0, ()),
        ]

    @pytest.mark.parametrize("known", [0, 2])
    def test_pages_without_end_or_without_partitions_are_refused(self, known: int) -> None:
        def endless(request: Any) -> Any:
            answer = self.paged(request)
            answer.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name="a", partition_index=0)
            answer.topics = answer.topics[:known]
            return answer

        topics = [topic("a", partition(0, isr=()), partition(1, isr=(1,)))]
        with ScriptedBroker(answers(*topics, features=ELR) | {DescribeTopicPartitionsRequest: endless}) as broker:
            with pytest.raises(Transient, match="describes other partitions than its metadata names"):
                reader(broker).read()
            assert len(broker.asked(DescribeTopicPartitionsRequest)) <= 9

    @pytest.mark.parametrize(("features", "kept"), [(ELR, True), ({}, False), ({next(iter(ELR)): 0}, False)])
    def test_whether_the_cluster_keeps_any_is_read_from_its_features(
        self, features: Mapping[str, int], kept: bool
    ) -> None:
        with ScriptedBroker(answers(topic("a", partition(0)), features=features)) as broker:
            assert reader(broker).read().elr_enabled is kept

    @pytest.mark.parametrize(
        ("isr", "known"),
        [
            ((1, 2, 3), versions(features=ELR)),
            ((1,), versions()),
            ((1,), versions({DescribeTopicPartitionsRequest: (0, -1)}, ELR)),
        ],
        ids=["full isr", "feature off", "request unknown"],
    )
    def test_they_are_not_asked_for_where_there_can_be_none(self, isr: Sequence[int], known: Any) -> None:
        with ScriptedBroker(answers(topic("a", partition(0, isr=isr)), versions=known)) as broker:
            assert reader(broker).read().partitions[0].elr == ()
            assert broker.asked(DescribeTopicPartitionsRequest) == []


class TestUnchangedMetadata:
    def test_a_cluster_in_which_nothing_changed_is_the_same_value(self) -> None:
        with ScriptedBroker(answers(topic("a", partition(0, isr=(1,))))) as broker:
            reads = reader(broker)
            assert reads.read() is reads.read()

    @pytest.mark.parametrize(
        "change",
        [
            {MetadataRequest: metadata(topic("a", partition(0, leader=2)))},
            {ListPartitionReassignmentsRequest: moves({("a", 0): ([4], [])})},
            {DescribeClusterRequest: described(3)},
        ],
        ids=["leader", "reassignment", "fenced broker"],
    )
    def test_whatever_changes_makes_another_cluster(self, change: Answers) -> None:
        made = answers(topic("a", partition(0)))
        now = dict(made)
        with ScriptedBroker({kind: lambda request, kind=kind: now[kind](request) for kind in made}) as broker:
            reads = reader(broker)
            first = reads.read()
            now.update(change)
            second = reads.read()
        assert second != first
        with ScriptedBroker(now) as broker:
            assert reader(broker).read().partitions == second.partitions

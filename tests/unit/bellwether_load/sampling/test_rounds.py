"""One round: who is asked for what, what is written down, and what silence and trouble leave out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bellwether.core.model.cluster import TopicPartition
from bellwether.ports.errors import Terminal, Transient, WrongCluster
from bellwether_load.sampling.rounds import Rounds, SamplingRound
from testkit.kafka.sampled_cluster import Site, partition
from testkit.messages import assert_wording

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def site() -> Site:
    return Site(
        partitions=(partition("a", 0, 1), partition("a", 1, 2), partition("b", 0, 3)),
        ends={A0: 10, A1: 20, B0: 30},
        sizes={A0: 100, A1: 200, B0: 300},
    )


@pytest.fixture
def rounds(site: Site) -> Iterator[Rounds]:
    found = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=60)
    yield found
    found.close()


def written(found: SamplingRound) -> list[tuple[object, ...]]:
    rows = found.rows
    return list(
        zip(rows.topic, rows.partition, rows.leader, rows.end_offset, rows.log_bytes, rows.consume, strict=True)
    )


def test_every_partition_is_written_with_its_leaders_answer(rounds: Rounds) -> None:
    found = rounds.take(NOON)
    assert written(found) == [
        ("a", 0, 1, 10, 100, None),
        ("a", 1, 2, 20, 200, None),
        ("b", 0, 3, 30, 300, None),
    ]
    assert (found.rows.at, found.rows.cluster_id, found.troubles) == (NOON, "c", {})
    assert list(found.rows.topic_id) == ["a" + "_" * 21] * 2 + ["b" + "_" * 21]
    assert list(found.rows.leader_epoch) == [4, 4, 4]


def test_rows_come_in_order_whatever_the_maps(site: Site, rounds: Rounds) -> None:
    site.partitions = tuple(reversed(site.partitions))
    assert [row[:2] for row in written(rounds.take(NOON))] == [("a", 0), ("a", 1), ("b", 0)]


def test_each_broker_is_asked_for_what_it_leads_in_the_epoch_of_the_map(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    assert sorted(map(dict, site.questions), key=str) == [{A0: 4}, {A1: 4}, {B0: 4}]


def test_the_same_questions_are_the_same_object_so_that_they_are_not_encoded_again(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    rounds.take(NOON)
    first, second = site.questions[:3], site.questions[3:]
    assert {id(one) for one in first} == {id(one) for one in second}


def test_a_silent_broker_leaves_only_its_own_partitions_unknown(site: Site, rounds: Rounds) -> None:
    site.silent = {2}
    found = rounds.take(NOON)
    assert written(found)[1] == ("a", 1, 2, None, None, None)
    assert [row[3] for row in written(found)] == [10, None, 30]
    assert list(found.troubles) == ["broker 2"]
    assert "no answer in time" in found.troubles["broker 2"]


def test_a_broker_that_was_silent_is_asked_last(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bellwether_load.sampling.rounds._ASKED_AT_ONCE", 1)  # several at once have no order
    rounds = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=60)
    site.silent = {1}
    rounds.take(NOON)
    site.asked.clear()
    rounds.take(NOON)
    rounds.close()
    assert [address for address, _, _ in site.asked][-1] == "h:1"


def test_a_broker_that_does_not_tell_sizes_still_tells_ends(site: Site, rounds: Rounds) -> None:
    site.unsized = {1: "grant the ACL Describe on Cluster"}
    found = rounds.take(NOON)
    assert written(found)[0] == ("a", 0, 1, 10, None, None)
    assert_wording(found.troubles)


def test_a_leader_that_has_moved_meanwhile_leaves_the_partition_unknown_and_is_no_trouble(
    site: Site, rounds: Rounds
) -> None:
    site.epochs = {A0: 5}
    found = rounds.take(NOON)
    assert written(found)[0] == ("a", 0, 1, None, 100, None)
    assert (found.answers[1].moved, found.troubles) == (1, {})


def test_a_partition_without_a_leader_is_written_down_as_such(site: Site, rounds: Rounds) -> None:
    site.partitions = (partition("a", 0, None, epoch=9), partition("b", 0, 3))
    assert written(rounds.take(NOON))[0] == ("a", 0, -1, None, None, None)


def test_a_leader_that_is_not_registered_is_named(site: Site, rounds: Rounds) -> None:
    site.partitions = (partition("a", 0, 7),)
    assert rounds.take(NOON).troubles == {"broker 7": "is not registered"}


@pytest.mark.parametrize(
    "error", [Transient("no free file descriptor"), Terminal("ca_file x"), ValueError("not host:port")]
)
def test_trouble_of_our_own_with_one_broker_does_not_end_the_round(
    site: Site, rounds: Rounds, error: Exception
) -> None:
    site.broken = {3: error}
    found = rounds.take(NOON)
    assert [row[3] for row in written(found)] == [10, 20, None]
    assert found.troubles == {"broker 3": str(error)}


def test_brokers_after_the_rounds_time_are_not_asked(site: Site) -> None:
    site.answer_takes = 30.0
    rounds = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=20)
    found = rounds.take(NOON)
    assert any("the time of the round was over" in why for why in found.troubles.values())
    assert all(longest <= 16 for _, _, longest in site.asked)
    rounds.close()


def test_no_broker_gets_longer_than_its_timeout_and_four_of_them_if_it_answers(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    assert {(timeout, longest) for _, timeout, longest in site.asked} == {(5, 20)}


def test_while_the_map_cannot_be_read_the_last_one_is_used(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    site.unmapped = Transient("no broker answered")
    site.epochs = {A0: 5}
    found = rounds.take(NOON)
    assert [row[3] for row in written(found)] == [None, 20, 30]
    assert found.troubles == {"metadata": "no broker answered"}


@pytest.mark.parametrize("error", [Transient("away"), Terminal("refused")])
def test_without_any_map_there_is_no_round(site: Site, rounds: Rounds, error: Transient | Terminal) -> None:
    site.unmapped = error
    with pytest.raises(type(error), match=str(error)):
        rounds.take(NOON)
    assert rounds.cluster_id == ""


def test_another_cluster_behind_the_same_address_is_refused(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    site.cluster_id = "other"
    with pytest.raises(WrongCluster, match="leads to Kafka cluster other; so far it led to c"):
        rounds.take(NOON)
    site.cluster_id = "c"
    assert rounds.take(NOON).troubles == {}


def test_what_consumers_read_is_dealt_from_the_second_round_on(site: Site) -> None:
    site.topics = {"a": 3072.0}
    rounds = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=60)
    assert [row[5] for row in written(rounds.take(NOON))] == [None, None, None]
    site.ends |= {A0: 20, A1: 40}
    assert [row[5] for row in written(rounds.take(NOON))] == [1024.0, 2048.0, None]
    rounds.close()


def test_a_prometheus_that_does_not_answer_leaves_that_column_unknown(site: Site) -> None:
    site.topics = Transient("Prometheus does not answer in time")
    rounds = Rounds(site.sources(), site.clock, timeout_seconds=5, period_seconds=60)
    found = rounds.take(NOON)
    assert_wording(found.troubles)
    assert [row[3] for row in written(found)] == [10, 20, 30]
    rounds.close()


def test_other_sources_are_asked_from_the_next_round_on(site: Site, rounds: Rounds) -> None:
    rounds.take(NOON)
    other = replace(site, ends={A0: 11, A1: 21, B0: 31})
    rounds.sources = other.sources()
    assert [row[3] for row in written(rounds.take(NOON))] == [11, 21, 31]

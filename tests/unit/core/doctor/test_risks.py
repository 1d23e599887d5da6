"""The state of partitions: every class, from metadata and a few settings, and what stays unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.doctor.risks import (
    MIN_ISR_CACHE_SECONDS,
    OFFLINE,
    RISK_DESCRIPTIONS,
    WORST_FIRST,
    DataLoss,
    Diagnosis,
    LogEndSample,
    MinIsrCache,
    Risk,
    RiskInputs,
    diagnose,
    diagnose_cluster,
    partitions_at_risk,
    topics_short_of_replicas,
)
from bellwether.core.model.cluster import Partition, PartitionKey
from testkit.messages import assert_wording
from testkit.values.builders import START, after, cluster, name, partition

LIVE = frozenset({1, 2, 3})


def noted(
    p: Partition, *, floor: int | None = 2, live: frozenset[int] = LIVE, facts: RiskInputs | None = None
) -> Diagnosis:
    known = facts or RiskInputs()
    floors = {} if floor is None else {p.topic: floor}
    return diagnose(p, live, replace(known, floors=floors))


@pytest.mark.parametrize(
    ("isr", "floor", "risk"),
    [
        pytest.param((1, 2, 3), 2, Risk.IN_SYNC, id="all in sync"),
        pytest.param((1, 2, 3), 1, Risk.IN_SYNC, id="all in sync, one is enough"),
        pytest.param((1, 2), 1, Risk.UNDER_REPLICATED, id="one missing, one to spare"),
        pytest.param((1, 2), 2, Risk.AT_MIN_ISR, id="one missing, none to spare"),
        pytest.param((1,), 1, Risk.AT_MIN_ISR, id="the only copy in sync"),
        pytest.param((1,), 2, Risk.UNDER_MIN_ISR, id="below"),
        pytest.param((1, 2), 3, Risk.UNDER_MIN_ISR, id="all three are asked for"),
        pytest.param((1, 2, 3), 3, Risk.AT_MIN_ISR, id="all three are asked for, and are there"),
        pytest.param((1, 2), None, Risk.UNDER_REPLICATED, id="the setting is unknown"),
        pytest.param((1, 2, 3), None, Risk.IN_SYNC, id="the setting is unknown and not needed"),
    ],
)
def test_partition_with_a_leader_is_rated_by_isr_and_setting(isr: tuple[int, ...], floor: int | None, risk: Risk):
    assert noted(partition(isr=isr), floor=floor).risk is risk


@pytest.mark.parametrize(
    ("isr", "floor", "risk"),
    [
        pytest.param((1, 2), 1, Risk.REMOVED_BROKER, id="one to spare: this is the worst of it"),
        pytest.param((1, 2), 2, Risk.AT_MIN_ISR, id="none to spare is worse"),
        pytest.param((1,), 2, Risk.UNDER_MIN_ISR, id="below is worse"),
    ],
)
def test_list_with_removed_broker_counts_also_in_worse_class(isr: tuple[int, ...], floor: int, risk: Risk):
    seen = cluster(partition(replicas=(1, 2, 4), isr=isr), partition(index=1), removed=[4])
    for summary in (partitions_at_risk(seen, {"orders": floor}), diagnose_cluster(seen, RiskInputs({"orders": floor}))):
        (found,) = summary.at_risk
        assert (found.risk, found.removed) == (risk, (4,))
        assert summary.counts == {Risk.REMOVED_BROKER: 1, risk: 1}
    assert summary.classes == {**summary.counts, Risk.IN_SYNC: 1}


def test_the_doctor_finds_a_list_without_the_removed_broker():
    (found,) = diagnose_cluster(cluster(partition(replicas=(1, 4), isr=(1,)), removed=[4]), RiskInputs()).diagnoses
    assert found.repaired == (1, 2)


@pytest.mark.parametrize(("replicas", "floor"), [((1,), 2), ((1, 2), 3)])
def test_no_more_replicas_are_asked_for_than_there_are(replicas: tuple[int, ...], floor: int):
    found = noted(partition(replicas=replicas), floor=floor)
    assert (found.risk, found.floor) == (Risk.AT_MIN_ISR, len(replicas))


def test_lack_of_spare_by_settings_alone_is_no_risk():
    by_design, by_loss = noted(partition(replicas=(1, 2))), noted(partition(isr=(1, 2)))
    assert (by_design.risk, by_design.designed, by_design.at_risk) == (Risk.AT_MIN_ISR, True, False)
    assert (by_loss.risk, by_loss.designed, by_loss.at_risk) == (Risk.AT_MIN_ISR, False, True)


def test_a_replica_that_is_being_added_is_not_missing_yet():
    moving = partition(replicas=(1, 2, 3, 4), isr=(1, 2, 3), adding=(4,))
    found = noted(moving)
    assert (found.risk, found.missing) == (Risk.IN_SYNC, ())


def test_brokers_that_left_the_isr_are_named():
    assert noted(partition(isr=(2,), leader=2)).missing == (1, 3)


@pytest.mark.parametrize("leader", [1, None], ids=["not fenced yet", "fenced"])
def test_lost_leader_with_another_isr_member_awaits_kafkas_election(leader: int | None):
    found = noted(partition(isr=(1, 2), leader=leader), live=frozenset({2, 3}))
    assert (found.risk, found.awaited, found.loss) == (Risk.LEADER_LOST, (2,), None)


def test_eligible_replica_that_lives_may_lead_once_isr_is_empty():
    for isr, leader in (((2,), 2), ((), None)):
        found = noted(partition(isr=isr, leader=leader, elr=(1,)), live=frozenset({1, 3}))
        assert (found.risk, found.awaited) == (Risk.LEADER_LOST, (1,))


def test_partition_without_living_isr_or_elr_member_awaits_one():
    without_elr = noted(partition(isr=(2,), leader=None), live=frozenset({1, 3}))
    with_elr = noted(partition(isr=(), leader=None, elr=(2, 3)), live=frozenset({1}))
    assert (without_elr.risk, without_elr.awaited) == (Risk.LAST_ISR_MEMBER_LOST, (2,))
    assert (with_elr.risk, with_elr.awaited) == (Risk.LAST_ISR_MEMBER_LOST, (2, 3))


def test_with_isr_and_elr_empty_last_known_leader_is_awaited():
    lost = replace(partition(isr=(), leader=None), last_known_elr=(3,))
    assert noted(lost, live=frozenset({1})).awaited == (3,)
    assert noted(replace(lost, elr=(2,)), live=frozenset({1})).awaited == (2,)


def test_candidate_of_unclean_election_is_first_of_order_that_lives():
    found = noted(partition(replicas=(3, 2, 1), isr=(3,), leader=None), live=frozenset({1, 2}))
    assert found.loss is not None
    assert found.loss.candidate == 2


def test_without_live_replicas_no_leader_can_be_elected():
    found = noted(partition(isr=(1,), leader=None), live=frozenset({4}))
    assert (found.risk, found.awaited, found.loss) == (Risk.ALL_REPLICAS_LOST, (1,), None)


def test_broker_that_does_not_answer_is_not_counted_among_living():
    seen = cluster(partition(isr=(1, 2)), partition(index=1, replicas=(2, 3)))
    facts = RiskInputs(floors={"orders": 1})
    assert [d.risk for d in diagnose_cluster(seen, facts).diagnoses] == [Risk.UNDER_REPLICATED, Risk.IN_SYNC]
    assert [d.risk for d in diagnose_cluster(seen, facts, silent=[1]).diagnoses] == [Risk.LEADER_LOST, Risk.IN_SYNC]


def test_a_fenced_broker_leads_nothing():
    seen = cluster(partition(replicas=(1,)), fenced=[1])
    assert diagnose_cluster(seen, RiskInputs()).diagnoses[0].risk is Risk.ALL_REPLICAS_LOST


class TestLoss:
    LOST = replace(partition(isr=(1,), leader=None), leader_epoch=7)

    def loss(self, sample: LogEndSample | None = None, end: int | None = None, lost: Partition = LOST) -> DataLoss:
        facts = RiskInputs(
            samples={} if sample is None else {lost.key: sample}, ends={} if end is None else {name(): {2: end, 3: 99}}
        )
        found = noted(lost, live=frozenset({2, 3}), facts=facts).loss
        assert found is not None
        return found

    def test_it_is_at_least_what_sample_saw_beyond_candidates_end(self):
        loss = self.loss(LogEndSample(120, START, 1, 6), 100)
        assert loss.least == 20
        assert_wording(str(loss))

    def test_candidate_beyond_sample_loses_nothing_that_sample_saw(self):
        assert self.loss(LogEndSample(90, START, 1, 6), 100).least == 0

    @pytest.mark.parametrize(
        ("sample", "end", "words"),
        [
            (None, 100, "ends at offset 100, and the end of the lost log was never sampled"),
            (None, None, "ends at offset unknown, and the end of the lost log was never sampled"),
            (LogEndSample(120, START, 1, 6), None, "ends at offset unknown; broker 1's log had reached offset 120"),
            (LogEndSample(120, START, 3, 5), 100, "other brokers have led since"),
        ],
    )
    def test_unknown_without_both_ends_and_lost_leaders_sample(
        self, sample: LogEndSample | None, end: int | None, words: str
    ):
        loss = self.loss(sample, end)
        assert loss.least is None
        assert str(loss).startswith("the loss is unknown: ")
        assert words in str(loss)

    def test_unfenced_leader_is_sampled_in_its_own_epoch(self):
        unfenced = replace(self.LOST, leader=1)
        assert self.loss(LogEndSample(120, START, 1, 7), 100, unfenced).least == 20
        assert self.loss(LogEndSample(120, START, 1, 6), 100, unfenced).least is None

    def test_living_replica_that_reaches_further_than_candidate_is_named(self):
        def further(ends: dict[int, int]) -> tuple[int, int] | None:
            return noted(self.LOST, live=frozenset({2, 3}), facts=RiskInputs(ends={name(): ends})).further

        assert further({2: 100, 3: 110}) == (3, 110)
        assert further({2: 100, 3: 100}) is None
        assert further({3: 110}) is None
        assert further({}) is None

    def test_another_topic_of_the_same_name_has_other_samples(self):
        facts = RiskInputs(
            samples={PartitionKey("another", 0): LogEndSample(120, START, 1, 6)}, ends={name(): {2: 100}}
        )
        found = noted(self.LOST, live=frozenset({2}), facts=facts)
        assert found.loss is not None
        assert found.loss.sample is None


class TestWard:
    SEEN = cluster(
        partition("b", isr=(1, 2)),
        partition("a", isr=(1,)),
        partition("a", 1, isr=(9,), replicas=(9, 1), leader=None),
        partition("c"),
        partition("d", isr=(1, 2)),
        partition("e", replicas=(1, 2)),
    )
    WARD = diagnose_cluster(SEEN, RiskInputs(floors={"a": 2, "b": 1, "c": 2, "d": 2, "e": 2}))

    def test_the_worst_come_first(self):
        assert [str(d.partition.name) for d in self.WARD.at_risk] == ["a-1", "a-0", "d-0", "b-0"]

    def test_counts_are_by_class_without_empty_classes(self):
        assert dict(self.WARD.counts) == {
            Risk.LAST_ISR_MEMBER_LOST: 1,
            Risk.UNDER_MIN_ISR: 1,
            Risk.AT_MIN_ISR: 1,
            Risk.UNDER_REPLICATED: 1,
        }

    def test_every_partition_has_a_diagnosis(self):
        assert len(self.WARD.diagnoses) == len(self.SEEN.partitions)


def test_settings_are_worth_asking_for_only_where_replica_is_missing():
    seen = [partition("full"), partition("short", isr=(1, 2)), partition("leaderless", leader=None)]
    assert topics_short_of_replicas(seen) == {"short", "leaderless"}


class TestShortcomings:
    def test_what_is_led_by_full_isr_is_not_looked_at(self):
        seen = cluster(partition(), partition(index=1, isr=(1, 2)), partition(index=2, leader=None))
        risk_summary = partitions_at_risk(seen, {"orders": 2})
        assert [(d.partition.index, d.risk) for d in risk_summary.at_risk] == [
            (2, Risk.LEADER_LOST),
            (1, Risk.AT_MIN_ISR),
        ]
        assert len(risk_summary.diagnoses) == 2

    def test_they_are_all_that_a_whole_examination_finds_at_risk(self):
        facts = RiskInputs(floors=dict.fromkeys("abcdef", 2))
        assert partitions_at_risk(TestWard.SEEN, facts.floors).at_risk == diagnose_cluster(TestWard.SEEN, facts).at_risk

    def test_a_leader_that_is_fenced_counts_as_none(self):
        seen = cluster(partition(), fenced=[1])
        assert [d.risk for d in partitions_at_risk(seen, {}).diagnoses] == [Risk.LEADER_LOST]


class TestFloors:
    READ = MinIsrCache({"a": 2}, frozenset({"a", "gone"}), START)

    def test_nothing_is_asked_while_every_replica_is_in_sync(self):
        assert not MinIsrCache().stale(frozenset(), START)

    def test_what_was_never_asked_for_is_asked_for_at_once(self):
        assert MinIsrCache().stale(frozenset({"a"}), START)
        assert self.READ.stale(frozenset({"a", "b"}), START)

    def test_requested_topics_are_cached_for_a_while_even_without_answer(self):
        for topics in (frozenset({"a"}), frozenset({"gone"})):
            assert not self.READ.stale(topics, after(MIN_ISR_CACHE_SECONDS - 1))
            assert self.READ.stale(topics, after(MIN_ISR_CACHE_SECONDS))


def test_every_risk_has_a_sentence_and_a_rank():
    assert set(RISK_DESCRIPTIONS) == set(Risk) == set(WORST_FIRST)
    assert {risk for risk in Risk if "neither reads nor writes" in RISK_DESCRIPTIONS[risk]} <= OFFLINE


def test_a_partition_whose_leader_is_not_named_is_not_offline():
    hidden = partition(replicas=[4, 1, 2], leader_unknown=True)
    assert partitions_at_risk(cluster(hidden), {}).diagnoses == ()
    assert partitions_at_risk(cluster(hidden, partition(index=1, leader=9)), {"orders": 2}).counts == {
        Risk.LEADER_LOST: 1
    }
    assert noted(hidden).risk is Risk.IN_SYNC
    assert noted(replace(hidden, isr=(4,))).risk is Risk.UNDER_MIN_ISR
    assert topics_short_of_replicas([hidden]) == frozenset()

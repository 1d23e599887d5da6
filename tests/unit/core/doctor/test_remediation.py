"""What a person is advised to do: what clients see, what is safe, what costs what, and the exact commands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.cli.diagnosis.remedies import remedy
from bellwether.core.detection.finding_messages import SILENT
from bellwether.core.doctor.remediation import PROCESS_CHECK, CommandOptions, RemediationPlan, remediation_plan
from bellwether.core.doctor.risks import Diagnosis, LogEndSample, Risk, RiskInputs, diagnose
from bellwether.core.model.cluster import Partition
from bellwether.core.reasons import Reason
from sourcetree import ROOT
from testkit.messages import assert_wording
from testkit.values.builders import START, partition

TOOLS = CommandOptions("broker:9092")
LIVE = frozenset({1, 2, 3})


def found(p: Partition, *, floor: int | None = 2, live: frozenset[int] = LIVE, unclean: bool = False) -> Diagnosis:
    floors = {} if floor is None else {p.topic: floor}
    samples = {p.key: LogEndSample(120, START, 1, p.leader_epoch)}
    return diagnose(p, live, RiskInputs(floors, {p.topic: unclean}, samples, {p.name: {2: 100}}, frozenset({9})))


def told(p: Partition, *, elr: bool = True, **known: object) -> RemediationPlan:
    return remediation_plan(found(p, **known), TOOLS, elr=elr)  # type: ignore[arg-type]


def commands(advice: RemediationPlan) -> list[str]:
    return [command for way in advice.remediations for command in (*way.checks, *way.commands)]


EVERY = {
    Risk.IN_SYNC: partition(),
    Risk.UNDER_REPLICATED: partition(replicas=(1, 2, 3, 4), isr=(1, 2, 3)),
    Risk.REMOVED_BROKER: partition(replicas=(1, 2, 3, 9), isr=(1, 2, 3)),
    Risk.AT_MIN_ISR: partition(isr=(1, 2)),
    Risk.UNDER_MIN_ISR: partition(isr=(1,)),
    Risk.LEADER_LOST: partition(isr=(1, 2), leader=None),
    Risk.LAST_ISR_MEMBER_LOST: partition(isr=(4,), replicas=(4, 1, 2), leader=None),
    Risk.ALL_REPLICAS_LOST: partition(replicas=(4, 5), leader=None),
}


@pytest.mark.parametrize("risk", list(Risk))
@pytest.mark.parametrize("elr", [True, False])
def test_every_class_has_its_whole_advice(risk: Risk, elr: bool):
    assert found(EVERY[risk]).risk is risk
    advice = told(EVERY[risk], elr=elr)
    assert bool(advice.remediations) == (risk is not Risk.IN_SYNC)
    assert all(way.action and way.cost for way in advice.remediations)
    ways = [text for way in advice.remediations for text in (way.action, way.cost, *way.checks, *way.commands)]
    assert_wording(advice.clients, advice.safe, ways)


@pytest.mark.parametrize(
    ("topic", "words"), [("__consumer_offsets", "commit"), ("__transaction_state", "transactions")]
)
@pytest.mark.parametrize("risk", [Risk.UNDER_MIN_ISR, Risk.LAST_ISR_MEMBER_LOST])
def test_what_topic_of_kafkas_own_is_needed_for_is_said(topic: str, words: str, risk: Risk):
    assert words in told(replace(EVERY[risk], topic=topic)).clients


def test_how_many_losses_are_to_spare_is_counted():
    assert_wording(told(partition(), floor=1).safe, told(partition(isr=(1, 2)), floor=1).safe)
    assert "DescribeConfigs on Topic" in told(partition(isr=(1, 2)), floor=None).safe


def test_the_only_copy_in_sync_is_named():
    assert_wording(told(partition(isr=(2,), leader=2), floor=1).safe)


def test_lowering_the_setting_clears_eligible_leader_replicas_and_says_so():
    assert_wording(told(partition(isr=(1,), elr=(2,))).remediations[1].cost)
    assert "forgets" not in told(partition(isr=(1,), elr=(2,)), elr=False).remediations[1].cost


def test_acks_1_records_are_named_as_lost_with_the_leader():
    said = told(partition(isr=(1,), elr=(2,))).safe
    assert_wording(said)
    assert "acks=1" in said


def test_setting_without_spare_by_design_wants_more_replicas():
    two, one = told(partition(replicas=(1, 2))), told(partition(replicas=(1,)), floor=1)
    assert_wording([way.action for way in two.remediations], [way.action for way in one.remediations])


def test_writes_need_no_further_step_where_one_replica_is_enough():
    assert len(told(EVERY[Risk.LAST_ISR_MEMBER_LOST], floor=1).remediations) == 2


def test_what_kafka_does_by_itself_is_said():
    said = told(EVERY[Risk.LAST_ISR_MEMBER_LOST], unclean=True).remediations[1]
    assert "unclean.leader.election.enable is set" in said.action


def test_unclean_election_is_offered_only_where_no_clean_one_exists():
    for risk, p in EVERY.items():
        offered = any("--unclean-election" in command for command in commands(told(p)))
        assert offered == (risk is Risk.LAST_ISR_MEMBER_LOST)


def test_killed_eligible_replicas_are_no_longer_eligible_on_return():
    waiting = partition(replicas=(4, 5, 1), isr=(), elr=(4, 5), leader=None)
    way = told(waiting).remediations[0]
    assert_wording(way.action, way.cost)
    assert "led last" not in way.cost
    last = replace(waiting, last_known_elr=(5,))
    assert_wording(told(last).remediations[0].cost, told(waiting).safe)


def test_last_known_leader_may_lack_what_it_had_not_written():
    last = replace(partition(replicas=(4, 1), isr=(), leader=None), last_known_elr=(4,))
    assert_wording(told(last).remediations[0].cost)


def test_without_known_replicas_all_are_started_to_compare_logs():
    nobody = partition(replicas=(4, 1), isr=(), leader=None)
    advice = told(nobody)
    assert_wording(advice.remediations[0].action, advice.safe)


def test_longest_log_is_put_first_before_unclean_election():
    lost = partition(replicas=(4, 1, 2), isr=(4,), leader=None)
    known = RiskInputs({"orders": 1}, ends={lost.name: {1: 70, 2: 80}})
    ways = remediation_plan(diagnose(lost, LIVE, known), TOOLS, elr=False).remediations
    assert_wording(ways[1].action, ways[1].commands)
    assert "--unclean-election" in ways[2].commands[0]


def test_a_file_of_client_settings_is_handed_to_kafkas_tools():
    way = remediation_plan(
        found(EVERY[Risk.UNDER_MIN_ISR]), CommandOptions("b:1", "client.properties"), elr=True
    ).remediations[0]
    assert_wording(way.checks[0])


def test_addresses_in_brackets_survive_the_shell():
    advice = remediation_plan(found(EVERY[Risk.LAST_ISR_MEMBER_LOST]), CommandOptions("[fd00::1]:9092"), elr=True)
    told_ = commands(advice)
    assert any("--bootstrap-server '[fd00::1]:9092'" in command for command in told_)
    assert any("--bootstrap '[fd00::1]:9092'" in command for command in told_)


def test_unclean_election_is_bounded_by_same_samples_as_advice():
    tools = CommandOptions("b:9092", store=" --store s3://bucket/samples")
    assert_wording(commands(remediation_plan(found(EVERY[Risk.LAST_ISR_MEMBER_LOST]), tools, elr=True))[0])


def test_replica_being_added_is_awaited_and_none_is_called_missing():
    advice = told(partition(isr=(1,), adding=(2, 3)))
    assert_wording(advice.remediations[0].action)
    assert commands(advice)[0] == "kafka-reassign-partitions.sh --bootstrap-server broker:9092 --list"
    assert not any("no broker" in way.action for way in advice.remediations)


def test_no_unclean_election_is_offered_while_controller_believes_in_leader():
    silent = partition(isr=(4,), replicas=(4, 1, 2), leader=4)
    assert found(silent).risk is Risk.LAST_ISR_MEMBER_LOST
    advice = told(silent)
    assert_wording(advice.remediations[1].action, commands(advice))


@pytest.mark.parametrize("reason", sorted(SILENT))
def test_silent_broker_has_same_remedy_everywhere(reason: Reason):
    assert PROCESS_CHECK in remedy(reason)
    page = (ROOT / "docs" / "alerts" / "BellwetherBrokerDown.md").read_text()
    assert PROCESS_CHECK in " ".join(page.replace("`", "").replace("If the process", "if the process").split())

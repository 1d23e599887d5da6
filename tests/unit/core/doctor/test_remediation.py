"""The remedy of one partition: what clients see, and an unclean election with its loss and the exact commands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.cli.diagnosis.remedies import remedy
from bellwether.core.detection.finding_messages import SILENT
from bellwether.core.doctor.remediation import (
    PROCESS_CHECK,
    CommandOptions,
    Remediation,
    client_impact,
    unclean_election,
)
from bellwether.core.doctor.risks import Diagnosis, LogEndSample, Risk, RiskInputs, diagnose
from bellwether.core.model.cluster import Partition
from bellwether.core.reasons import Reason
from sourcetree import ROOT
from testkit.messages import assert_wording
from testkit.values.builders import START, partition

TOOLS = CommandOptions("broker:9092")
LIVE = frozenset({1, 2, 3})


def found(p: Partition, *, floor: int = 2, unclean: bool = False) -> Diagnosis:
    samples = {p.key: LogEndSample(120, START, 1, p.leader_epoch)}
    inputs = RiskInputs({p.topic: floor}, {p.topic: unclean}, samples, {p.name: {2: 100}}, frozenset({9}))
    return diagnose(p, LIVE, inputs)


def noted(p: Partition, *, tools: CommandOptions = TOOLS, **known: object) -> list[Remediation]:
    return list(unclean_election(found(p, **known), tools))  # type: ignore[arg-type]


def commands(ways: list[Remediation]) -> list[str]:
    return [command for way in ways for command in (*way.checks, *way.commands)]


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
LOST = EVERY[Risk.LAST_ISR_MEMBER_LOST]


@pytest.mark.parametrize("risk", list(Risk))
def test_every_class_says_what_clients_see(risk: Risk):
    assert found(EVERY[risk]).risk is risk
    assert_wording(client_impact(found(EVERY[risk])))


@pytest.mark.parametrize(
    ("topic", "words"), [("__consumer_offsets", "commit"), ("__transaction_state", "transactions")]
)
@pytest.mark.parametrize("risk", [Risk.UNDER_MIN_ISR, Risk.LAST_ISR_MEMBER_LOST])
def test_what_topic_of_kafkas_own_is_needed_for_is_said(topic: str, words: str, risk: Risk):
    assert words in client_impact(found(replace(EVERY[risk], topic=topic)))


def test_unclean_election_is_offered_only_where_no_clean_one_exists():
    for risk, p in EVERY.items():
        offered = any("--unclean-election" in command for command in commands(noted(p)))
        assert offered == (risk is Risk.LAST_ISR_MEMBER_LOST)


def test_unclean_election_names_loss_commands_and_the_step_after():
    assert_wording([text for way in noted(LOST) for text in (way.action, way.cost, *way.commands)])


def test_writes_need_no_further_step_where_one_replica_is_enough():
    assert len(noted(LOST, floor=1)) == 1


def test_what_kafka_does_by_itself_is_said():
    assert "unclean.leader.election.enable is set" in noted(LOST, unclean=True)[0].action


def test_longest_log_is_put_first_before_unclean_election():
    lost = partition(replicas=(4, 1, 2), isr=(4,), leader=None)
    known = RiskInputs({"orders": 1}, ends={lost.name: {1: 70, 2: 80}})
    ways = list(unclean_election(diagnose(lost, LIVE, known), TOOLS))
    assert_wording(ways[0].action, ways[0].commands)
    assert "--unclean-election" in ways[1].commands[0]


def test_addresses_in_brackets_survive_the_shell():
    lines = commands(noted(LOST, tools=CommandOptions("[fd00::1]:9092")))
    assert any("--bootstrap-server '[fd00::1]:9092'" in command for command in lines)
    assert any("--bootstrap '[fd00::1]:9092'" in command for command in lines)


def test_unclean_election_is_bounded_by_same_samples_as_advice():
    assert_wording(commands(noted(LOST, tools=CommandOptions("b:9092", store=" --store s3://bucket/samples")))[0])


def test_no_unclean_election_is_offered_while_controller_believes_in_leader():
    silent = partition(isr=(4,), replicas=(4, 1, 2), leader=4)
    assert found(silent).risk is Risk.LAST_ISR_MEMBER_LOST
    assert noted(silent) == []


@pytest.mark.parametrize("reason", sorted(SILENT))
def test_silent_broker_has_same_remedy_everywhere(reason: Reason):
    assert PROCESS_CHECK in remedy(reason)
    page = (ROOT / "docs" / "alerts" / "BellwetherBrokerDown.md").read_text()
    assert PROCESS_CHECK in " ".join(page.replace("`", "").replace("If the process", "if the process").split())

"""Partitions at risk by cause: one finding for a dead broker, what it covers, and one remedy, whatever the size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.doctor.cause_remediation import CauseAdvice, CauseKind, RiskCause, cause_advice, causes
from bellwether.core.doctor.remediation import PROCESS_CHECK, CommandOptions
from bellwether.core.doctor.risks import Risk, RiskInputs, diagnose_cluster
from bellwether.core.model.cluster import Partition
from testkit.messages import assert_wording
from testkit.values.builders import cluster, partition
from testkit.values.doctor_commands import LIVE, SILENT, summary

TOOLS = CommandOptions("b:1")


def grouped(*partitions: Partition) -> tuple[RiskCause, ...]:
    numbered = [replace(p, index=i) for i, p in enumerate(partitions)]
    return causes(summary(*numbered), LIVE, SILENT)


def advice(cause: RiskCause, *, elr: bool = False) -> CauseAdvice:
    return cause_advice(cause, TOOLS, elr=elr)


AT_FLOOR = partition(replicas=(1, 2, 4), isr=(1, 2))


def test_ten_partitions_that_miss_one_dead_broker_are_one_finding() -> None:
    (cause,) = grouped(*[AT_FLOOR] * 10)
    assert (cause.kind, cause.brokers, len(cause.diagnoses)) == (CauseKind.BROKERS_DOWN, (4,), 10)
    said = advice(cause)
    assert said.heading == "broker 4 is down"
    assert [way.action for way in said.remediations] == [f"start broker 4; {PROCESS_CHECK}"]
    assert said.remediations[0].commands == (), "no command of Kafka starts a broker"


def test_removed_broker_is_replaced_by_one_reassignment_and_not_started() -> None:
    lists = [partition(index=i, replicas=(1, 2, 4), isr=(1, 2)) for i in range(25)]
    (cause,) = causes(diagnose_cluster(cluster(*lists, removed=[4]), RiskInputs()), LIVE)
    assert (cause.kind, cause.brokers) == (CauseKind.BROKERS_REMOVED, (4,))
    said = advice(cause)
    assert_wording(said.heading)
    repair, again = said.remediations
    assert_wording(repair.action)
    write, execute = repair.commands
    assert write.startswith(
        'echo \'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]},{"topic'
    )
    assert write.count("[1,2,3]") == 20
    assert execute.endswith("--reassignment-json-file reassignment.json --execute")
    assert_wording(again.action)


@pytest.mark.parametrize(
    ("replicas", "floor", "kind", "brokers", "remedy"),
    [
        ((1, 2, 4, 9), 2, CauseKind.BROKERS_DOWN, (4,), "start broker 4; "),
        ((1, 3, 9), 2, CauseKind.BROKERS_UNREACHABLE, (3,), "run this again after 10 s: if broker 3 died"),
        ((1, 2, 9), 2, CauseKind.BROKERS_REMOVED, (9,), "replace broker 9 in 1 replica list"),
        ((1, 9), 2, CauseKind.BROKERS_REMOVED, (9,), "replace broker 9 in 1 replica list"),
        ((1, 4, 9), 0, CauseKind.BROKERS_REMOVED, (9,), "replace broker 9 in 1 replica list"),
    ],
)
def test_a_removed_broker_hides_no_broker_whose_start_would_help(
    replicas: tuple[int, ...], floor: int, kind: CauseKind, brokers: tuple[int, ...], remedy: str
) -> None:
    listed = cluster(partition(replicas=replicas, isr=(1,)), fenced=[4], removed=[9], brokers=4)
    found = diagnose_cluster(listed, RiskInputs({"orders": floor}))
    (cause,) = causes(found, LIVE, SILENT)
    assert (cause.kind, cause.brokers) == (kind, brokers)
    assert {2}.intersection(replicas) <= {*cause.also_missing}
    assert cause_advice(cause, TOOLS, elr=False).remediations[0].action.startswith(remedy)


@pytest.mark.parametrize(
    ("p", "kind"),
    [
        (replace(AT_FLOOR, replicas=(1, 2, 3)), CauseKind.BROKERS_UNREACHABLE),
        (replace(AT_FLOOR, replicas=(1, 2), isr=(1,)), CauseKind.OUT_OF_ISR),
        (partition(replicas=(1, 4), isr=(1,), adding=(4,)), CauseKind.REASSIGNMENT),
        (partition(replicas=(3, 1, 2), leader=3), CauseKind.ELECTION_PENDING),
        (partition(isr=(1, 2), leader=None), CauseKind.ELECTION_PENDING),
        (partition(replicas=(1, 2, 4), isr=(), leader=None), CauseKind.NO_ELIGIBLE_LEADER),
    ],
    ids=lambda value: str(value) if isinstance(value, CauseKind) else "",
)
def test_each_cause_is_named(p: Partition, kind: CauseKind) -> None:
    (cause,) = grouped(p)
    assert cause.kind is kind
    assert_wording(advice(cause).heading)


def test_partition_missing_dead_and_lagging_broker_counts_for_dead_one() -> None:
    (cause,) = grouped(partition(replicas=(1, 2, 4), isr=(1,)))
    assert (cause.brokers, cause.also_missing) == ((4,), (2,))


def test_causes_and_classes_come_worst_first() -> None:
    lost = partition(replicas=(5, 1), isr=(5,), leader=None)
    down, lagging = grouped(partition(replicas=(1, 2), isr=(1,)), AT_FLOOR, lost)
    assert list(down.by_risk) == [Risk.LAST_ISR_MEMBER_LOST, Risk.AT_MIN_ISR]
    assert (down.brokers, lagging.kind) == ((4, 5), CauseKind.OUT_OF_ISR)


def test_broker_that_brings_back_most_offline_partitions_is_started_first() -> None:
    four, five = (partition(replicas=(b, 1), isr=(b,), leader=None) for b in (4, 5))
    (cause,) = grouped(four, five, five, partition(replicas=(1, 2, 6), isr=(1, 2)))
    start, otherwise = advice(cause).remediations
    assert_wording(start.action, otherwise.action, otherwise.checks, advice(cause).safe)


def test_killed_broker_that_was_eligible_is_not_promised_to_lead() -> None:
    (cause,) = grouped(partition(replicas=(4, 1), isr=(), elr=(4,), leader=None))
    assert_wording(advice(cause, elr=True).remediations[0].cost)


def test_setting_is_lowered_to_what_every_partition_has_in_sync() -> None:
    (cause,) = grouped(partition(replicas=(1, 4, 5), isr=(1,)), partition(replicas=(2, 4, 5), isr=(2,), leader=2))
    lower = advice(cause).remediations[1]
    assert_wording(lower.action)
    assert [command.rpartition("=")[2] for command in lower.commands] == ["1"]
    assert_wording(advice(cause).safe)


def test_setting_stays_where_offline_partition_awaits_eligible_replica() -> None:
    under = partition(replicas=(1, 4, 5), isr=(1,), elr=(4,))
    (cause,) = grouped(under, partition(replicas=(4, 1), isr=(), elr=(4,), leader=None))
    ways = advice(cause, elr=True)
    assert not [way for way in ways.remediations if way.commands]
    assert_wording(ways.safe)


def test_advice_stays_short_for_hundred_topics_and_fifty_dead_brokers() -> None:
    many = [
        replace(partition(replicas=(1, 10 + i % 50, 60 + i % 50), isr=(1,)), topic=f"topic-{i}", index=i)
        for i in range(100)
    ]
    (cause,) = causes(summary(*many), LIVE, SILENT)
    assert len(cause.brokers) == 100
    said = advice(cause)
    assert_wording(said.heading)
    assert all(len(way.action) < 300 and len(way.commands) <= 3 for way in said.remediations)

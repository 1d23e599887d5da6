"""Every command that ``bellwether doctor`` can print, for a partition of each class and for each kind of cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bellwether.core.doctor.cause_remediation import CauseKind, cause_advice, causes
from bellwether.core.doctor.remediation import CommandOptions, Remediation, unclean_election
from bellwether.core.doctor.risks import Diagnosis, Risk, RiskInputs, RiskSummary, diagnose
from bellwether.core.model.cluster import Partition
from testkit.values.builders import partition

LIVE = frozenset({1, 2, 3})
SILENT = frozenset({3})
INPUTS = RiskInputs({"orders": 2}, {"orders": True}, removed=frozenset({9}))

LED = partition(replicas=(1, 2, 4), isr=(1, 2))
PARTITIONS = (
    replace(LED, isr=(1,), elr=(2,)),
    LED,
    replace(LED, replicas=(1, 2, 3), isr=(1, 2)),  # broker 3 does not answer
    replace(LED, replicas=(1, 2), isr=(1,)),  # broker 2 answers
    replace(LED, replicas=(1, 2, 3, 9), isr=(1, 2, 3)),  # broker 9 is removed
    replace(LED, replicas=(1, 4, 5), isr=(1,), adding=(4, 5)),
    partition(isr=(1, 2), leader=None),
    partition(replicas=(3, 1, 2), leader=3),
    partition(replicas=(4, 1, 2), isr=(4,), leader=None),
    partition(replicas=(4, 1, 2), isr=(4,), leader=4),
    partition(replicas=(4, 5), leader=None),
    partition(replicas=(1, 2), isr=(), leader=None),
    partition(replicas=(1, 2)),
    partition(),
)
FURTHER = RiskInputs({"orders": 2}, ends={PARTITIONS[8].name: {1: 70, 2: 80}})


def diagnoses() -> tuple[Diagnosis, ...]:
    """A diagnosis of every class."""
    found = tuple(diagnose(p, LIVE - SILENT, INPUTS) for p in PARTITIONS)
    return (*found, diagnose(PARTITIONS[8], LIVE, FURTHER))


def summary(*partitions: Partition) -> RiskSummary:
    """The diagnoses of some partitions; brokers 1 and 2 answer, 3 is silent, the others are down."""
    return RiskSummary(tuple(diagnose(p, LIVE - SILENT, INPUTS) for p in partitions))


def remedies(tools: CommandOptions) -> Iterator[Remediation]:
    """Every remedy, by partition and by cause, with and without eligible leader replicas."""
    every = diagnoses()
    found = causes(RiskSummary(every), LIVE, SILENT)
    assert {d.risk for d in every} >= set(Risk) - {Risk.IN_SYNC, Risk.UNDER_REPLICATED}
    assert {cause.kind for cause in found} == set(CauseKind)
    for diagnosis in every:
        yield from unclean_election(diagnosis, tools)
    for elr in (True, False):
        for cause in found:
            yield from cause_advice(cause, tools, elr=elr).remediations


def commands(tools: CommandOptions) -> list[str]:
    """Every command line, once."""
    return sorted({line for way in remedies(tools) for line in (*way.commands, *way.checks)})

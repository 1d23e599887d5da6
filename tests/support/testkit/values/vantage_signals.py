"""Words of vantages, and what the judge makes of them: for tests of what signals add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, Signal, UnreachableCause
from testkit.values.builders import signal

GOOD, BAD, DUNNO = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN
POLICY = Policy(name="main")


def of_one(found: Snapshot, policy: Policy = POLICY, before: Verdict | None = None) -> Verdict:
    """The verdict on broker 1."""
    return judge(found, policy, {1: before} if before else {})[1]


def words(
    *readings: Reading,
    control: Reading = GOOD,
    age: float | None = 0.0,
    causes: Sequence[UnreachableCause | None] = (),
) -> list[Signal]:
    """What vantages a, b, c... say of broker 1; of brokers 2 and 3 they say good, so that they are not blind."""
    said = []
    for letter, reading, cause in zip_longest("abcde"[: len(readings)], readings, causes[: len(readings)]):
        own = signal(1, reading, source=letter, control=control, age_seconds=age)
        said.append(replace(own, cause=cause if reading is BAD else None))
        said += [signal(b, GOOD, source=letter, age_seconds=age) for b in (2, 3)]
    return said

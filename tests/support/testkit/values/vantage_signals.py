"""Words of vantages, and what the judge makes of them: for tests of what signals add up to."""

from __future__ import annotations

from bellwether.core.detection.verdicts import Verdict, judge
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Reading, Signal
from testkit.values.builders import signal

GOOD, BAD, DUNNO = Reading.PASSING, Reading.FAILING, Reading.UNKNOWN
POLICY = Policy(name="main")


def of_one(found: Snapshot, policy: Policy = POLICY, before: Verdict | None = None) -> Verdict:
    """The verdict on broker 1."""
    return judge(found, policy, {1: before} if before else {})[1]


def words(*readings: Reading, control: Reading = GOOD, age: float | None = 0.0) -> list[Signal]:
    """What vantages a, b, c... say of broker 1; of brokers 2 and 3 they say good, so that they are not blind."""
    said = []
    for letter, reading in zip("abcde", readings, strict=False):
        said.append(signal(1, reading, source=letter, control=control, age_seconds=age))
        said += [signal(b, GOOD, source=letter, age_seconds=age) for b in (2, 3)]
    return said

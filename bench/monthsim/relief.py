"""What clients lose by each fault of a broker, without a cure and under each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import NamedTuple

from bellwether.core.settings.harm import LEADING_LOST_SECONDS


class Fault(Enum):
    """What makes a broker's clients lose requests, as far as it decides what a cure ends."""

    UNREACHABLE = "clients do not reach it"
    KEEPS_UP = "slow writes; it keeps up as a follower"
    TRAILS = "slow writes; it does not keep up"
    LEADS_SLOWLY = f"an append takes {LEADING_LOST_SECONDS} s or more; it does not keep up"
    STALLED = "an append does not end"
    FREEZES = "it freezes again and again"


class Cure(StrEnum):
    """What is done with a broker."""

    NONE = "none"
    DEMOTION = "demotion"
    HELD = "held"


class Lost(NamedTuple):
    """Share of the requests lost, by client: acks=all on partitions that the broker led before the cure, acks=all on
    those that it followed, and acks=1 where it led; readers lose as acks=1 does.
    """

    all_led: float
    all_followed: float
    one_led: float


RELIEF: Mapping[Fault, Mapping[Cure, Lost]] = {
    fault: {Cure.NONE: none, Cure.DEMOTION: demotion, Cure.HELD: Lost(0, 0, 0)}
    for fault, none, demotion in (
        (Fault.UNREACHABLE, Lost(1, 0, 1), Lost(0, 0, 0)),
        (Fault.KEEPS_UP, Lost(0, 0, 1), Lost(0, 0, 0)),
        (Fault.TRAILS, Lost(0, 1, 1), Lost(1, 1, 0)),
        (Fault.LEADS_SLOWLY, Lost(1, 1, 1), Lost(1, 1, 0)),
        (Fault.STALLED, Lost(1, 1, 1), Lost(1, 1, 0)),
        (Fault.FREEZES, Lost(1, 1, 1), Lost(1, 1, 0)),
    )
}
"""Measured with ``make bench-cures`` (docs/internals/cures.md), in whole shares; but acks=1 with slow writes by the
objective (``spec.detection.objectives``): there it loses nothing below a second an append. Of a stalled disk it holds
until Kafka fences the broker, which ends all; Kafka does so only while the broker leads and its metadata log hangs as
well.
"""

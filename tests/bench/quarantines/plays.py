"""What is done on a stage, and when: each play gives phases to measure and moments to tell.

In: a stage that runs. Out: a ``Played``. Called by ``__main__``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from quarantines.figures import Phase
from quarantines.stage import MILLISECONDS, PARTITIONS, SICK, Stage
from realparts.slowdisk import Mode

WARM_UP_SECONDS = 5.0
STEADY_SECONDS = 15.0
Say = Callable[[str], None]


@dataclass
class Played:
    """What came of a play: phases, and how many seconds this and that took."""

    phases: list[Phase] = field(default_factory=list)
    moments: dict[str, Any] = field(default_factory=dict)

    def phase(self, name: str, begin: float, end: float) -> None:
        """One more phase."""
        self.phases.append(Phase(name, begin, end))


def slow_disk(stage: Stage, mode: Mode, say: Say) -> Played:
    """A disk turns slow: demotion alone, then quarantine where it is called for, then the disk is well again."""
    played = Played()
    _before(played, say)
    disk = stage.kafka.slow_disk(SICK)
    say(f"disk of broker {SICK}: {MILLISECONDS} ms more for each {mode}")
    broke = time.monotonic()
    disk.set(MILLISECONDS, mode)
    demoted = stage.until(stage.demoted, 60, "the broker is demoted")
    played.phase("slow, not demoted yet", broke, demoted)
    played.moments["demoted_after_seconds"] = round(demoted - broke, 1)
    say("demoted; now with demotion alone")
    decided = _decided(stage)
    played.phase("demoted", demoted, decided)
    played.moments["quarantine"] = stage.quarantine()[0]
    if stage.paused():
        say("held; it leaves every ISR")
        out = stage.until(lambda: stage.in_no_isr(SICK), 60, "it is out of every ISR")
        played.phase("shut down and held", decided, out)
        played.moments["out_of_every_isr_after_seconds"] = round(out - decided, 1)
        say("out of every ISR: quarantined")
        time.sleep(STEADY_SECONDS)
        played.moments["quarantine"] = stage.quarantine()[0]
        played.phase("quarantined", out, time.monotonic())
    well = time.monotonic()
    disk.clear()
    say("the disk is fast again")
    if stage.paused():
        released = stage.until(stage.kafka.broker(SICK).start_if_ended, 60, "the broker has ended and is started")
        played.moments["released_after_seconds"] = round(released - well, 1)
    back = stage.until(lambda: stage.in_every_isr(SICK), 90, "it is back in every ISR")
    played.moments["back_in_every_isr_after_seconds"] = round(back - well, 1)
    played.phase("returning", well, back)
    time.sleep(STEADY_SECONDS)
    played.phase("after", back, time.monotonic())
    return played


def further_loss(stage: Stage, say: Say) -> Played:
    """While a broker is quarantined another one is killed: the first must be released at once."""
    played = Played()
    _before(played, say)
    disk, broke = stage.kafka.slow_disk(SICK), time.monotonic()
    disk.set(MILLISECONDS, "write+fsync")
    stage.until(stage.paused, 120, "the broker is paused")
    out = stage.until(lambda: stage.in_no_isr(SICK), 60, "it is out of every ISR")
    played.phase("until quarantined", broke, out)
    time.sleep(STEADY_SECONDS)
    lost = time.monotonic()
    played.phase("quarantined", out, lost)
    other = stage.kafka.broker(2)
    say("kill -9 of broker 2")
    other.kill()
    released = stage.until(stage.kafka.broker(SICK).start_if_ended, 60, "the held broker has ended and is started")
    played.moments["released_after_seconds"] = round(released - lost, 1)
    say(f"released after {released - lost:.1f} s")
    stage.until(stage.recorded, 30, "the operator says why")
    played.moments["quarantine"] = stage.quarantine()[0]

    def served() -> bool:
        return len(stage.traffic.acknowledged_since(released)) == PARTITIONS

    again = stage.until(served, 90, "every partition takes acks=all again")
    played.moments["every_partition_served_after_seconds"] = round(again - lost, 1)
    played.phase("a further broker lost", lost, again)
    disk.clear()
    other.start()
    back = stage.until(lambda: stage.in_every_isr(SICK) and stage.in_every_isr(2), 120, "both are back")
    played.phase("returning", again, back)
    time.sleep(STEADY_SECONDS)
    played.phase("after", back, time.monotonic())
    return played


def _before(played: Played, say: Say) -> None:
    time.sleep(WARM_UP_SECONDS)
    say("all is well")
    begin = time.monotonic()
    time.sleep(STEADY_SECONDS)
    played.phase("before", begin, time.monotonic())


def _decided(stage: Stage) -> float:
    """When it is paused, or when that has been refused for good: then the phase is as long as it would have been."""
    refused = 0.0

    def reached() -> bool:
        nonlocal refused
        if stage.paused():
            return True
        settled = stage.quarantine()[0] in ("NotBlockingAcks", "NoFaultTolerance")
        refused = (refused or time.monotonic()) if settled else 0.0
        return bool(refused) and time.monotonic() - refused > STEADY_SECONDS

    return stage.until(reached, 120, "it is decided whether the broker is paused")

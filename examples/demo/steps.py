"""The steps of a run, numbered, with how long each is expected to take. In: settings. Out: what ``scenario`` plays.

The expected seconds are those of a quiet machine with two cores: they tell a person how long to wait, and nothing is
judged by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from demo.faults import FaultKind
from demo.settings import Settings

LEAVE_SECONDS = {FaultKind.REACHABILITY: 6.0, FaultKind.STORAGE: 8.0}
"""From a fault until its broker leads nothing: what the default policy needs to be sure, and a second or two."""
PASSING_SECONDS = {FaultKind.REACHABILITY: 3.0, FaultKind.STORAGE: 5.0}
"""How long the probes must pass before a repaired broker counts as well."""
RELEASE_SECONDS = 15.0
"""From the release of a held broker until it has ended, is started and in every ISR."""
WAVES_SECONDS = 7.0
OBSERVED_SECONDS = 5.0
"""To change the policy's mode and back, and until the broker is Healthy after the repair."""
COUNT_SECONDS = 10.0


class Act(StrEnum):
    """What happens in a step."""

    BASELINE = "baseline"
    WITHOUT = "fault while Bellwether only observes"
    WITH = "fault"
    REPAIR = "repair"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``seconds`` is what it is expected to take; ``broker`` is 0 where no broker is meant."""

    act: Act
    title: str
    seconds: float
    kind: FaultKind = FaultKind.REACHABILITY
    broker: int = 0


def steps(settings: Settings, brokers: Sequence[int]) -> list[Step]:
    """All steps of a run; a repetition takes other brokers. Only the first one has a control."""
    found = [Step(Act.BASELINE, "baseline, nothing is broken", settings.hold)]
    for number in range(settings.repeat):
        cut, slow = brokers[number % len(brokers)], brokers[(number + 1) % len(brokers)]
        if settings.only != "disk":
            if number == 0:
                found.append(_without(cut, settings))
            found += [_with(FaultKind.REACHABILITY, cut, settings), _repair(FaultKind.REACHABILITY, cut, settings)]
        if settings.only != "listener":
            found += [_with(FaultKind.STORAGE, slow, settings), _repair(FaultKind.STORAGE, slow, settings)]
    found.append(Step(Act.COUNT, "count what was lost", COUNT_SECONDS))
    return found


def control_seconds(settings: Settings) -> float:
    """How long the listener stays cut without Bellwether: as long as with it, so that the two can be compared."""
    return LEAVE_SECONDS[FaultKind.REACHABILITY] + settings.hold


class Progress:
    """Where a run is: which step, and how many seconds are left of all."""

    def __init__(self, planned: Sequence[Step]) -> None:
        self.steps = planned
        self._index = -1
        self._began = 0.0

    def begin(self, now: float) -> Step:
        """Go on to the next step."""
        self._index += 1
        self._began = now
        return self.steps[self._index]

    def left(self, now: float) -> float:
        """The expected seconds to the end of the last step."""
        later = sum(step.seconds for step in self.steps[self._index + 1 :])
        if self._index < 0:
            return later
        return later + max(0.0, self.steps[self._index].seconds - (now - self._began))

    def heading(self, now: float) -> str:
        """The step in one line, "step 2 of 7, about 90 s left: ..."."""
        if self._index < 0:
            return "getting ready"
        title = self.steps[self._index].title
        return f"step {self._index + 1} of {len(self.steps)}, {about(self.left(now))} left: {title}"


def about(seconds: float) -> str:
    """A time to wait, for a person: no more exact than it can be known."""
    return f"about {max(5, 5 * round(seconds / 5))} s" if seconds < 120 else f"about {seconds / 60:.1f} min"


def _without(broker: int, settings: Settings) -> Step:
    title = f"broker {broker}'s listener cut, Bellwether off"
    return Step(Act.WITHOUT, title, control_seconds(settings) + OBSERVED_SECONDS, FaultKind.REACHABILITY, broker)


def _with(kind: FaultKind, broker: int, settings: Settings) -> Step:
    what = "listener cut" if kind is FaultKind.REACHABILITY else "disk slow"
    return Step(Act.WITH, f"broker {broker}'s {what}, Bellwether on", LEAVE_SECONDS[kind] + settings.hold, kind, broker)


def _repair(kind: FaultKind, broker: int, settings: Settings) -> Step:
    cut = kind is FaultKind.REACHABILITY
    what = "listener repaired" if cut else "disk fast again"
    back = settings.stabilization + (WAVES_SECONDS if cut else RELEASE_SECONDS)
    return Step(Act.REPAIR, f"broker {broker}'s {what}", PASSING_SECONDS[kind] + back + settings.rest, kind, broker)

"""Health states of a broker and the table of their transitions, from which the documentation's diagram is drawn.

Rule 1: whatever decides which standing follows which lives in this table; ``verdicts`` looks it up, nobody else does.
In: the standing before, what the evidence of this turn adds up to, and whether the broker is demoted. Out: the standing
now. The first row that fits counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HealthState(StrEnum):
    """What the signals of a broker add up to."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    SICK = "Sick"
    DOWN = "Down"
    RECOVERING = "Recovering"
    UNKNOWN = "Unknown"


class Evidence(StrEnum):
    """What the findings of one turn add up to, worst first."""

    BAD = "bad"
    GONE = "gone"
    DOUBTFUL = "doubtful"
    MISSING = "missing"
    GOOD = "good"


class TransitionGuard(StrEnum):
    """What must hold besides the evidence."""

    ALWAYS = ""
    DEMOTED = "demoted"
    STAYED_WELL = "demoted, and well for the stabilization time"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: ``before`` ``None`` stands for any standing, and for none at all."""

    before: HealthState | None
    evidence: Evidence
    when: TransitionGuard
    after: HealthState


TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, Evidence.BAD, TransitionGuard.ALWAYS, HealthState.SICK),
    Transition(None, Evidence.GONE, TransitionGuard.ALWAYS, HealthState.DOWN),
    Transition(None, Evidence.DOUBTFUL, TransitionGuard.ALWAYS, HealthState.SUSPECT),
    Transition(None, Evidence.MISSING, TransitionGuard.ALWAYS, HealthState.UNKNOWN),
    # A broker that waits for a person to promote it has been well for long enough already.
    Transition(HealthState.HEALTHY, Evidence.GOOD, TransitionGuard.ALWAYS, HealthState.HEALTHY),
    Transition(HealthState.RECOVERING, Evidence.GOOD, TransitionGuard.STAYED_WELL, HealthState.HEALTHY),
    Transition(None, Evidence.GOOD, TransitionGuard.DEMOTED, HealthState.RECOVERING),
    Transition(None, Evidence.GOOD, TransitionGuard.ALWAYS, HealthState.HEALTHY),
)

_ROWS = {evidence: [row for row in TRANSITIONS if row.evidence is evidence] for evidence in Evidence}


def next_state(before: HealthState | None, evidence: Evidence, *, demoted: bool, stayed_well: bool) -> HealthState:
    """The standing that follows. ``stayed_well``: it has been Recovering for the stabilization time."""
    holds = {
        TransitionGuard.ALWAYS: True,
        TransitionGuard.DEMOTED: demoted,
        TransitionGuard.STAYED_WELL: demoted and stayed_well,
    }
    return next(row.after for row in _ROWS[evidence] if row.before in (None, before) and holds[row.when])

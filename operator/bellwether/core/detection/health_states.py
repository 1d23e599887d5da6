"""Health states of a broker and the table of their transitions, from which the documentation's diagram is drawn.

Every transition is defined in this table; ``verdicts`` looks it up, no other module does. In: the previous state, the
evidence of this reconcile, and whether the broker is demoted. Out: the new state. The first matching row counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class HealthState(StrEnum):
    """Health state of a broker, judged from its signals."""

    HEALTHY = "Healthy"
    SUSPECT = "Suspect"
    SICK = "Sick"
    DOWN = "Down"
    RECOVERING = "Recovering"
    UNKNOWN = "Unknown"


SHOULD_NOT_LEAD = frozenset({HealthState.SICK, HealthState.DOWN})
"""States of a broker that clients do not reach, or that serves them badly."""


class Evidence(StrEnum):
    """Sum of the findings of one reconcile, worst first."""

    BAD = "bad"
    GONE = "gone"
    DOUBTFUL = "doubtful"
    MISSING = "missing"
    GOOD = "good"


class TransitionGuard(StrEnum):
    """Condition of a transition in addition to the evidence."""

    ALWAYS = ""
    DEMOTED = "demoted"
    STAYED_WELL = "demoted, and healthy for the stabilization time"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: ``before`` ``None`` matches any previous state, and none."""

    before: HealthState | None
    evidence: Evidence
    when: TransitionGuard
    after: HealthState


TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, Evidence.BAD, TransitionGuard.ALWAYS, HealthState.SICK),
    Transition(None, Evidence.GONE, TransitionGuard.ALWAYS, HealthState.DOWN),
    Transition(None, Evidence.DOUBTFUL, TransitionGuard.ALWAYS, HealthState.SUSPECT),
    Transition(None, Evidence.MISSING, TransitionGuard.ALWAYS, HealthState.UNKNOWN),
    # A broker that waits for manual promotion has already been healthy for long enough; ``verdicts`` passes no state
    # from before its demotion by signals.
    Transition(HealthState.HEALTHY, Evidence.GOOD, TransitionGuard.ALWAYS, HealthState.HEALTHY),
    Transition(HealthState.RECOVERING, Evidence.GOOD, TransitionGuard.STAYED_WELL, HealthState.HEALTHY),
    Transition(None, Evidence.GOOD, TransitionGuard.DEMOTED, HealthState.RECOVERING),
    Transition(None, Evidence.GOOD, TransitionGuard.ALWAYS, HealthState.HEALTHY),
)

_ROWS = {evidence: [row for row in TRANSITIONS if row.evidence is evidence] for evidence in Evidence}


def next_state(before: HealthState | None, evidence: Evidence, *, demoted: bool, stayed_well: bool) -> HealthState:
    """The next state. ``stayed_well``: the broker has been Recovering for the stabilization time."""
    holds = {
        TransitionGuard.ALWAYS: True,
        TransitionGuard.DEMOTED: demoted,
        TransitionGuard.STAYED_WELL: demoted and stayed_well,
    }
    return next(row.after for row in _ROWS[evidence] if row.before in (None, before) and holds[row.when])

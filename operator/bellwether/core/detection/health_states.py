"""Health states of a broker and the table of their transitions, from which the documentation's diagram is drawn.

Rule 1: whatever decides which standing follows which lives in this table; ``verdicts`` looks it up, nobody else does.
In: the standing before, what the evidence of this turn adds up to, and whether the broker is demoted. Out: the standing
now. The first row that fits counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
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


class When(StrEnum):
    """What must hold besides the evidence."""

    ALWAYS = ""
    DEMOTED = "demoted"
    STAYED_WELL = "demoted, and well for the stabilization time"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: ``before`` ``None`` stands for any standing, and for none at all."""

    before: Standing | None
    evidence: Evidence
    when: When
    after: Standing


TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, Evidence.BAD, When.ALWAYS, Standing.SICK),
    Transition(None, Evidence.GONE, When.ALWAYS, Standing.DOWN),
    Transition(None, Evidence.DOUBTFUL, When.ALWAYS, Standing.SUSPECT),
    Transition(None, Evidence.MISSING, When.ALWAYS, Standing.UNKNOWN),
    # A broker that waits for a person to promote it has been well for long enough already.
    Transition(Standing.HEALTHY, Evidence.GOOD, When.ALWAYS, Standing.HEALTHY),
    Transition(Standing.RECOVERING, Evidence.GOOD, When.STAYED_WELL, Standing.HEALTHY),
    Transition(None, Evidence.GOOD, When.DEMOTED, Standing.RECOVERING),
    Transition(None, Evidence.GOOD, When.ALWAYS, Standing.HEALTHY),
)

_ROWS = {evidence: [row for row in TRANSITIONS if row.evidence is evidence] for evidence in Evidence}


def follow(before: Standing | None, evidence: Evidence, *, demoted: bool, stayed_well: bool) -> Standing:
    """The standing that follows. ``stayed_well``: it has been Recovering for the stabilization time."""
    holds = {When.ALWAYS: True, When.DEMOTED: demoted, When.STAYED_WELL: demoted and stayed_well}
    return next(row.after for row in _ROWS[evidence] if row.before in (None, before) and holds[row.when])

"""Draws ``docs/states.md`` from the table that the judge looks up, so that the diagram cannot tell another story.

``python docs/draw_states.py`` writes it, ``--check`` fails if the file is outdated.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bellwether.core.detection.health_states import TRANSITIONS, Evidence, HealthState, TransitionGuard, next_state

PAGE = Path(__file__).with_name("states.md")

STANDINGS = {
    HealthState.HEALTHY: "every kind of evidence is good",
    HealthState.SUSPECT: "something is doubtful: fewer vantages than the quorum, a restart, a slow follower",
    HealthState.SICK: "the evidence is bad; demoted after `demotion.dwellSeconds`, if invariants, cap and mode allow",
    HealthState.DOWN: "not registered, fenced, or unreachable: left to Kafka's own fencing",
    HealthState.RECOVERING: "demoted and well again, but not yet for the stabilization time (longer if it flaps)",
    HealthState.UNKNOWN: "too little fresh evidence; it moves nothing",
}

TEXT = """# How a state changes

<!-- Drawn from operator/bellwether/core/detection/health_states.py by docs/draw_states.py (`make generate`). -->

A reconcile reduces the findings on a broker to one evidence value, the worst of all signal kinds. The evidence,
the state before and whether the broker is demoted decide which state follows.

```mermaid
stateDiagram-v2
    direction LR
{edges}
```

| state | means |
|---|---|
{states}

The table itself; the first row that fits counts.

| evidence | state before | only if | state now |
|---|---|---|---|
{rows}

A state is a judgement and not an action: under `mode: Observe`, over the cap, or while it dwells, a broker is Sick
and not demoted. `bellwether explain BROKER` shows the evidence of a verdict and what would change it.
"""


def edges() -> list[str]:
    """What follows whatever was before, as arrows from anywhere; and every way to being well."""
    anywhere = [row for row in TRANSITIONS if row.before is None and row.evidence is not Evidence.GOOD]
    drawn = [f"    Anywhere --> {row.after}: {row.evidence.value}" for row in anywhere]
    for before in HealthState:
        labels: dict[HealthState, list[str]] = {}
        for demoted, stayed_well, label in WAYS:
            after = next_state(before, Evidence.GOOD, demoted=demoted, stayed_well=stayed_well)
            if after is not before and (before is HealthState.RECOVERING or not stayed_well):
                labels.setdefault(after, []).append(label)
        drawn += [f"    {before} --> {after}: {' or '.join(said)}" for after, said in labels.items()]
    return drawn


WAYS = (
    (False, False, "good, not demoted"),
    (True, False, "good, demoted"),
    (True, True, "good, for the stabilization time"),
)


def page() -> str:
    """The whole page."""
    rows = []
    for row in TRANSITIONS:
        only_if = row.when.value if row.when is not TransitionGuard.ALWAYS else ""
        rows.append(f"| {row.evidence.value} | {row.before or 'any'} | {only_if} | {row.after} |")
    states = [f"| {state} | {text} |" for state, text in STANDINGS.items()]
    return TEXT.format(edges="\n".join(edges()), states="\n".join(states), rows="\n".join(rows))


def main() -> None:
    """Write or check."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("docs/states.md is not what the table of transitions says; run: make generate")


if __name__ == "__main__":
    main()

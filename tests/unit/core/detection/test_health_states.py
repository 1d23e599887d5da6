"""The table of states: every situation has exactly one way out, and each way out can be reached."""

from __future__ import annotations

from itertools import product

import pytest

from bellwether.core.detection.health_states import TRANSITIONS, Evidence, HealthState, TransitionGuard, next_state

BEFORE = (None, *HealthState)
SITUATIONS = list(product(BEFORE, Evidence, (False, True), (False, True)))


def test_every_situation_has_a_way_out():
    for before, evidence, demoted, stayed_well in SITUATIONS:
        assert next_state(before, evidence, demoted=demoted, stayed_well=stayed_well) in HealthState


def test_every_row_is_the_answer_to_some_situation():
    answers = set()
    for before, evidence, demoted, stayed_well in SITUATIONS:
        holds = {
            TransitionGuard.ALWAYS: True,
            TransitionGuard.DEMOTED: demoted,
            TransitionGuard.STAYED_WELL: demoted and stayed_well,
        }
        fits = (r for r in TRANSITIONS if r.evidence is evidence and r.before in (None, before) and holds[r.when])
        answers.add(next(fits))
    assert answers == set(TRANSITIONS)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("evidence", "state"),
    [
        (Evidence.BAD, HealthState.SICK),
        (Evidence.GONE, HealthState.DOWN),
        (Evidence.DOUBTFUL, HealthState.SUSPECT),
        (Evidence.MISSING, HealthState.UNKNOWN),
    ],
)
def test_what_is_not_good_counts_whatever_was_before(
    before: HealthState | None, evidence: Evidence, state: HealthState
):
    for demoted, stayed_well in product((False, True), repeat=2):
        assert next_state(before, evidence, demoted=demoted, stayed_well=stayed_well) is state


@pytest.mark.parametrize("before", BEFORE)
def test_undemoted_broker_is_healthy_as_soon_as_well(before: HealthState | None):
    assert next_state(before, Evidence.GOOD, demoted=False, stayed_well=False) is HealthState.HEALTHY


@pytest.mark.parametrize("before", [b for b in BEFORE if b is not HealthState.HEALTHY])
def test_a_demoted_broker_must_stay_well_first(before: HealthState | None):
    assert next_state(before, Evidence.GOOD, demoted=True, stayed_well=False) is HealthState.RECOVERING


def test_only_long_enough_recovery_is_healthy_again():
    well_before = {
        b for b in BEFORE if next_state(b, Evidence.GOOD, demoted=True, stayed_well=True) is HealthState.HEALTHY
    }
    assert well_before == {HealthState.RECOVERING, HealthState.HEALTHY}

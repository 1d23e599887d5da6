"""The table of standings: every situation has exactly one way out, and each way out can be reached."""

from __future__ import annotations

from itertools import product

import pytest

from bellwether.core.detection.health_states import TRANSITIONS, Evidence, Standing, When, follow

BEFORE = (None, *Standing)
SITUATIONS = list(product(BEFORE, Evidence, (False, True), (False, True)))


def test_every_situation_has_a_way_out():
    for before, evidence, demoted, stayed_well in SITUATIONS:
        assert follow(before, evidence, demoted=demoted, stayed_well=stayed_well) in Standing


def test_every_row_is_the_answer_to_some_situation():
    answers = set()
    for before, evidence, demoted, stayed_well in SITUATIONS:
        holds = {When.ALWAYS: True, When.DEMOTED: demoted, When.STAYED_WELL: demoted and stayed_well}
        fits = (r for r in TRANSITIONS if r.evidence is evidence and r.before in (None, before) and holds[r.when])
        answers.add(next(fits))
    assert answers == set(TRANSITIONS)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("evidence", "standing"),
    [
        (Evidence.BAD, Standing.SICK),
        (Evidence.GONE, Standing.DOWN),
        (Evidence.DOUBTFUL, Standing.SUSPECT),
        (Evidence.MISSING, Standing.UNKNOWN),
    ],
)
def test_what_is_not_good_counts_whatever_was_before(before: Standing | None, evidence: Evidence, standing: Standing):
    for demoted, stayed_well in product((False, True), repeat=2):
        assert follow(before, evidence, demoted=demoted, stayed_well=stayed_well) is standing


@pytest.mark.parametrize("before", BEFORE)
def test_a_broker_that_is_not_demoted_is_healthy_as_soon_as_it_is_well(before: Standing | None):
    assert follow(before, Evidence.GOOD, demoted=False, stayed_well=False) is Standing.HEALTHY


@pytest.mark.parametrize("before", [b for b in BEFORE if b is not Standing.HEALTHY])
def test_a_demoted_broker_must_stay_well_first(before: Standing | None):
    assert follow(before, Evidence.GOOD, demoted=True, stayed_well=False) is Standing.RECOVERING


def test_only_what_has_been_recovering_for_long_enough_is_healthy_again():
    well_before = {b for b in BEFORE if follow(b, Evidence.GOOD, demoted=True, stayed_well=True) is Standing.HEALTHY}
    assert well_before == {Standing.RECOVERING, Standing.HEALTHY}

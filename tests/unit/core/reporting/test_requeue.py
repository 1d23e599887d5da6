"""How soon a loop reads metadata again: soon while something is displaced, but never for most of its time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.model.history.known_good import MOST_BETWEEN_READS, NOT_YET_GOOD, KnownGood
from bellwether.core.model.log_dirs import LogDir
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.undo_record import Link, UndoRecord
from bellwether.core.planning.plan import Plan
from bellwether.core.planning.preferred_election import PreferredElectionStatus
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.reporting.requeue import Requeue
from bellwether.core.signals import Reading
from testkit.simulation.memory_site import MemorySite
from testkit.simulation.operators import POLICY, Operator
from testkit.values.builders import START, decisions, entry, partition, record, returning, said, site

PACE = Requeue()


def after_reconciles(made: MemorySite, reconciles: int) -> tuple[Report, UndoRecord]:
    operator = Operator(made)
    for _ in range(reconciles):
        report = operator.reconcile()
    assert report is not None
    return report, operator.memory.record


@pytest.fixture
def demoted() -> tuple[Report, UndoRecord]:
    made = site()
    for broker in made.cluster.brokers:
        made.signals.say(broker, Reading.FAILING if broker == 1 else Reading.PASSING)
    return after_reconciles(made, 2)


@pytest.fixture
def settled() -> tuple[Report, UndoRecord]:
    made = site().well()
    return after_reconciles(made, 2)


def test_while_a_broker_is_demoted_metadata_is_read_soon_again(demoted: tuple[Report, UndoRecord]):
    assert PACE.after(demoted[0], POLICY, demoted[1], 0.1) == PACE.busy_seconds


def test_while_a_reorder_is_outstanding_metadata_is_read_soon_again(settled: tuple[Report, UndoRecord]):
    outstanding = record({partition().key: entry(outstanding=[((2, 3, 1), 2)])})
    assert PACE.after(settled[0], POLICY, outstanding, 0.1) == PACE.busy_seconds


def test_where_a_reconcile_takes_long_the_next_comes_later(demoted: tuple[Report, UndoRecord]):
    rest = PACE.after(demoted[0], POLICY, demoted[1], 4.0)
    assert 4.0 / (4.0 + rest) == PACE.busy_share


def test_however_long_reconcile_takes_next_comes_within_usual_time(demoted: tuple[Report, UndoRecord]):
    assert PACE.after(demoted[0], POLICY, demoted[1], 300.0) == PACE.idle_seconds


@pytest.mark.parametrize(("again", "wait"), [(2.5, 2.5), (600.0, PACE.busy_seconds), (None, PACE.busy_seconds)])
def test_the_next_wave_is_looked_after_when_its_time_comes(again: float | None, wait: float):
    back = decisions(back=[returning(1)])
    back = replace(back, waits={1: Refusal(Reason.RESTORING_IN_WAVES, "60 s between waves", again)})
    now = said(policy=POLICY, plan=Plan(decisions=back))
    assert PACE.after(now, POLICY, UndoRecord("c", returning={1: returning(1)})) == wait


def test_a_periodic_election_is_looked_after_when_its_time_comes():
    due = PreferredElectionStatus(3, again_seconds=12.5)
    assert PACE.after(replace(said(policy=POLICY), election=due), POLICY, UndoRecord("c")) == 12.5
    assert PACE.after(said(policy=POLICY), POLICY, UndoRecord("c")) == PACE.idle_seconds


@pytest.mark.parametrize("parts", ["log_dirs", "links"])
@pytest.mark.parametrize(("good", "wait"), [(55.0, 5.0), (0.0, MOST_BETWEEN_READS), (60.0, 45.0), (None, 45.0)])
def test_metadata_is_read_while_part_is_becoming_good(parts: str, good: float | None, wait: float):
    known = NOT_YET_GOOD.after(None, START, 60) if good is None else KnownGood(good).after(True, START, 60)
    part = LogDir(1, "/a") if parts == "log_dirs" else Link(1, 2)
    made = decisions()
    made = replace(made, **{parts: replace(getattr(made, parts), known_good={part: known})})
    now = said(policy=POLICY, plan=Plan(decisions=made))
    assert PACE.after(now, POLICY, record({partition().key: entry(outstanding=[((2, 3, 1), 2)])}), 15.0) == wait


def test_at_rest_what_a_reconcile_takes_changes_nothing(settled: tuple[Report, UndoRecord]):
    assert PACE.after(settled[0], POLICY, settled[1], 300.0) == PACE.idle_seconds

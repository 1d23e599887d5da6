"""When loads are read, which, how often, and what a turn knows meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.model.loads import LOADS_PENDING, Loads
from bellwether.core.reasons import Reason
from bellwether.core.settings.objective import Objective
from bellwether.core.settings.rebalance import Rebalance
from bellwether.ports.rebalance import RunState
from bellwether.simulation.memory_world import ManualClock
from bellwether_load.controller.lifecycle import Run
from bellwether_load.controller.load_cache import AGAIN_SECONDS, AWAITED_SECONDS, LoadCache, LoadQuery
from bellwether_load.store.store_errors import StoreDamaged, StoreError, StoreMissing, StoreUnavailable
from testkit.kubernetes import api_objects
from testkit.values.builders import after

PREFIX = "kafka.main."
WISH = LoadQuery(PREFIX, "default", Objective(), {})
"""Nothing is known of a run that has ended."""


def loads(number: int) -> Loads:
    return Loads(measured_at=after(number))


@dataclass
class Book:
    """A store's loads by name, some of which cannot be read. ``asked`` is what was tried."""

    known: dict[str, Loads | StoreError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    away: StoreError | None = None

    def finished(self, prefix: str) -> tuple[str, ...]:
        if self.away is not None:
            raise self.away
        return tuple(sorted((n for n in self.known if n.startswith(prefix)), reverse=True))

    def measured(self, name: str, objective: Objective, capacities: Mapping[int, int]) -> Loads:
        del objective, capacities
        self.asked.append(name)
        if self.away is not None:
            raise self.away
        found = self.known.get(name, StoreMissing(f"{name} is not there"))
        if isinstance(found, StoreError):
            raise found
        return found


class Reader:
    def __init__(self, **known: Loads | StoreError) -> None:
        self.clock = ManualClock()
        self.book = Book({f"{PREFIX}{name}": one for name, one in known.items()})
        self.reading = LoadCache(self.clock)
        self.reading.wanted(True)

    def step(self, latest: str = "", **terms: object) -> bool:
        """One look, as the desk takes it; whether there was something to read."""
        query = replace(WISH, latest=f"{PREFIX}{latest}" if latest else "", **terms)  # type: ignore[arg-type]
        return self.reading.refresh(lambda: self.book, query)  # type: ignore[arg-type, return-value]

    @property
    def known(self) -> Loads | None:
        return self.reading.known()


def test_the_loads_of_the_run_that_ended_last_are_read_once():
    reader = Reader(a=loads(1), b=loads(2))
    assert [reader.step("b") for _ in range(3)] == [True, False, False]
    assert (reader.known, reader.book.asked) == (loads(2), [f"{PREFIX}b"])


def test_those_of_the_next_run_take_their_place():
    reader = Reader(a=loads(1), b=loads(2))
    reader.step("a")
    assert not reader.step()  # the next run is under way
    assert reader.known == loads(1)
    assert reader.step("b")
    assert reader.known == loads(2)


def test_while_no_run_is_known_to_have_ended_the_newest_of_the_store_do():
    reader = Reader(a=loads(1), b=loads(2))
    assert [reader.step(), reader.step()] == [True, False]
    assert reader.known == loads(2)


@pytest.mark.parametrize("error", [StoreDamaged("no Parquet"), StoreMissing("gone")])
def test_damaged_or_missing_loads_are_reported_and_older_ones_kept(error: StoreError):
    reader = Reader(a=loads(1), b=error)
    reader.step("b")
    assert reader.known == loads(1)
    assert reader.reading.trouble is not None
    assert reader.reading.trouble.reason is Reason.STORE_UNAVAILABLE
    assert reader.reading.trouble.message == f"the loads for spec.demotion.capacity.maxBytesPerSecond: {error}"


def test_what_cannot_be_read_leaves_what_is_known_and_no_older_one_takes_its_place():
    reader = Reader(a=loads(1), b=loads(2), c=StoreDamaged("no Parquet"))
    reader.step("b")
    reader.step("c")
    assert reader.known == loads(2)
    assert reader.book.asked[-1] == f"{PREFIX}c"


def test_it_is_tried_again_after_a_while_and_not_before():
    reader = Reader(a=loads(1))
    reader.book.away = StoreUnavailable("no answer")
    assert reader.step("a")
    reader.clock.advance(AGAIN_SECONDS - 1)
    assert not reader.step("a")
    reader.book.away = None
    reader.clock.advance(1)
    assert reader.step("a")
    assert (reader.known, reader.reading.trouble) == (loads(1), None)
    assert not reader.step("a")


def test_a_defect_is_reported_and_ends_no_reading():
    reader = Reader()
    reader.reading.refresh(lambda: 1 / 0, WISH)  # type: ignore[arg-type, return-value]
    assert reader.reading.trouble is not None
    assert "ZeroDivisionError: division by zero" in reader.reading.trouble.message


@pytest.mark.parametrize(
    "terms", [{"objective": Objective(consumption=False)}, {"capacities": {1: 50}}, {"store": "archive"}]
)
def test_changed_objective_capacities_or_store_cause_another_reading(terms: dict[str, object]):
    reader = Reader(a=loads(1))
    reader.step("a")
    assert reader.step("", **terms)
    assert not reader.step("", **terms)


def test_another_objective_is_not_forgotten_while_the_store_is_away():
    reader = Reader(a=loads(1))
    reader.step("a")
    reader.book.away = StoreUnavailable("no answer")
    anew = {"objective": Objective(consumption=False)}
    for _ in range(3):
        assert reader.step("", **anew)
        assert reader.reading.trouble is not None
        reader.clock.advance(AGAIN_SECONDS)
    assert reader.known == loads(1)
    reader.book.away, before = None, reader.reading.shown
    assert reader.step("", **anew)
    assert (reader.reading.trouble, reader.reading.shown != before) == (None, True)
    assert set(reader.book.asked) == {f"{PREFIX}a"}


def test_a_change_of_the_loads_changes_the_shown_version():
    reader = Reader(a=loads(1), b=loads(2))
    shown = [reader.reading.shown]
    for latest in ("a", "a", "b"):
        reader.step(latest)
        shown.append(reader.reading.shown)
    assert shown[0] != shown[1] == shown[2] != shown[3]


class TestWhileNothingWasReadYet:
    def test_loads_are_awaited_for_a_moment_and_then_unknown(self):
        reader = Reader()
        assert reader.known is LOADS_PENDING
        reader.clock.advance(AWAITED_SECONDS)
        assert reader.known is None

    def test_the_moment_begins_when_they_are_first_wanted(self):
        clock = ManualClock()
        reading = LoadCache(clock)
        clock.advance(3600)
        assert reading.known() is LOADS_PENDING
        reading.wanted(True)
        clock.advance(AWAITED_SECONDS - 1)
        reading.wanted(True)
        assert reading.known() is LOADS_PENDING
        clock.advance(1)
        assert reading.known() is None

    def test_once_a_store_was_found_to_hold_none_they_are_unknown(self):
        reader = Reader()
        reader.step()
        assert (reader.known, reader.reading.trouble) == (None, None)

    def test_a_store_that_cannot_be_read_makes_them_unknown_at_once(self):
        reader = Reader()
        reader.book.away = StoreUnavailable("no answer")
        reader.step()
        assert reader.known is None


def test_unneeded_loads_are_dropped_and_read_again_on_demand():
    reader = Reader(a=loads(1))
    reader.step("a")
    assert not reader.reading.refresh(lambda: reader.book, None)  # type: ignore[arg-type, return-value]
    reader.reading.wanted(False)
    assert reader.known is LOADS_PENDING  # for whenever it asks again
    reader.reading.wanted(True)
    assert reader.step("a")
    assert reader.known == loads(1)


class TestWhatIsWished:
    def policy(self, **capacity: int) -> LeadershipPolicy:
        return api_objects.rebalanced(api_objects.policy(demotion={"capacity": capacity} if capacity else {}))

    def test_nothing_without_a_limit_by_load(self):
        assert LoadQuery.of(self.policy(), Rebalance(), Run()) is None
        assert LoadQuery.of(self.policy(maxLeaders=1), Rebalance(), Run()) is None

    @pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.RUNNING, RunState.FAILED}))
    def test_the_loads_of_a_run_that_has_ended(self, state: RunState):
        query = LoadQuery.of(self.policy(maxBytesPerSecond=1), Rebalance(), Run(state=state, run="at-1"))
        assert query is not None
        assert query.latest == f"{query.prefix}at-1"

    @pytest.mark.parametrize(
        "run", [Run(), Run(state=RunState.RUNNING, run="at-1"), Run(state=RunState.FAILED, run="at-1")]
    )
    def test_whichever_are_newest_where_none_has_ended_well(self, run: Run):
        query = LoadQuery.of(self.policy(maxBytesPerSecond=1), Rebalance(), run)
        assert query is not None
        assert query.latest == ""

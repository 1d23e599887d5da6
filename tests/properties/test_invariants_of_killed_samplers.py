"""A process that is killed at any touch of the file system: samples and rollups are whole, and there once."""

from __future__ import annotations

import contextlib
from collections import Counter
from datetime import timedelta
from pathlib import Path

from hypothesis import event, given
from hypothesis import strategies as st

from bellwether.simulation.memory_world import ManualClock
from bellwether_load.sampling.rollup_worker import SAMPLE_HOURS, RollupWorker
from bellwether_load.sampling.sampler_metrics import SamplingMetrics
from bellwether_load.store.filesystems import Store
from bellwether_load.store.rollups import hour_roller
from bellwether_load.store.rollups.hour_roller import due_hours, roll_hour
from bellwether_load.store.rollups.rollup_files import list_rollups
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.sample_files import list_rounds
from testkit.loads.crashing_store import Killed, folder, mortal
from testkit.loads.sample_rounds import MIDNIGHT, held, noted, rows

DEATHS = st.tuples(st.integers(0, 5), st.booleans())
MINUTES = st.lists(st.integers(0, 200), min_size=1, max_size=8, unique=True)


def rollups(store: Store) -> dict[str, bytes]:
    return {file.path: store.read_bytes(file.path) for file in list_rollups(store)}


def roll(directory: str, store: Store) -> None:
    """Roll up what is due, on this store."""
    opened = hour_roller.Store
    with contextlib.suppress(Killed):
        try:
            hour_roller.Store = type("Opened", (), {"open": staticmethod(lambda _uri: store)})  # type: ignore[misc, assignment]
            for due in due_hours(store, list_rounds(store)):
                roll_hour(directory, due)
            event("outlived its rollups")
        finally:
            hour_roller.Store = opened  # type: ignore[misc]


@given(MINUTES, MINUTES, st.lists(DEATHS, min_size=1, max_size=5))
def test_rollups_killed_anywhere_are_the_same_in_the_end(
    early: list[int], late: list[int], deaths: list[tuple[int, bool]]
) -> None:
    with folder() as directory, folder() as other:
        store, undisturbed = Store.open(directory), Store.open(other)
        for minutes in (early, late):
            for minute in minutes:
                sample_files.write_round(store, rows(minute), f"{minute:08x}")
                sample_files.write_round(undisturbed, rows(minute), f"{minute:08x}")
            before = rollups(store)
            for touches, after in deaths:
                roll(directory, mortal(Path(directory), touches, after=after))
                roll(other, undisturbed)
                # Of each hour the old rollup or the new one.
                assert rollups(store).items() <= {*before.items(), *rollups(undisturbed).items()}
        roll(directory, store)
        roll(other, undisturbed)
        assert rollups(store) == rollups(undisturbed)
        assert due_hours(store, list_rounds(store)) == []


@given(st.lists(DEATHS, min_size=1, max_size=8))
def test_a_round_that_was_cut_off_is_there_whole_or_not_at_all(deaths: list[tuple[int, bool]]) -> None:
    with folder() as directory:
        store = Store.open(directory)
        for minute, (touches, after) in enumerate(deaths):
            one = rows(minute)
            before = held(store)
            try:
                sample_files.write_round(mortal(Path(directory), touches, after=after), one, f"{minute:08x}")
            except Killed:
                assert held(store) in (before, before + noted(one))
            else:
                assert held(store) == before + noted(one)


@given(st.lists(DEATHS, min_size=1, max_size=4), st.integers(1, 3))
def test_removal_that_was_cut_off_takes_no_rollup_and_no_new_sample(deaths: list[tuple[int, bool]], older: int) -> None:
    with folder() as directory:
        store = Store.open(directory)
        for hour in range(SAMPLE_HOURS + older):
            sample_files.write_round(store, rows(60 * hour, 2), "0a1b2c3d")
        roll(directory, store)
        whole = rollups(store)
        newest: Counter[object] = Counter()
        for hour in range(older, SAMPLE_HOURS + older):
            newest += Counter(noted(rows(60 * hour, 2)))
        clock = ManualClock(MIDNIGHT + timedelta(days=9))
        for touches, after in deaths:
            dying = mortal(Path(directory), touches, after=after)
            with contextlib.suppress(Killed):
                RollupWorker(dying, directory, 9, clock, SamplingMetrics()).once()
            assert rollups(store) == whole
            assert newest <= Counter(held(store))
        RollupWorker(store, directory, 9, clock, SamplingMetrics()).once()
        assert rollups(store) == whole
        assert Counter(held(store)) == newest

"""A process that is killed at any touch of the file system, again and again: no sample is lost or counted twice."""

from __future__ import annotations

import contextlib
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import event, given
from hypothesis import strategies as st

from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples import sample_files
from bellwether_load.store.samples.compaction import LINGER, Compactor
from bellwether_load.store.samples.manifest import manifest_path
from bellwether_load.store.samples.retention import expire
from testkit.loads.crashing_store import Killed, folder, mortal
from testkit.loads.sample_rounds import CLUSTER, DAY, MIDNIGHT, held, named, rows, told


def ignore(path: object, why: str) -> None:
    """Nothing foreign is there."""


def later(store: Store) -> datetime:
    """After the day, and long after whatever was written."""
    times = [file.modified for file in store.list() if file.modified is not None]
    return max([MIDNIGHT + timedelta(days=1, hours=1), *times]) + LINGER


DEATHS = st.tuples(st.integers(0, 12), st.booleans())


@given(st.lists(DEATHS, min_size=1, max_size=6), st.sets(st.integers(0, 200), min_size=2, max_size=12))
def test_compaction_killed_anywhere_keeps_every_sample_once(deaths: list[tuple[int, bool]], minutes: set[int]) -> None:
    with folder() as directory:
        store = Store.open(directory)
        wanted: Counter[object] = Counter()
        for minute in minutes:
            sample_files.write_round(store, rows(minute), f"{minute:08x}")
            wanted += Counter(told(rows(minute)))
        for touches, after in deaths:
            dying = mortal(Path(directory), touches, after=after)
            with contextlib.suppress(Killed):
                Compactor(dying, CLUSTER, ignore).run(later(store))
                event("outlived its compaction")
            assert Counter(held(store)) == wanted
            # Whoever goes by a manifest, however old, finds each sample: files that it names stay.
            assert Counter(named(store)) in (wanted, Counter())
        for _ in range(3):
            Compactor(store, CLUSTER, ignore).run(later(store))
            assert Counter(held(store)) == wanted
            assert Counter(named(store)) == wanted
        assert len(store.list()) == 1


STEPS = st.sampled_from(["sample", "compact", "killed", "suspend", "resume"])


@given(st.lists(st.tuples(STEPS, st.integers(0, 12), st.booleans()), max_size=12))
def test_after_compaction_manifest_names_every_sample_once_whatever_happened(
    steps: list[tuple[str, int, bool]],
) -> None:
    with folder() as directory:
        store = Store.open(directory)
        sample_files.write_round(store, rows(0), f"{0:08x}")
        wanted, suspended = Counter(told(rows(0))), b""
        for number, (step, touches, after) in enumerate(steps, 1):
            if step == "sample":
                sample_files.write_round(store, rows(number), f"{number:08x}")
                wanted += Counter(told(rows(number)))
            elif step == "killed":
                with contextlib.suppress(Killed):
                    Compactor(mortal(Path(directory), touches, after=after), CLUSTER, ignore).run(later(store))
            elif step == "compact":
                Compactor(store, CLUSTER, ignore).run(later(store) if after else MIDNIGHT + timedelta(minutes=70))
                assert Counter(named(store)) == wanted
            elif store.exists(manifest_path(DAY)) and step == "suspend":
                suspended = store.read_bytes(manifest_path(DAY))
            elif step == "resume" and suspended:  # another process writes what it found long ago
                store.write_bytes(manifest_path(DAY), suspended)
            assert Counter(held(store)) == wanted
        Compactor(store, CLUSTER, ignore).run(later(store))
        assert Counter(named(store)) == wanted


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
                assert held(store) in (before, before + told(one))
            else:
                assert held(store) == before + told(one)


@given(st.integers(0, 6), st.booleans())
def test_retention_that_was_cut_off_takes_no_day_that_is_to_stay(touches: int, after: bool) -> None:
    with folder() as directory:
        store = Store.open(directory)
        for minute in (0, 1, 1440, 1441):
            sample_files.write_round(store, rows(minute), f"{minute:08x}")
        tomorrow = DAY + timedelta(days=1)
        stays = held(store, tomorrow)
        with contextlib.suppress(Killed):
            expire(mortal(Path(directory), touches, after=after), 1, tomorrow, ignore)
        assert held(store, tomorrow) == stays
        expire(store, 1, tomorrow, ignore)
        assert sample_files.days(store) == (tomorrow,)

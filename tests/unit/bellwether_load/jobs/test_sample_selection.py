from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from bellwether.ports.errors import Terminal
from bellwether_load.jobs.sample_selection import Choice, Period, choose, moment
from bellwether_load.store.filesystems import Store
from bellwether_load.store.samples.rows import Rows
from bellwether_load.store.samples.sample_files import write_round
from testkit.loads.load_histories import steady
from testkit.loads.sample_files import rounds, write_compacted, write_rounds

# The day of testkit.loads.load_histories.MIDNIGHT.
DAY = date(2026, 11, 20)
FOLDER = "samples/date=2026-11-20"
HISTORIES = {("apples", 0): steady(3), ("apples", 1): steady(3)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path))


def on(day: int, *, cluster_id: str = "one") -> Rows:
    """A round at noon of a day of November 2026."""
    (rows,) = rounds({("apples", 0): steady(1)}, cluster_id)
    return Rows(
        cluster_id,
        datetime(2026, 11, day, 12, tzinfo=UTC),
        *(
            getattr(rows, n)
            for n in ("topic", "topic_id", "partition", "leader", "leader_epoch", "end_offset", "log_bytes", "consume")
        ),
    )


def chosen(store: Store, period: Period, cluster_id: str | None = None) -> Choice:
    """The choice on the day after the newest samples of these tests."""
    return choose(store, period, DAY + timedelta(days=1), cluster_id)


def days(*numbers: int) -> tuple[date, ...]:
    return tuple(date(2026, 11, n) for n in numbers)


def seen(choice: Choice) -> list[str]:
    """The days of the files that were chosen."""
    return [source.path.split("/")[1].removeprefix("date=2026-11-") for source in choice.sources]


def test_a_store_without_samples_gives_no_files_and_no_complaint(store: Store):
    choice = chosen(store, Period())
    assert (choice.sources, choice.days, choice.missing, choice.skipped) == ((), (), (), ())


def test_rounds_and_compacted_files_are_listed_with_their_rows(store: Store):
    path = write_compacted(store, HISTORIES)
    single = write_rounds(store, {("apples", 0): steady(1, first=700)})
    found = {source.path: source for source in chosen(store, Period()).sources}
    assert set(found) == {path, *single}
    assert (found[path].compacted, found[path].rows) == (True, 6)
    assert (found[single[0]].compacted, found[single[0]].rows) == (False, 1)


def test_rounds_that_a_compacted_file_holds_are_not_read_again(store: Store):
    write_rounds(store, HISTORIES)
    path = write_compacted(store, HISTORIES)
    assert [source.path for source in chosen(store, Period()).sources] == [path]


def test_the_cluster_is_that_of_the_files(store: Store):
    write_round(store, on(20, cluster_id="theirs"), "0a1b2c3d")
    assert chosen(store, Period()).cluster_id == "theirs"


def test_several_clusters_are_refused_by_name(store: Store):
    write_round(store, on(20, cluster_id="one"), "0a1b2c3d")
    write_round(store, on(21, cluster_id="two"), "0a1b2c3d")
    with pytest.raises(
        Terminal, match=r"several Kafka clusters: one \(samples/.*\), two \(.*\)\. Select one with --cluster"
    ):
        chosen(store, Period())


def test_with_a_cluster_named_files_of_others_are_skipped_by_name(store: Store):
    write_round(store, on(20, cluster_id="one"), "0a1b2c3d")
    write_round(store, on(20, cluster_id="two"), "ffffffff")
    choice = chosen(store, Period(), "two")
    assert [source.path for source in choice.sources] == [f"{FOLDER}/120000-ffffffff.parquet"]
    (said,) = choice.skipped
    assert "120000-0a1b2c3d.parquet" in said
    assert "of Kafka cluster one, not of two" in said


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "is damaged or not a Parquet file"),
        (lambda path: path.write_bytes(b""), "is damaged or not a Parquet file"),
        (lambda path: path.write_text("not at all"), "is damaged or not a Parquet file"),
        (lambda path: path.rename(path.with_name("notes.parquet")), "does not have the name of a sample file"),
    ],
)
def test_a_file_that_is_no_whole_file_of_samples_is_skipped_by_name(
    store: Store, tmp_path: Path, spoil: Callable[[Path], object], word: str
):
    good, bad = write_rounds(store, {("apples", 0): steady(2)})
    spoil(tmp_path / bad)
    choice = chosen(store, Period())
    assert [source.path for source in choice.sources] == [good]
    (said,) = choice.skipped
    assert word in said


class TestDays:
    @pytest.fixture(autouse=True)
    def rounds_on_some_days(self, store: Store) -> None:
        for day in (10, 17, 18, 20):
            write_round(store, on(day), "0a1b2c3d")

    def test_by_default_it_is_a_week_that_ends_with_the_newest_day(self, store: Store):
        choice = chosen(store, Period())
        assert choice.days == days(14, 15, 16, 17, 18, 19, 20)
        assert seen(choice) == ["17", "18", "20"]
        assert choice.missing == days(14, 15, 16, 19)

    def test_days_before_the_first_sample_are_missed_only_where_they_were_asked_for(self, tmp_path: Path):
        young = Store.open(str(tmp_path / "young"))
        write_round(young, on(19), "0a1b2c3d")
        write_round(young, on(20), "0a1b2c3d")
        assert chosen(young, Period()).missing == ()
        assert chosen(young, Period(count=3)).missing == days(18)
        assert chosen(young, Period(start=date(2026, 11, 18))).missing == days(18)

    def test_so_many_days_end_with_the_newest(self, store: Store):
        assert seen(chosen(store, Period(count=1))) == ["20"]
        assert seen(chosen(store, Period(count=3))) == ["18", "20"]

    def test_so_many_days_may_begin_or_end_elsewhere(self, store: Store):
        assert chosen(store, Period(start=date(2026, 11, 17), count=2)).days == days(17, 18)
        assert chosen(store, Period(end=date(2026, 11, 18), count=2)).days == days(17, 18)

    def test_from_and_to_name_whole_days(self, store: Store):
        choice = chosen(store, Period(date(2026, 11, 17), date(2026, 11, 18)))
        assert seen(choice) == ["17", "18"]
        assert choice.window.end is not None
        assert choice.window.start is not None
        assert choice.window.end - choice.window.start == 2 * 86_400

    def test_to_alone_means_the_week_before(self, store: Store):
        assert chosen(store, Period(end=date(2026, 11, 18))).days == days(12, 13, 14, 15, 16, 17, 18)

    def test_from_alone_reaches_to_the_newest(self, store: Store):
        assert chosen(store, Period(start=date(2026, 11, 18))).days == days(18, 19, 20)

    def test_moments_cut_days(self, store: Store):
        noon, one = datetime(2026, 11, 18, 12, tzinfo=UTC), datetime(2026, 11, 18, 13, tzinfo=UTC)
        choice = chosen(store, Period(noon, one))
        assert choice.days == days(18)
        assert (choice.window.start, choice.window.end) == (int(noon.timestamp()), int(one.timestamp()))

    def test_a_moment_at_midnight_does_not_reach_into_the_next_day(self, store: Store):
        assert chosen(store, Period(date(2026, 11, 17), datetime(2026, 11, 18, tzinfo=UTC))).days == days(17)

    def test_a_period_without_samples_is_all_missing(self, store: Store):
        choice = chosen(store, Period(date(2026, 12, 1), date(2026, 12, 2)))
        assert choice.sources == ()
        assert choice.missing == (date(2026, 12, 1), date(2026, 12, 2))

    def test_from_after_the_newest_day_gives_nothing(self, store: Store):
        assert chosen(store, Period(start=date(2026, 11, 25))).sources == ()

    def test_a_day_of_which_nothing_can_be_read_is_missing_too(self, store: Store, tmp_path: Path):
        (tmp_path / "samples/date=2026-11-20/120000-0a1b2c3d.parquet").write_text("no")
        choice = chosen(store, Period(count=1))
        assert (choice.sources, choice.missing, len(choice.skipped)) == ((), days(20), 1)


@pytest.mark.parametrize(
    ("period", "word"),
    [
        ({"count": 0}, "--days must be at least 1, and is 0"),
        ({"start": DAY, "end": DAY, "count": 1}, "cannot be used together"),
        ({"start": DAY, "end": DAY - timedelta(days=1)}, "--from 2026-11-20 is not before --to 2026-11-19"),
        ({"start": datetime(2026, 11, 20, tzinfo=UTC), "end": datetime(2026, 11, 20, tzinfo=UTC)}, "is not before"),
    ],
)
def test_a_period_that_makes_no_sense_is_refused(period: dict[str, date], word: str):
    with pytest.raises(Terminal, match=word):
        Period(**period)  # type: ignore[arg-type]


def test_a_single_day_is_a_period():
    assert Period(DAY, DAY).end == DAY


def test_a_day_and_moments_are_read():
    assert moment("2026-11-21") == date(2026, 11, 21)
    assert not isinstance(moment("2026-11-21"), datetime)
    assert moment("2026-11-21T12:00:00") == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert moment("2026-11-21T12:00:00+02:00") == datetime(2026, 11, 21, 12, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "21/11/2026", "2026-11-21T25:00:00"])
def test_what_is_no_moment_is_refused(text: str):
    with pytest.raises(ValueError, match=r".+"):
        moment(text)


def test_a_round_dated_a_year_ahead_does_not_hide_the_history(store: Store):
    for day in (18, 19, 20):
        write_round(store, on(day), "0a1b2c3d")
    write_round(store, replace(on(20), at=datetime(2027, 11, 20, 12, tzinfo=UTC)), "0a1b2c3d")
    choice = chosen(store, Period(count=2))
    assert (seen(choice), choice.days) == (["19", "20"], days(19, 20))
    (said,) = choice.skipped
    assert said.endswith("samples/date=2027-11-20: is in the future, so a clock was wrong: move it out of the store")


def test_tomorrow_counts_since_clocks_differ(store: Store):
    write_round(store, on(20), "0a1b2c3d")
    write_round(store, on(22), "0a1b2c3d")
    choice = chosen(store, Period(count=3))
    assert (seen(choice), choice.skipped) == (["20", "22"], ())

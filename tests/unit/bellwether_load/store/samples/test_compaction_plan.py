from datetime import UTC, date, datetime, timedelta

from bellwether_load.store.samples import compaction_plan as fileplans

DAY = date(2026, 11, 21)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)


def rounds(*minutes: int) -> dict[str, frozenset[str]]:
    found = {}
    for minute in minutes:
        name = f"{minute // 60:02}{minute % 60:02}00-{minute:08x}"
        found[f"{name}.parquet"] = frozenset([name])
    return found


def compacted(*minutes: int) -> dict[str, frozenset[str]]:
    held = frozenset().union(*rounds(*minutes).values())
    return {f"compacted-{min(held)[:4]}.parquet": held}


def merges(files: dict[str, frozenset[str]], now: timedelta) -> list[list[str]]:
    return [[path[:4] for path in group] for group in fileplans.merges(DAY, files, MIDNIGHT + now)]


def test_an_hour_under_way_stays_as_it_is() -> None:
    assert merges(rounds(*range(30)), timedelta(minutes=30)) == []


def test_an_hours_rounds_become_one_file_once_late_ones_have_come() -> None:
    files = rounds(*range(58, 62))
    assert merges(files, timedelta(minutes=64)) == []
    assert merges(files, timedelta(minutes=65)) == [["0058", "0059"]]


def test_hours_that_were_missed_are_made_up_for_one_by_one() -> None:
    assert merges(rounds(0, 1, 60, 61, 120, 121), timedelta(hours=2, minutes=30)) == [
        ["0000", "0001"],
        ["0100", "0101"],
    ]


def test_a_single_round_waits_for_the_end_of_the_day() -> None:
    files = compacted(0, 1) | rounds(30)
    assert merges(files, timedelta(hours=5)) == []
    assert merges(files, timedelta(hours=24, minutes=4)) == []
    assert merges(files, timedelta(hours=24, minutes=5)) == [["comp", "0030"]]


def test_a_day_that_is_over_becomes_one_file_and_is_done() -> None:
    hours: dict[str, frozenset[str]] = {}
    for hour in range(24):
        hours |= compacted(60 * hour, 60 * hour + 1)
    assert [len(group) for group in merges(hours, timedelta(hours=30))] == [24]
    assert merges(compacted(*range(1440)), timedelta(hours=30)) == []
    assert merges({}, timedelta(hours=30)) == []


def test_a_day_of_rounds_alone_becomes_a_day_of_hours_first() -> None:
    groups = merges(rounds(*range(1440)), timedelta(hours=30))
    assert [len(group) for group in groups] == [60] * 24


def test_no_more_files_are_merged_at_once_than_can_be_held() -> None:
    every_second = {
        f"000{n // 60}{n % 60:02}-{n:08x}.parquet": frozenset([f"000{n // 60}{n % 60:02}-{n:08x}"]) for n in range(200)
    }
    assert [len(group) for group in merges(every_second, timedelta(hours=2))] == [64, 64, 64, 8]


def test_many_files_of_no_hour_are_merged_in_turns() -> None:
    many = {f"c{n:03}": frozenset([f"{n // 60:02}{n % 60:02}00-0000000{k}" for k in range(2)]) for n in range(100)}
    assert [len(group) for group in merges(many, timedelta(hours=30))] == [64, 36]


def days(*numbers: int) -> list[date]:
    return [DAY + timedelta(days=number) for number in numbers]


def test_the_newest_days_stay() -> None:
    assert fileplans.expired(days(-3, -2, -1, 0), 2, DAY) == days(-3, -2)
    assert fileplans.expired(days(-1, 0), 14, DAY) == []


def test_days_without_samples_do_not_count_against_those_that_have_some() -> None:
    assert fileplans.expired(days(-400, -300, 0), 3, DAY) == []


def test_a_clock_that_runs_ahead_for_a_moment_does_not_take_the_history_along() -> None:
    # It has written one day of the year after next; what it removes at that moment is one day.
    ahead = DAY + timedelta(days=500)
    assert fileplans.expired([*days(-2, -1, 0), ahead], 3, ahead) == days(-2)
    # Set right again, it counts that day for nothing, and names it.
    assert fileplans.expired([*days(-1, 0), ahead], 2, DAY) == []
    assert fileplans.astray([*days(-1, 0, 1), ahead], DAY) == [ahead]

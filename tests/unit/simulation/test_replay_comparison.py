from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bellwether.recording.recorded_status import RecordedStatus
from bellwether.simulation.replay_comparison import differences
from testkit.messages import assert_wording

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
WELL, SICK, GONE = (
    RecordedStatus("Healthy", "SignalsPassing", False),
    RecordedStatus("Sick", "StorageSlow", False),
    RecordedStatus("Sick", "StorageSlow", True),
)
UNKNOWN = RecordedStatus("Unknown", "NoEvidence", False)

Spoken = list[tuple[datetime, dict[int, RecordedStatus]]]


def changes(*statuses: tuple[float, RecordedStatus], broker: int = 1) -> Spoken:
    return [(T0 + timedelta(seconds=at), {broker: status}) for at, status in statuses]


def texts(said: Spoken, replayed: Spoken) -> list[str]:
    return [str(d) for d in differences(said, replayed)]


def test_equal_statuses_at_about_the_same_time_are_no_difference():
    assert texts(changes((0, WELL), (10, SICK), (12, GONE)), changes((0, WELL), (8.5, SICK), (10, GONE))) == []


def test_a_verdict_of_the_operator_alone_is_reported():
    assert_wording(texts(changes((0, WELL), (10, SICK), (12, GONE)), changes((0, WELL), (10, SICK))))


def test_a_verdict_of_the_replay_alone_is_reported():
    assert_wording(texts(changes((0, WELL)), changes((0, WELL), (10, SICK))))


def test_a_verdict_at_another_time_is_reported():
    said, late = changes((0, WELL), (10, SICK)), changes((0, WELL), (20, SICK))
    assert_wording(texts(said, late), texts(late, said))


def test_a_verdict_from_before_the_recording_has_no_time():
    assert texts(changes((0, SICK)), changes((30, SICK))) == []


def test_a_replay_must_first_hear_of_each_prober_too():
    assert texts(changes((0, WELL)), changes((0, UNKNOWN), (2, WELL))) == []
    assert_wording(texts(changes((0, WELL)), changes((0, UNKNOWN), (2, WELL), (9, UNKNOWN))))


def test_a_word_that_is_repeated_is_one_word():
    assert texts(changes((0, WELL), (5, WELL), (10, SICK)), changes((0, WELL), (10, SICK))) == []


def test_brokers_are_compared_one_by_one():
    said = [*changes((0, WELL)), (T0, {1: WELL, 2: SICK})]
    assert_wording(texts(said, [(T0, {1: WELL, 2: WELL})]))


def test_a_word_between_two_looks_is_no_difference():
    brief = changes((0, WELL), (10, UNKNOWN), (11, SICK))
    assert texts(brief, changes((0, WELL), (11, SICK))) == texts(changes((0, WELL), (11, SICK)), brief) == []
    longer = changes((0, WELL), (9, UNKNOWN), (11, SICK))
    assert len(texts(longer, changes((0, WELL), (11, SICK)))) == 1

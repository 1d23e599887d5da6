from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bellwether.recording.replay.recorded_status import Word
from bellwether.recording.replay.replay_comparison import differences

T0 = datetime(2026, 11, 21, 9, tzinfo=UTC)
WELL, SICK, GONE = (
    Word("Healthy", "SignalsPassing", False),
    Word("Sick", "StorageSlow", False),
    Word("Sick", "StorageSlow", True),
)
UNKNOWN = Word("Unknown", "NoEvidence", False)

Spoken = list[tuple[datetime, dict[int, Word]]]


def spoken(*words: tuple[float, Word], broker: int = 1) -> Spoken:
    return [(T0 + timedelta(seconds=at), {broker: word}) for at, word in words]


def texts(said: Spoken, replayed: Spoken) -> list[str]:
    return [str(d) for d in differences(said, replayed)]


def test_the_same_words_at_about_the_same_time_are_no_difference():
    assert texts(spoken((0, WELL), (10, SICK), (12, GONE)), spoken((0, WELL), (8.5, SICK), (10, GONE))) == []


def test_a_word_that_only_the_operator_said_is_told():
    assert texts(spoken((0, WELL), (10, SICK), (12, GONE)), spoken((0, WELL), (10, SICK))) == [
        "09:00:12 broker 1 was called Sick StorageSlow, demoted; the replay does not"
    ]


def test_a_word_that_only_the_replay_says_is_told():
    assert texts(spoken((0, WELL)), spoken((0, WELL), (10, SICK))) == [
        "09:00:10 broker 1 is called Sick StorageSlow; the operator did not"
    ]


def test_a_word_that_comes_much_later_or_earlier_is_told():
    said, late = spoken((0, WELL), (10, SICK)), spoken((0, WELL), (20, SICK))
    assert texts(said, late) == ["09:00:20 broker 1 is called Sick StorageSlow 10.0 s later than then"]
    assert texts(late, said) == ["09:00:10 broker 1 is called Sick StorageSlow 10.0 s earlier than then"]


def test_what_stood_when_the_recording_began_has_no_time():
    assert texts(spoken((0, SICK)), spoken((30, SICK))) == []


def test_a_replay_must_first_hear_of_each_prober_too():
    assert texts(spoken((0, WELL)), spoken((0, UNKNOWN), (2, WELL))) == []
    assert texts(spoken((0, WELL)), spoken((0, UNKNOWN), (2, WELL), (9, UNKNOWN))) == [
        "09:00:09 broker 1 is called Unknown NoEvidence; the operator did not"
    ]


def test_a_word_that_is_repeated_is_one_word():
    assert texts(spoken((0, WELL), (5, WELL), (10, SICK)), spoken((0, WELL), (10, SICK))) == []


def test_brokers_are_compared_one_by_one():
    said = [*spoken((0, WELL)), (T0, {1: WELL, 2: SICK})]
    assert texts(said, [(T0, {1: WELL, 2: WELL})]) == [
        "09:00:00 broker 2 was called Sick StorageSlow; the replay does not",
        "09:00:00 broker 2 is called Healthy SignalsPassing; the operator did not",
    ]


def test_a_word_between_two_looks_is_no_difference():
    brief = spoken((0, WELL), (10, UNKNOWN), (11, SICK))
    assert texts(brief, spoken((0, WELL), (11, SICK))) == texts(spoken((0, WELL), (11, SICK)), brief) == []
    longer = spoken((0, WELL), (9, UNKNOWN), (11, SICK))
    assert len(texts(longer, spoken((0, WELL), (11, SICK)))) == 1

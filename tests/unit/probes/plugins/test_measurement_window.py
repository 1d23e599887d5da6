from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.api.v1alpha1.status.signal_entries import entry_of, read_entries
from bellwether.core.settings.source_settings import Plugin
from bellwether.core.signals import Reading, Signal
from bellwether.probes.plugins.measurement_window import (
    FIGURES_NEWS_SECONDS,
    MESSAGE_LIMIT,
    WORDS_NEWS_SECONDS,
    MeasurementWindow,
    Unsound,
    differs,
    vetted,
)
from bellwether.probes.plugins.plugin_api import Measurement

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SETTINGS = Plugin(type="Kind", failure_threshold=3, success_threshold=2)
GOOD, BAD, NOTHING = Measurement(True, "well"), Measurement(False, "sick", 7.0), Measurement(None, "no idea")


def after(*seen: Measurement, start: MeasurementWindow | None = None) -> MeasurementWindow:
    tally = start or MeasurementWindow()
    for number, one in enumerate(seen):
        tally = tally.after(one, SETTINGS, NOW + timedelta(seconds=number))
    return tally


def reading(tally: MeasurementWindow) -> Reading | None:
    signal = tally.signal(1, "Kind", "here")
    return None if signal is None else signal.reading


def test_only_enough_failures_in_a_row_fail() -> None:
    assert reading(after(BAD, BAD)) is None
    assert reading(after(BAD, BAD, BAD)) is Reading.FAILING
    assert reading(after(BAD, BAD, GOOD, BAD, BAD)) is None


def test_passing_broker_turns_and_returns_only_by_thresholds() -> None:
    well = after(GOOD, GOOD)
    assert reading(after(BAD, BAD, start=well)) is Reading.PASSING
    sick = after(BAD, BAD, BAD, start=well)
    assert reading(after(GOOD, start=sick)) is Reading.FAILING
    assert reading(after(GOOD, GOOD, start=sick)) is Reading.PASSING


def test_message_and_value_are_of_measurement_that_agrees_with_reading() -> None:
    signal = after(BAD, BAD, BAD, GOOD).signal(1, "Kind", "here")
    assert signal is not None
    assert (signal.reading, signal.message, signal.value) == (Reading.FAILING, "sick", 7.0)


def test_lack_of_evidence_makes_unknown_only_when_it_lasts() -> None:
    sick = after(BAD, BAD, BAD)
    assert reading(after(NOTHING, NOTHING, start=sick)) is Reading.FAILING
    lost = after(NOTHING, NOTHING, NOTHING, start=sick)
    assert reading(lost) is Reading.UNKNOWN
    signal = lost.signal(1, "Kind", "here")
    assert signal is not None
    assert signal.message == "no evidence: no idea"


def test_lack_of_evidence_between_failures_does_not_hide_them() -> None:
    assert reading(after(BAD, NOTHING, BAD, NOTHING, BAD)) is Reading.FAILING


def test_unknown_keeps_the_time_since_when_it_is_so() -> None:
    first = after(*[NOTHING] * 3, start=after(GOOD, GOOD))
    assert first.after(NOTHING, SETTINGS, NOW + timedelta(hours=1)).streak.since == first.streak.since


@pytest.mark.parametrize(
    "result",
    [
        None,
        True,
        (True, "well", 1.0),
        {"ok": False},
        Measurement(1),  # type: ignore[arg-type]
        Measurement("False"),  # type: ignore[arg-type]
        Measurement(False, b"bytes"),  # type: ignore[arg-type]
        Measurement(False, "", float("nan")),
        Measurement(False, "", float("-inf")),
        Measurement(False, "", True),
        Measurement(False, "", "12"),  # type: ignore[arg-type]
        Measurement(False, "", 10**400),
    ],
)
def test_what_is_no_measurement_is_refused(result: object) -> None:
    with pytest.raises(Unsound):
        vetted(result)


def test_a_message_of_ten_megabytes_is_cut() -> None:
    assert len(vetted(Measurement(False, "x" * 10_000_000)).message) == MESSAGE_LIMIT


@given(st.text(alphabet=st.characters(), max_size=700), st.floats(allow_nan=False, allow_infinity=False) | st.none())
def test_entry_can_be_read_back_whatever_measurer_returns(text: str, value: float | None) -> None:
    seen = vetted(Measurement(False, text, value))
    signal = after(seen, seen, seen).signal(1, "Kind", "here")
    assert signal is not None
    body = entry_of(signal, "uid", 1, "lease").body()
    good, bad = read_entries([body])
    assert (len(good), bad) == (1, ())
    assert "\n" not in good[0].message
    good[0].message.encode()


TOLD = Signal(1, "Kind", "here", Reading.PASSING, NOW, message="valid for 29.5 days")


def news(seconds: float, **changed: Any) -> bool:
    return differs(replace(TOLD, **changed), TOLD, seconds)


def test_reading_is_news_at_once_and_same_word_never() -> None:
    assert differs(TOLD, None, 0)
    assert news(0, reading=Reading.FAILING)
    assert not news(1e9)


def test_changed_words_are_rare_news_and_changed_figures_rarer() -> None:
    assert not news(WORDS_NEWS_SECONDS - 1, message="valid for ever")
    assert news(WORDS_NEWS_SECONDS, message="valid for ever")
    assert not news(FIGURES_NEWS_SECONDS - 1, message="valid for 28.1 days")
    assert news(FIGURES_NEWS_SECONDS, message="valid for 28.1 days")

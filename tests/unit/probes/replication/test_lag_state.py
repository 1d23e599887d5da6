"""From looks to a signal: counting, words, and what is news."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.core.signals import Reading, Signal
from bellwether.probes.replication.lag_state import LAG_NEWS_SECONDS, RETURN_SECONDS, LagMeasurement, Lags
from testkit.messages import assert_wording

SETTINGS = ReplicationLag()
START = datetime(2026, 1, 1, tzinfo=UTC)
WELL = LagMeasurement(followed=340)
LATE = LagMeasurement(
    followed=340,
    worst_seconds=34.4,
    lagging=120,
    in_isr=118,
    outside=2,
    worst=(TopicPartition("orders", 3), TopicPartition("orders", 7)),
    behind=(1, 2),
    blamed=True,
)
SILENT = LagMeasurement(problem="10.0.0.3:9092: connected, but no answer in time (Request)")


def after(*looks: LagMeasurement, start: Lags | None = None, period: float = 5.0) -> Lags:
    known = start or Lags()
    for number, measurement in enumerate(looks):
        known = known.after(measurement, SETTINGS, START + timedelta(seconds=number * period), number * period)
    return known


def signal(lags: Lags) -> Signal:
    said = lags.signal(3, "replication")
    assert said is not None
    return said


class TestCounting:
    def test_nothing_is_said_before_the_success_threshold(self) -> None:
        assert after(WELL, WELL).signal(3, "replication") is None
        assert signal(after(WELL, WELL, WELL)).reading is Reading.PASSING

    def test_lagging_broker_fails_and_passes_by_its_thresholds(self) -> None:
        well = after(*[WELL] * 3)
        assert signal(after(LATE, LATE, start=well)).reading is Reading.PASSING
        sick = after(LATE, LATE, LATE, start=well)
        assert signal(sick).reading is Reading.FAILING
        assert signal(after(WELL, WELL, start=sick)).reading is Reading.FAILING
        assert signal(after(WELL, WELL, WELL, start=sick)).reading is Reading.PASSING

    def test_silent_broker_keeps_its_reading_until_unknown(self) -> None:
        sick = after(*[LATE] * 3)
        assert signal(after(SILENT, SILENT, start=sick)).reading is Reading.FAILING
        lost = signal(after(*[SILENT] * 3, start=sick))
        assert (lost.reading, lost.value) == (Reading.UNKNOWN, None)
        assert_wording(lost.message)

    def test_single_silence_neither_adds_to_streak_nor_ends_it(self) -> None:
        assert signal(after(WELL, WELL, WELL, LATE, SILENT, LATE, SILENT, LATE)).reading is Reading.FAILING

    def test_a_lag_that_is_not_blamed_passes(self) -> None:
        excused = replace(LATE, blamed=False, behind=(1,), slow_leaders=(1,))
        assert signal(after(*[excused] * 10)).reading is Reading.PASSING


class TestWords:
    def test_a_lagging_broker_is_posted_with_its_figures(self) -> None:
        said = signal(after(*[LATE] * 3))
        assert_wording(said.message)
        assert (said.type, said.source, said.value) == ("ReplicationLag", "replication", 34.4)

    def test_out_of_the_isr_nothing_is_held_back(self) -> None:
        said = signal(after(*[replace(LATE, in_isr=0, lagging=1, worst=LATE.worst[:1], behind=(1,))] * 3))
        assert_wording(said.message)

    def test_slow_leader_is_named_in_messages_of_both_sides(self) -> None:
        excused = replace(LATE, blamed=False, behind=(1,), slow_leaders=(1,))
        assert_wording(signal(after(*[excused] * 3)).message)
        leader = signal(after(*[replace(WELL, trailed_by=(2, 3))] * 3))
        assert_wording(leader.message)

    def test_a_lag_behind_one_leader_is_posted_without_blame(self) -> None:
        alone = replace(LATE, blamed=False, behind=(1,))
        assert_wording(signal(after(*[alone] * 3)).message)

    def test_recovery_is_counted_aloud(self) -> None:
        sick = after(*[LATE] * 3)
        assert_wording(signal(after(WELL, WELL, start=sick)).message)
        lost = after(*[SILENT] * 3, start=sick)
        assert signal(after(WELL, start=lost)).message == "measured again"

    def test_many_brokers_are_not_all_listed(self) -> None:
        many = replace(WELL, trailed_by=tuple(range(10, 900)))
        assert_wording(signal(after(*[many] * 3)).message)

    def test_a_broker_that_follows_nothing_says_so(self) -> None:
        assert signal(after(*[LagMeasurement()] * 3)).message == "follows no partition"


class TestLinks:
    """Two brokers that do not reach each other, by two rounds in a row."""

    APART = replace(LATE, blamed=False, behind=(2,), broken_link_to=2)

    def test_the_other_end_is_named_after_two_rounds_each_way(self) -> None:
        well = after(*[WELL] * 3)
        assert signal(after(self.APART, start=well)).broken_link_to is None
        apart = after(self.APART, self.APART, start=well)
        said = signal(apart)
        assert (said.reading, said.broken_link_to) == (Reading.PASSING, 2)
        assert_wording(said.message)
        assert signal(after(WELL, start=apart)).broken_link_to == 2
        assert signal(after(WELL, WELL, start=apart)).broken_link_to is None
        assert signal(after(WELL, self.APART, WELL, start=apart)).broken_link_to == 2, "two in a row"

    def test_it_is_news_at_once(self) -> None:
        well = after(*[WELL] * 3)
        apart = after(self.APART, self.APART, start=well)
        assert apart.differs(well, 0, SETTINGS)
        settled = after(self.APART, start=apart)
        assert not after(self.APART, start=settled).differs(settled, 0, SETTINGS)
        assert after(WELL, WELL, start=apart).differs(apart, 0, SETTINGS)

    def test_unmeasured_broker_names_no_other_end(self) -> None:
        apart = after(self.APART, self.APART, start=after(*[WELL] * 3))
        assert signal(after(SILENT, SILENT, start=apart)).broken_link_to == 2
        assert signal(after(*[SILENT] * 3, start=apart)).broken_link_to is None


class TestNews:
    def test_the_first_word_is_news(self) -> None:
        assert after(*[WELL] * 3).differs(None, 0, SETTINGS)

    def test_a_changed_reading_is_news_at_once(self) -> None:
        well = after(*[WELL] * 3)
        assert after(*[LATE] * 3, start=well).differs(well, 0, SETTINGS)

    def test_a_recovery_of_any_length_is_posted_once(self) -> None:

        class Quick(ReplicationLag):
            success_threshold = 1

        quick = Quick()
        sick = after(*[LATE] * 3)
        back = sick.after(WELL, quick, START, 20.0)
        assert back.differs(sick, 0, quick)
        known = back
        for _ in range(10):
            known = known.after(WELL, quick, START, 25.0)
            assert not known.differs(back, 3600, quick)

    def test_a_settled_lag_is_no_news(self) -> None:
        sick = after(*[LATE] * 3)
        known = sick
        for n in range(50):
            known = after(replace(LATE, worst_seconds=34.4 + n / 2, lagging=100 + n), start=known)
            assert not known.differs(sick, 3600, SETTINGS)

    def test_short_lags_below_the_threshold_are_no_news(self) -> None:
        well = after(*[WELL] * 3)
        known = well
        for n in range(100):
            known = after(replace(WELL, worst_seconds=n % 10), start=known)
            assert not known.differs(well, 3600, SETTINGS)

    def test_more_than_doubled_lag_is_news_but_not_often(self) -> None:
        sick = after(*[LATE] * 3)
        worse = after(replace(LATE, worst_seconds=80), start=sick)
        assert not worse.differs(sick, LAG_NEWS_SECONDS - 1, SETTINGS)
        assert worse.differs(sick, LAG_NEWS_SECONDS, SETTINGS)

    def test_leaving_the_isr_is_news_once_it_is_settled(self) -> None:
        sick = after(*[LATE] * 3)
        left = replace(LATE, in_isr=0)
        assert not after(left, left, start=sick).differs(sick, 3600, SETTINGS)
        assert after(left, left, left, start=sick).differs(sick, 0, SETTINGS)

    def test_leader_turned_slow_is_news_once_settled(self) -> None:
        well = after(*[WELL] * 3)
        trailed = replace(WELL, trailed_by=(2, 3))
        assert not after(trailed, trailed, start=well).differs(well, 3600, SETTINGS)
        assert after(trailed, trailed, trailed, start=well).differs(well, 0, SETTINGS)


class TestComingBack:
    def test_formerly_silent_broker_has_time_to_catch_up_outside_isr(self) -> None:
        away = after(WELL, WELL, WELL, SILENT)
        assert away.returning(20)
        catching_up = replace(WELL, outside=40, returning=12)
        back = away.after(catching_up, SETTINGS, START, 100.0)
        assert back.returning(100 + RETURN_SECONDS)
        assert not back.returning(101 + RETURN_SECONDS)

    def test_once_in_every_isr_it_has_come_back(self) -> None:
        back = after(WELL, SILENT, replace(WELL, outside=40))
        assert back.returning(20)
        assert not after(WELL, start=back).returning(20)

    def test_going_away_again_and_again_begins_no_new_time(self) -> None:
        known = after(WELL, SILENT).after(replace(WELL, outside=40), SETTINGS, START, 100.0)
        for at in range(110, 400, 10):
            known = known.after(SILENT, SETTINGS, START, at)
            known = known.after(replace(WELL, outside=40), SETTINGS, START, at + 5.0)
        assert not known.returning(400)

    def test_a_broker_that_never_was_away_has_no_such_time(self) -> None:
        assert not after(*[replace(WELL, outside=40)] * 5).returning(20)

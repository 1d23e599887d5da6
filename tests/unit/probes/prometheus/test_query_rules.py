"""What values make of brokers: only a figure that is surely one broker's, and bad next to its peers', is ever bad."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.broker_identity import Named, match
from bellwether.core.settings.source_settings import Comparison, PrometheusRule
from bellwether.core.signals import Reading, SignalType
from bellwether.probes.prometheus.query_rules import (
    FIGURE_NEWS_SECONDS,
    NO_SERIES,
    Figures,
    Judgement,
    RuleState,
    figures,
    judge,
)
from testkit.messages import assert_wording

START = datetime(2026, 1, 1, tzinfo=UTC)
BROKERS = (1, 2, 3)
HOSTS = {b: (f"main-kafka-{b}.main-kafka-brokers.kafka.svc",) for b in BROKERS}


def rule(**fields: Any) -> PrometheusRule:
    return PrometheusRule(**{"name": "flush", "query": "q", "threshold": 100.0, **fields})


def found(*samples: tuple[str | None, float | None], **fields: Any) -> Figures:
    return figures([(labels(value), number) for value, number in samples], rule(**fields), HOSTS)


def labels(value: str | None) -> dict[str, str]:
    return {} if value is None else {"broker": value}


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


class TestFigures:
    def test_each_broker_gets_its_value(self) -> None:
        assert found(("1", 5.0), ("main-kafka-2", 6.0), ("3", 7.0)).values == {1: 5.0, 2: 6.0, 3: 7.0}

    def test_broker_without_series_has_no_figure_and_others_keep_theirs(self) -> None:
        seen = found(("1", 5.0))
        assert seen.values == {1: 5.0}
        assert_wording(seen.unusable)

    def test_answer_without_any_series_is_said_once_for_the_policy(self) -> None:
        seen = found()
        assert seen.odd == {"empty": NO_SERIES}
        assert judge(1, seen, rule()).problem == NO_SERIES

    def test_two_series_of_one_broker_are_no_figure_though_equal(self) -> None:
        seen = found(("1", 500.0), ("1", 500.0), ("2", 1.0))
        assert_wording(seen.unusable[1])
        assert judge(1, seen, rule()).bad is None

    def test_different_pods_claiming_one_broker_are_named_without_figure(self) -> None:
        seen = found(("1", 500.0), ("main-kafka-1", 500.0))
        assert_wording(seen.unusable[1])

    def test_series_of_another_cluster_are_no_brokers(self) -> None:
        seen = found(("main-kafka-1", 5.0), ("other-kafka-1", 500.0))
        assert seen.values == {1: 5.0}
        assert_wording(seen.odd["unmatched"])
        nothing = (
            "the query returns nothing for this broker, but broker='other-kafka-1' is not what a broker advertises"
        )
        assert seen.unusable[2].startswith(nothing)

    def test_broker_without_alert_has_zero_unless_one_names_no_broker(self) -> None:
        assert found(("1", 1.0), alerts=("DiskFailing",)).values == {1: 1.0, 2: 0.0, 3: 0.0}
        assert found(("1", 1.0), (None, 1.0), alerts=("DiskFailing",)).values == {1: 1.0}

    def test_alert_about_another_node_leaves_every_broker_its_zero(self) -> None:
        alert = {"strimzi_io_pod_name": "main-controller-5", "pod": "main-controller-5"}
        assert figures([(alert, 1.0)], rule(alerts=("DiskFailing",)), HOSTS).values == {1: 0.0, 2: 0.0, 3: 0.0}

    def test_several_alerts_of_one_broker_are_one_value(self) -> None:
        assert found(("1", 1.0), ("1", 1.0), alerts=("DiskFailing", "NodeDown")).values == {1: 1.0, 2: 0.0, 3: 0.0}

    def test_alerts_with_different_labels_of_one_pod_are_one_value_and_of_two_pods_a_conflict(self) -> None:
        fires = rule(alerts=("DiskFailing",))
        one = [({"pod": "main-kafka-1", "namespace": "kafka"}, 1.0), ({"broker": "1"}, 1.0)]
        assert figures(one, fires, HOSTS).values == {1: 1.0, 2: 0.0, 3: 0.0}
        two = [({"broker": "1", "pod": "a-0"}, 1.0), ({"broker_id": "1", "pod": "b-0"}, 1.0)]
        assert_wording(figures(two, fires, HOSTS).unusable)

    def test_an_unreadable_twin_makes_the_readable_one_doubtful(self) -> None:
        assert 1 in found(("1", 500.0), ("1", None)).unusable

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            (math.nan, "NaN"),
            (math.inf, "infinite"),
            (-math.inf, "infinite"),
            (-0.1, "negative"),
            (None, "not a number"),
        ],
    )
    def test_what_is_no_figure_is_said_and_never_bad(self, value: float | None, words: str) -> None:
        for comparison in Comparison:
            seen = found(("1", value), ("2", 50.0), ("3", 50.0), comparison=comparison)
            assert words in seen.unusable[1]
            assert judge(1, seen, rule(comparison=comparison)).bad is None

    def test_negative_values_are_figures_where_the_threshold_is_negative(self) -> None:
        assert found(("1", -3.0), threshold=-1.0).values[1] == -3.0

    def test_values_without_a_broker_are_reported_by_kind_and_ignored(self) -> None:
        seen = found((None, 9e9), ("kafka", 9e9), ("10.0.0.1", 9e9), ("77", 9e9), ("88", 9e9), ("1", 5.0))
        assert seen.values == {1: 5.0}
        assert seen.odd.keys() == {"unmatched", "unknown"}
        assert_wording(seen.odd["unmatched"], seen.odd["unknown"])


class TestJudging:
    def test_value_beyond_threshold_is_bad_on_side_that_rule_names(self) -> None:
        seen = found(("1", 101.0), ("2", 100.0), ("3", 99.0))
        assert [judge(b, seen, rule()).bad for b in BROKERS] == [True, False, False]
        assert [judge(b, seen, rule(comparison=Comparison.BELOW)).bad for b in BROKERS] == [False, False, True]

    def test_what_is_high_on_all_brokers_is_no_brokers_fault(self) -> None:
        seen = found(("1", 500.0), ("2", 480.0), ("3", 510.0))
        assert [judge(b, seen, rule(peer_ratio=3)).bad for b in BROKERS] == [False] * 3

    def test_one_broker_apart_from_its_peers_is_bad(self) -> None:
        seen = found(("1", 500.0), ("2", 120.0), ("3", 130.0))
        assert judge(1, seen, rule(peer_ratio=3)) == Judgement(True, 500.0, 125.0)
        assert judge(2, seen, rule(peer_ratio=3)).bad is False

    def test_below_means_so_many_times_less_than_the_peers(self) -> None:
        idle = rule(threshold=0.3, comparison=Comparison.BELOW, peer_ratio=3)
        assert judge(1, found(("1", 0.1), ("2", 0.9), ("3", 0.8)), idle).bad is True
        assert judge(1, found(("1", 0.1), ("2", 0.2), ("3", 0.2)), idle).bad is False

    def test_without_peer_only_good_value_is_judged(self) -> None:
        alone = judge(1, found(("1", 500.0)), rule(peer_ratio=3))
        assert alone.bad is None
        assert_wording(alone.problem)
        assert judge(1, found(("1", 50.0)), rule(peer_ratio=3)).bad is False

    def test_peers_without_figures_are_no_peers(self) -> None:
        seen = found(("1", 500.0), ("2", math.nan), ("3", 1.0), ("3", 1.0), ("77", 1.0))
        assert judge(1, seen, rule(peer_ratio=3)).bad is None

    def test_any_value_is_bad_next_to_peers_with_zero(self) -> None:
        seen = found(("1", 2.0), ("2", 0.0), ("3", 0.0), threshold=0.0)
        assert judge(1, seen, rule(threshold=0.0, peer_ratio=3)).bad is True


def counted(*values: float, **fields: Any) -> RuleState:
    state = RuleState()
    for second, value in enumerate(values):
        seen = found(("1", value), ("2", 10.0), ("3", 12.0), **fields)
        state = state.after(judge(1, seen, rule(**fields)), rule(**fields), at(second))
    return state


class TestStandings:
    def test_nothing_is_said_before_enough_was_seen(self) -> None:
        assert counted(500, 500).signal(1, rule()) is None

    def test_bad_values_in_a_row_fail_with_figures(self) -> None:
        signal = counted(500, 500, 500, peer_ratio=3).signal(1, rule(peer_ratio=3))
        assert signal is not None
        assert (signal.type, signal.source, signal.reading) == (SignalType.PROMETHEUS, "flush", Reading.FAILING)
        assert (signal.since, signal.value) == (at(2), 500.0)
        assert_wording(signal.message)

    def test_good_values_in_a_row_pass_again(self) -> None:
        signal = counted(500, 500, 500, 20, 20, 20).signal(1, rule())
        assert signal is not None
        assert signal.reading == Reading.PASSING
        assert_wording(signal.message)

    def test_a_single_bad_value_between_good_ones_changes_nothing(self) -> None:
        assert counted(*([5, 5, 5, 900] * 5)).streak.reading is Reading.PASSING

    def test_an_unusable_value_is_unknown_at_once_and_restarts_counting(self) -> None:
        lost = counted(500, 500, 500, math.nan)
        signal = lost.signal(1, rule())
        assert signal is not None
        assert (signal.reading, signal.value) == (Reading.UNKNOWN, None)
        assert_wording(signal.message)
        again = lost.after(Judgement(True, 500.0, 11.0), rule(), at(9))
        assert again.streak.reading is Reading.UNKNOWN
        assert_wording(again.message(rule()))

    def test_a_failing_value_shared_by_peers_explains_why_it_remains(self) -> None:
        state = counted(500, 500, 500, peer_ratio=3)
        shared = state.after(Judgement(False, 500.0, 400.0), rule(peer_ratio=3), at(9))
        assert_wording(shared.message(rule(peer_ratio=3)))

    def test_only_new_reading_problem_or_very_different_figure_is_news(self) -> None:
        posted = counted(500, 500, 500)
        much = posted.after(Judgement(True, 1100.0, 11.0), rule(), at(9))
        little = posted.after(Judgement(True, 900.0, 11.0), rule(), at(9))
        assert posted.differs(None, 0, rule())
        assert not much.differs(posted, FIGURE_NEWS_SECONDS - 1, rule())
        assert much.differs(posted, FIGURE_NEWS_SECONDS, rule())
        assert not little.differs(posted, 1e6, rule())
        assert posted.lost("gone", at(9)).differs(posted, 0, rule())
        assert posted.lost("gone", at(9)).differs(posted.lost("away", at(9)), FIGURE_NEWS_SECONDS, rule())
        assert not posted.lost("gone", at(9)).differs(posted.lost("away", at(9)), FIGURE_NEWS_SECONDS - 1, rule())
        assert not posted.lost("gone", at(9)).differs(posted.lost("gone", at(9)), 1e6, rule())

    def test_how_long_producers_wait_is_no_news(self) -> None:
        acks = rule(threshold=0, shows_acks=True)
        waits, longer = (RuleState().after(Judgement(True, value), acks, at(0)) for value in (1.0, 30.0))
        assert not longer.differs(waits, 1e6, acks)
        assert waits.lost("gone", at(1)).differs(waits, FIGURE_NEWS_SECONDS, acks)

    def test_jitter_far_from_the_threshold_is_no_news(self) -> None:
        low, lower = counted(1, 1, 1), counted(9, 9, 9)
        assert not low.differs(lower, 1e6, rule())


samples = st.lists(
    st.tuples(
        st.none() | st.sampled_from(["1", "2", "3", "main-kafka-1", "x", "99", "10.0.0.1", ""]) | st.text(max_size=6),
        st.none() | st.floats(),
    ),
    max_size=12,
)
rules = st.builds(
    rule,
    threshold=st.floats(-1e6, 1e6),
    comparison=st.sampled_from(Comparison),
    peer_ratio=st.integers(0, 1000),
)


@given(st.lists(samples, max_size=8), rules)
def test_failing_needs_one_finite_bad_figure_each_time(
    answers: list[list[tuple[str | None, float | None]]], asked: PrometheusRule
) -> None:
    state, bad_in_a_row = RuleState(), 0
    for second, answer in enumerate(answers):
        seen = figures([(labels(label), value) for label, value in answer], asked, HOSTS)
        matches = match([Named.of_labels(labels(label)) for label, _ in answer], HOSTS).of
        own = [value for (_, value), one in zip(answer, matches, strict=True) if one.broker == 1]
        judged, before = judge(1, seen, asked), state.streak.reading
        state = state.after(judged, asked, at(second))
        if judged.bad:
            bad_in_a_row += 1
            assert len(own) == 1
            assert own[0] is not None
            assert math.isfinite(own[0])
            assert (own[0] > asked.threshold) == (asked.comparison is Comparison.ABOVE)
        else:
            bad_in_a_row = 0
        if state.streak.reading is Reading.FAILING and before is not Reading.FAILING:
            assert bad_in_a_row >= asked.failure_threshold
        if len(own) != 1:
            assert state.streak.reading is Reading.UNKNOWN


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=12))
def test_the_peers_median_leaves_out_the_brokers_own_value_alone(values: list[float]) -> None:
    brokers = range(len(values))
    seen = figures(
        [({"broker": str(b)}, v) for b, v in zip(brokers, values, strict=True)], rule(), dict.fromkeys(brokers, ())
    )
    for broker in brokers:
        others = [v for b, v in enumerate(values) if b != broker]
        expected = pytest.approx(statistics.median(others)) if others else None
        assert seen.peers(broker) == expected

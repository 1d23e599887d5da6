"""What a vantage knows of a broker by its canary: produce and fetch apart, with the harm of the worse of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import Reading, Signal
from bellwether.ports.canary import FETCH, PRODUCE
from bellwether.probes.canary.canary_state import CanaryState, late
from testkit.messages import assert_wording

START = datetime(2026, 1, 1, tzinfo=UTC)
OBJECTIVES = Objectives(produce_milliseconds=50, fetch_milliseconds=20)


def after(*requests: tuple[str, float | str], start: CanaryState | None = None) -> CanaryState:
    """The state after requests, one each second: kind, and latency or problem."""
    known = start or CanaryState()
    for second, (kind, ended) in enumerate(requests):
        now = START + timedelta(seconds=second)
        if isinstance(ended, str):
            seen = known.of(kind).failed(ended, 1.0, now)
        else:
            seen = known.of(kind).answered(ended, late(kind, ended, OBJECTIVES), 1.0, now)
        known = known.with_requests(seen)
    return known


def signal(known: CanaryState) -> Signal:
    found = known.signal(1, "zone-a", OBJECTIVES)
    assert found is not None
    return found


WELL = after(*[(PRODUCE, 0.004), (FETCH, 0.002)] * 6)


def test_good_requests_pass_with_both_latencies() -> None:
    found = signal(WELL)
    assert (found.reading, found.harm) == (Reading.PASSING, None)
    assert_wording(found.message)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (PRODUCE, "probes lost 4.0 s of the last 5 s (produce takes 42 ms, 39 % over 50 ms; fetch takes 2.0 ms)"),
        (FETCH, "probes lost 4.0 s of the last 5 s (produce takes 4.0 ms; fetch takes 41 ms, 39 % over 20 ms)"),
    ],
)
def test_late_requests_of_one_kind_fail_with_its_harm(kind: str, said: str) -> None:
    found = signal(after(*[(kind, 0.08)] * 5, start=after(*[(PRODUCE, 0.004), (FETCH, 0.002)] * 5)))
    assert (found.reading, found.message) == (Reading.FAILING, said)
    assert found.harm is not None
    assert found.harm.lost_seconds == pytest.approx(4.0)


def test_the_objective_is_that_of_the_kind() -> None:
    assert [late(kind, 0.03, OBJECTIVES) for kind in (PRODUCE, FETCH)] == [False, True]


def test_a_failure_names_what_failed() -> None:
    found = signal(after(*[(PRODUCE, "no answer within 2 s")] * 3, start=WELL))
    assert_wording(found.message)


def test_an_objective_that_no_request_has_met_is_said() -> None:
    found = signal(after(*[(PRODUCE, 0.08)] * 3, *[(FETCH, 0.002)] * 6))
    assert_wording(found.message)


def test_the_kind_that_lost_more_decides_the_harm() -> None:
    both = after(*[(PRODUCE, "gone"), (FETCH, "gone"), (FETCH, "gone")] * 3, start=WELL)
    found = signal(both)
    assert found.harm == both.fetch.counter.harm
    assert both.worse.kind == FETCH


def test_without_partition_nothing_is_known_and_reason_is_given() -> None:
    found = signal(WELL.unmeasured("no partition", START))
    assert (found.reading, found.message) == (Reading.UNKNOWN, "not measured: no partition")


def test_unauthorized_requests_are_unknown_and_do_not_fail() -> None:
    found = signal(WELL.with_requests(WELL.produce.unmeasured("not authorized", START)))
    assert found.reading == Reading.UNKNOWN
    assert_wording(found.message)


def test_a_settled_broker_is_reported_once() -> None:
    assert WELL.differs(None, 0.0)
    assert not after((PRODUCE, 0.005), (FETCH, 0.003), start=WELL).differs(WELL, 60.0)

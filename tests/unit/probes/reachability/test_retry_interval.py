"""Haste is for the few that fail, and given up as soon as they do not."""

from __future__ import annotations

from bellwether.probes.reachability.broker_watch import MOST, RETRY_SHARE, RetryInterval


def test_who_fails_is_asked_sooner_until_it_answers() -> None:
    retry_interval = RetryInterval()
    assert retry_interval.pace(1, 4.0, failing=False) == 4.0
    assert retry_interval.pace(1, 4.0, failing=True) == 4.0 * RETRY_SHARE
    assert retry_interval.pace(1, 4.0, failing=False) == 4.0


def test_of_many_failures_only_first_are_asked_in_haste() -> None:
    retry_interval = RetryInterval()
    paces = [retry_interval.pace(broker, 1.0, failing=True) for broker in range(MOST + 5)]
    assert paces == [RETRY_SHARE] * MOST + [1.0] * 5
    assert [retry_interval.pace(broker, 1.0, failing=True) for broker in range(MOST + 5)] == paces
    retry_interval.forget(0)
    assert retry_interval.pace(MOST + 1, 1.0, failing=True) == RETRY_SHARE

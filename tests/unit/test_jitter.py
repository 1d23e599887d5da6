"""Those who failed together do not come back together."""

from __future__ import annotations

from bellwether.jitter import SHARE, jittered


def test_waits_differ_and_stay_near_what_was_meant() -> None:
    waits = [jittered(2.0) for _ in range(200)]
    assert all(2.0 * (1 - SHARE) <= wait <= 2.0 * (1 + SHARE) for wait in waits)
    assert len(set(waits)) > 100
    assert max(waits) - min(waits) > SHARE


def test_no_wait_stays_none() -> None:
    assert jittered(0.0) == 0.0

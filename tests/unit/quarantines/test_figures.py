"""What records came to: percentiles that count what failed, and seconds without use of each partition."""

from __future__ import annotations

import pytest

from quarantines.figures import Phase, row, unavailable
from quarantines.traffic import Sent

PHASE = Phase("demoted", 100.0, 110.0)


def sent(due: float, seconds: float, partition: int = 0, error: str = "") -> Sent:
    return Sent(partition, b"k", due, due + seconds, error)


def test_a_record_belongs_to_the_phase_in_which_it_was_due():
    records = [sent(99.9, 1), sent(100.0, 0.001), sent(109.9, 5), sent(110.0, 1)]
    assert row(PHASE, records, 1)["records"] == 2


def test_what_failed_counts_with_the_time_that_it_was_waited_for():
    found = row(PHASE, [*(sent(101, 0.002) for _ in range(98)), sent(102, 30, error="_TIMED_OUT"), sent(103, 4)], 2)
    assert (found["failed"], found["p50_ms"], found["p99_ms"]) == (1, 2.0, 4000.0)


@pytest.mark.parametrize(
    ("records", "seconds"),
    [
        pytest.param([sent(1, 0.9)], [0.0, 0.0], id="less than a second is slow and no outage"),
        pytest.param([sent(1, 4.0)], [4.0, 0.0], id="one that waited"),
        pytest.param([sent(1, 4.0), sent(2, 4.0)], [5.0, 0.0], id="what overlaps counts once"),
        pytest.param([sent(1, 2.0), sent(9, 2.0, 1)], [2.0, 2.0], id="each partition by itself"),
        pytest.param([sent(1, 0.5, error="NOT_ENOUGH_REPLICAS")], [0.5, 0.0], id="a refusal however quick"),
    ],
)
def test_a_partition_is_of_no_use_while_its_records_wait_too_long(records: list[Sent], seconds: list[float]):
    assert unavailable(records, 2) == seconds


def test_a_phase_without_records_has_no_percentiles():
    assert row(PHASE, [], 1)["p50_ms"] is None

import pytest

from demo.latencies import percentile, summarise
from demo.samples import Kind
from testkit.processes.demo_runs import sample


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([7.0], 99, 7.0),
        ([1.0, 2.0], 50, 1.0),
        ([1.0, 2.0, 3.0], 50, 2.0),
        (list(range(1, 101)), 99, 99),
    ],
)
def test_percentiles_are_nearest_rank(values: list[float], percent: float, expected: float | None) -> None:
    assert percentile(values, percent) == expected


def test_a_record_counts_in_the_window_in_which_it_was_due() -> None:
    samples = [sample(due=9.9, seconds=5.0), sample(due=10.0, seconds=0.002), sample(due=20.0, seconds=0.003)]

    assert summarise(samples, Kind.ACKS_1, 10.0, 20.0).count == 1
    assert summarise(samples, Kind.ACKS_1, 10.0, 20.0).p50_ms == 2.0


def test_a_failed_record_counts_with_the_time_that_was_waited() -> None:
    latency = summarise([sample(seconds=30.0, error="_MSG_TIMED_OUT")], Kind.ACKS_1, 0, 1)

    assert (latency.count, latency.failed, latency.p99_ms) == (1, 1, 30_000.0)


def test_kinds_are_counted_apart() -> None:
    samples = [sample(kind=Kind.ACKS_1, seconds=0.001), sample(kind=Kind.ACKS_ALL, seconds=4.0)]

    assert summarise(samples, Kind.ACKS_1, 0, 1).p50_ms == 1.0
    assert summarise(samples, Kind.ACKS_ALL, 0, 1).p50_ms == 4000.0
    assert summarise(samples, Kind.FETCH, 0, 1).p50_ms is None


def test_failed_records_and_those_of_over_a_second_are_late() -> None:
    samples = [sample(seconds=0.9), sample(seconds=1.1), sample(seconds=0.1, error="_FAIL")]

    assert summarise(samples, Kind.ACKS_1, 0, 1).late == 2

from demo.outages import outage, seen_by_clients, union_seconds
from demo.samples import Kind
from testkit.processes.demo_runs import sample


def test_overlapping_waits_count_once() -> None:
    assert union_seconds([(0, 10), (5, 12), (5, 6), (20, 21)]) == 13


def test_a_partition_is_unavailable_from_when_a_slow_record_was_due_to_its_acknowledgement() -> None:
    samples = [sample(due=10, seconds=6), sample(due=12, seconds=5), sample(due=13, seconds=0.5)]

    assert seen_by_clients(samples, Kind.ACKS_1, 10, 20) == {("orders", 0): 7.0}


def test_a_record_that_failed_at_once_is_an_outage_too() -> None:
    assert seen_by_clients([sample(due=10, seconds=0.25, error="_FAIL")], Kind.ACKS_1, 0, 20) == {("orders", 0): 0.25}


def test_a_slow_record_from_before_the_fault_is_not_blamed_on_it() -> None:
    assert seen_by_clients([sample(due=9, seconds=5)], Kind.ACKS_1, 10, 20) == {}


def test_partitions_without_any_outage_count_as_zero_in_the_median() -> None:
    found = outage({("orders", 0): 4.0}, [("orders", 0), ("orders", 1), ("orders", 2)])

    assert (found.partitions, found.affected, found.median_seconds, found.max_seconds) == (3, 1, 0.0, 4.0)


def test_nothing_led_is_no_outage() -> None:
    assert outage({}, []).max_seconds == 0.0

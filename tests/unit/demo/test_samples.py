import pytest

from demo.losses import losses
from demo.samples import Kind, Sample, key_of, late
from testkit.processes.demo_runs import sample


def test_a_sample_survives_its_line() -> None:
    one = Sample(Kind.ACKS_ALL, "orders", 7, 12, 1.5, 2.25, "_MSG_TIMED_OUT")

    assert Sample.from_line(one.to_line()) == one
    assert one.seconds == 0.75


@pytest.mark.parametrize("line", ["[]", '"ready"', "not json", '["acks=2","orders",0,0,0,0,""]'])
def test_a_line_that_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own error is one, too
        Sample.from_line(line)


def test_a_record_that_is_not_finished_a_second_after_it_was_due_is_late() -> None:
    finished = [Sample(Kind.ACKS_1, "orders", 0, number, 10.0 + number / 2, 11.0) for number in (1, 3)]

    found = late(finished, Kind.ACKS_1, 2.0, now=12.5)

    assert [(record.sequence, record.due, record.seconds) for record in found] == [(0, 10.0, 2.5), (2, 11.0, 1.5)]


def test_an_acknowledged_record_that_is_not_found_is_lost_and_named() -> None:
    samples = [sample(kind=Kind.ACKS_ALL, sequence=n, partition=n) for n in range(3)]

    found = losses(samples, {key_of(Kind.ACKS_ALL, 0), key_of(Kind.ACKS_ALL, 2)}, Kind.ACKS_ALL)

    assert found.acknowledged == 3
    assert found.lost == (samples[1],)


def test_a_record_whose_delivery_failed_was_never_promised() -> None:
    found = losses([sample(sequence=4, error="_MSG_TIMED_OUT")], set(), Kind.ACKS_1)

    assert (found.sent, found.acknowledged, found.failed, found.lost) == (1, 0, 1, ())


def test_a_record_of_the_other_producer_does_not_count() -> None:
    found = losses([sample(kind=Kind.ACKS_ALL, sequence=1)], {key_of(Kind.ACKS_1, 1)}, Kind.ACKS_ALL)

    assert len(found.lost) == 1

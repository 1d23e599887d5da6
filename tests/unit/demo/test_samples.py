import pytest

from demo.samples import Kind, Sample, late


def test_a_sample_survives_its_line() -> None:
    sample = Sample(Kind.ACKS_ALL, "orders", 7, 12, 1.5, 2.25, "_MSG_TIMED_OUT")

    assert Sample.from_line(sample.to_line()) == sample
    assert sample.seconds == 0.75


@pytest.mark.parametrize("line", ["[]", '"ready"', "not json", '["acks=2","orders",0,0,0,0,""]'])
def test_a_line_that_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own error is one, too
        Sample.from_line(line)


def test_a_record_that_is_not_finished_a_second_after_it_was_due_is_late() -> None:
    finished = [Sample(Kind.ACKS_1, "orders", 0, number, 10.0 + number / 2, 11.0) for number in (1, 3)]

    found = late(finished, Kind.ACKS_1, 2.0, now=12.5)

    assert [(record.sequence, record.due, record.seconds) for record in found] == [(0, 10.0, 2.5), (2, 11.0, 1.5)]

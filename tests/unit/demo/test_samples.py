import pytest

from demo.samples import Kind, Sample, key_of


def test_a_sample_survives_its_line() -> None:
    sample = Sample(Kind.ACKS_ALL, "orders", 7, 12, 1.5, 2.25, "_MSG_TIMED_OUT")

    assert Sample.from_line(sample.to_line()) == sample
    assert sample.seconds == 0.75


@pytest.mark.parametrize("line", ["[]", '"ready"', "not json", '["acks=2","orders",0,0,0,0,""]'])
def test_a_line_that_is_no_sample_is_refused(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - json's own error is one, too
        Sample.from_line(line)


def test_the_two_producers_never_share_a_key() -> None:
    assert key_of(Kind.ACKS_1, 5) != key_of(Kind.ACKS_ALL, 5)

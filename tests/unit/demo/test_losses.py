from demo.losses import losses
from demo.samples import Kind, key_of
from testkit.processes.demo_runs import sample


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

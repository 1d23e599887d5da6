import pytest

from demo import story
from demo.faults import FaultKind
from demo.samples import Kind, Sample
from testkit.processes.demo_runs import control, fault, quarantined, sample


def slow(*samples: tuple[float, float], kind: Kind = Kind.ACKS_1) -> list[Sample]:
    return [sample(due=due, seconds=seconds, kind=kind) for due, seconds in samples]


def test_the_verdict_is_quoted_with_its_reason_its_time_and_its_words() -> None:
    assert story.saw(fault()) == (
        'Broker 1 is Sick, ExternallyUnreachable, 3.0 s after the fault: "2 of 2 vantages cannot reach it"'
    )
    assert story.saw(fault(message="")).endswith("after the fault.")
    assert story.saw(fault(FaultKind.STORAGE)).endswith("after the fault.")


@pytest.mark.parametrize("kind", FaultKind)
def test_what_was_broken_names_broker_and_leaders(kind: FaultKind) -> None:
    said = story.broke(fault(kind), 80)

    assert "broker 1" in said
    assert "1 leaders" in said
    assert ("80 ms" in said) is (kind is FaultKind.STORAGE)


def test_the_leaders_that_left_are_counted_and_timed() -> None:
    assert story.moved(fault()).startswith("1 of 1 leaders have left broker 1, 5.0 s after the fault.")


def test_without_bellwether_clients_wait_until_the_repair() -> None:
    said = story.felt_without(control(), slow((5, 0.004), (12, 13.0), (24, 0.004)))

    assert "No client reached the leader of 1 partitions for 15.0 s, until the demo repaired it" in said
    assert "p99 13.0 s, 4.0 ms before; 1 of 2 failed or took over 1 s" in said


def test_with_bellwether_what_clients_felt_is_compared_with_the_control() -> None:
    said = story.felt_with(fault(), slow((12, 4.0), (20, 0.005)), control(), 25.0)

    assert "p99 4.0 s until the leaders had left, 5.0 ms since; 1 of 2 failed" in said
    assert "Without Bellwether: p99 4.0 s, 1 of 2." in said


def test_acks_all_before_a_hold_and_since_is_compared() -> None:
    strict = slow((5, 0.002), (12, 4.0), (20, 0.003), kind=Kind.ACKS_ALL)

    said = story.felt_with(quarantined(), strict, None, 25.0)

    assert "acks=all: p50 2.0 ms before the fault, 4.0 s until broker 1 was held, 3.0 ms since" in said
    assert "0 of 1 failed or took over 1 s since" in said


def test_what_clients_feel_of_an_unfinished_fault_ends_now() -> None:
    open_ = fault(repaired=None, in_place=None, ended=None)

    assert "5.0 ms since" in story.felt_with(open_, slow((20, 0.005), (22, 4.0)), None, 21.0)


def test_hold_and_release_are_timed() -> None:
    assert "5.5 s after the fault" in story.held(quarantined())
    assert "released 5.0 s after the repair" in story.released(quarantined())
    assert "started again within 1.5 s" in story.released(quarantined())


def test_the_return_is_timed_from_the_repair() -> None:
    assert story.restored(fault(), 5).startswith(
        "Every replica order and every leader is back, 20.0 s after the repair"
    )
    assert "no replica order had changed" in story.restored(quarantined(), 5)

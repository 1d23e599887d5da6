from demo.observations import Observations, Seen
from testkit.processes.demo_runs import NAME, observed

OTHER = ("orders", 1)


def test_the_seconds_that_a_broker_led_are_cut_to_the_stretch_asked_for() -> None:
    seen = observed()

    assert seen.seconds_led(1, 10.0, 25.0) == {NAME: 5.0}
    assert seen.seconds_led(2, 10.0, 25.0) == {NAME: 10.0}
    assert seen.seconds_led(3, 10.0, 25.0) == {}


def test_another_order_is_no_other_set() -> None:
    seen = observed()

    assert not seen.sets_changed
    assert seen.orders_restored() == 1


def test_a_replica_set_that_changed_and_came_back_is_remembered() -> None:
    seen = Observations()
    for replicas in ((1, 2, 3), (1, 2, 4), (1, 2, 3)):
        seen.add(0.0, {NAME: Seen(1, replicas)})

    assert seen.sets_changed == {NAME}


def test_a_partition_without_a_leader_is_remembered() -> None:
    seen = Observations()
    for leader in (1, None, 2):
        seen.add(0.0, {NAME: Seen(leader, (1, 2, 3))})

    assert seen.offline == {NAME}


def test_a_partition_is_out_of_place_by_its_order_or_by_its_leader() -> None:
    seen = Observations()
    seen.add(0.0, {NAME: Seen(1, (1, 2, 3)), OTHER: Seen(2, (2, 3, 1))})
    seen.add(1.0, {NAME: Seen(1, (2, 3, 1)), OTHER: Seen(3, (2, 3, 1))})

    assert seen.out_of_place() == 2
    assert seen.orders_restored() == 1


def test_the_start_is_what_was_seen_when_the_play_began() -> None:
    seen = Observations()
    seen.add(0.0, {NAME: Seen(None, (2, 1, 3))})
    seen.add(1.0, {NAME: Seen(1, (1, 2, 3))})
    seen.begin()

    assert not seen.offline
    assert seen.out_of_place() == 0


def test_a_broker_that_leads_nothing_is_counted_with_zero() -> None:
    seen = Observations()
    seen.add(0.0, {NAME: Seen(2, (2, 3, 1))})

    assert seen.leaders() == {1: 0, 2: 1, 3: 0}

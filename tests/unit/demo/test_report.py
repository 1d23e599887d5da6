import json
from pathlib import Path

from demo.losses import Loss
from demo.observations import Observations
from demo.report import fault_figures, loss_figures, repeated, save
from testkit.processes.demo_runs import control, fault, observed, quarantined, report, sample


def test_the_report_has_every_figure_that_is_promised(tmp_path: Path) -> None:
    save(report(), tmp_path / "reports" / "demo.json")
    read = json.loads((tmp_path / "reports" / "demo.json").read_text())

    assert {"replica_sets_changed", "offline_partitions", "orders_restored", "acknowledged_lost", "faults"} <= set(read)
    found = read["faults"][0]
    assert found["seconds_to_zero_leaders"] == 5.0
    assert found["seconds_to_in_place"] == 20.0
    assert found["partitions_moved"] == 1
    assert found["led_by_the_broken_broker"]["max_seconds"] == 5.0
    assert set(found["latency"]) == {"acks=1", "acks=all", "fetch", "end to end"}
    assert set(found["latency"]["acks=1"]) == {"before", "during", "after", "returning", "restored"}


def test_latencies_fall_into_the_window_in_which_they_were_due() -> None:
    samples = [sample(due=d, seconds=s) for d, s in ((5, 0.001), (12, 3.0), (20, 0.002), (50, 0.004))]

    latency = fault_figures(fault(), samples, observed())["latency"]["acks=1"]

    assert [latency[w]["p50_ms"] for w in ("before", "during", "after", "restored")] == [1.0, 3000.0, 2.0, 4.0]


def test_a_held_broker_has_its_own_times() -> None:
    found = fault_figures(quarantined(), [], observed())

    assert found["quarantined"]
    assert [found[f"seconds_to_{what}"] for what in ("held", "out_of_isr", "released", "started")] == [
        5.5,
        6.0,
        5.0,
        1.5,
    ]


def test_what_was_never_reached_has_no_figure() -> None:
    found = fault_figures(fault(zero_leaders=None, repaired=None, in_place=None, ended=None), [], observed())

    assert found["seconds_to_zero_leaders"] is None
    assert found["seconds_to_in_place"] is None
    assert set(found["latency"]["acks=1"]) == {"before"}


def test_without_bellwether_the_fault_lasts_until_the_repair() -> None:
    found = fault_figures(control(), [sample(due=24.0, seconds=1.5)], observed())

    assert (found["acting"], found["seconds_to_zero_leaders"], found["seconds_broken"]) == (False, None, 15.0)
    assert found["latency"]["acks=1"]["during"]["late"] == 1


def test_the_report_says_when_the_old_leader_noticed() -> None:
    known = fault_figures(fault(noticed_at=37.5), [], observed())

    assert known["seconds_until_old_leader_notices"] == 27.5
    assert fault_figures(fault(), [], observed())["seconds_until_old_leader_notices"] is None


def test_a_fault_that_never_began_has_no_unavailability() -> None:
    found = fault(began=None, zero_leaders=None, repaired=None, in_place=None, ended=None)

    assert fault_figures(found, [], Observations())["led_by_the_broken_broker"] is None


def test_lost_records_are_counted_by_the_window_of_their_due_time() -> None:
    lost = tuple(sample(due=due) for due in (11.0, 12.0, 30.0))

    found = loss_figures(Loss(9, 9, 0, lost), [fault()])

    assert found["lost"] == 3
    assert found["lost_by_window"] == {
        "external listener cut, broker 1: during": 2,
        "external listener cut, broker 1: returning": 1,
    }


def test_repetitions_give_median_and_worst_of_each_kind() -> None:
    faults = [fault(zero_leaders=10.0 + n) for n in (4, 9, 5)]

    found = repeated(faults)["external listener cut"]

    assert found["runs"] == 3
    assert found["seconds_to_zero_leaders"] == {"median": 5.0, "worst": 9.0}


def test_a_repetition_that_never_ended_leaves_no_worst_figure() -> None:
    found = repeated([control(), fault(), fault(zero_leaders=None)])["external listener cut"]

    assert found["seconds_to_zero_leaders"] == {"median": 5.0, "worst": None}

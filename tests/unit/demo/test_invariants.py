import pytest

from demo.faults import FaultKind
from demo.invariants import broken
from demo.report import fault_figures
from testkit.processes.demo_runs import control, fault, observed, report


def kept(**acks_all: int) -> dict[str, dict[str, int]]:
    good = {"sent": 10, "acknowledged": 10, "failed": 0, "lost": 0}
    return {"acks=1": good, "acks=all": {**good, **acks_all}}


def figures(**more: object) -> list[object]:
    return [fault_figures(fault(**more), [], observed())]


def test_a_run_in_which_everything_held_breaks_nothing() -> None:
    assert broken(report()) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"problems": ["the operator has ended by itself"]}, "the operator has ended"),
        ({"faults": []}, "no fault was tried"),
        ({"faults": figures(led=frozenset())}, "led nothing when the fault began"),
        ({"faults": figures(zero_leaders=None)}, "never came to lead nothing"),
        ({"faults": figures(in_place=None)}, "never came back"),
        ({"faults": figures(kind=FaultKind.STORAGE, released=30.0)}, "was not held, or stayed in an ISR"),
        ({"faults": figures(kind=FaultKind.STORAGE, out_of_isr=22.0)}, "was never released"),
        ({"faults": [*figures(), fault_figures(control(moved=3), [], observed())]}, "3 leaders moved while"),
        ({"replica_sets_changed": 1}, "replica sets of 1 partitions"),
        ({"offline_partitions": 2}, "2 partitions were without a leader"),
        ({"orders_restored": 0}, "only 0 of 1 replica orders"),
        ({"acknowledged_lost": kept(lost=1)}, "1 records acknowledged with acks=all are lost"),
        ({"acknowledged_lost": kept(acknowledged=0)}, "no record was acknowledged"),
        ({"acknowledged_lost": None}, "not read back"),
    ],
)
def test_each_broken_promise_is_found_and_named(change: dict[str, object], word: str) -> None:
    found = broken(report(**change))

    assert len(found) == 1
    assert word in found[0]


def test_leaders_that_stay_while_bellwether_only_observes_break_no_promise() -> None:
    assert broken(report(faults=[fault_figures(control(), [], observed()), *figures()])) == []


def test_failed_deliveries_and_slow_records_break_no_promise() -> None:
    assert broken(report(acknowledged_lost=kept(failed=5))) == []

"""What a rolling restart cost, added up by rules that are the same for both ways."""

from __future__ import annotations

import pytest

from demo.samples import Kind, Sample
from restarts.figures import Restart, Rolled, figures, without_leader
from restarts.table import rows

RESTARTS = (Restart(1, began=10, up=20, in_sync=22), Restart(2, began=30, up=41, in_sync=42))
ROLLED = Rolled(quiet_from=0, restarts=RESTARTS, balanced=50, ended=60)
ORDERS = ("orders", 0)
OTHERS = ("orders", 1)


def sample(due: float, seconds: float, partition: int = 0, error: str = "", kind: Kind = Kind.ACKS_1) -> Sample:
    return Sample(kind, "orders", partition, int(due * 10), due, due + seconds, error)


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        pytest.param([(0, 3)], None, id="led by somebody who stays"),
        pytest.param([(0, 1), (10.5, 3)], 0.5, id="led by the dead until somebody else is"),
        pytest.param([(0, 1)], 10, id="led by the dead until it is back"),
        pytest.param([(0, 3), (12, None), (15, 3)], 3, id="without a leader"),
        pytest.param([(0, 1), (11, None), (13, 2), (30.25, 1)], 3.25, id="one trouble after another"),
        pytest.param([(0, 3), (49, None)], 1, id="without a leader beyond the end"),
        pytest.param([(0, None), (9, 3)], None, id="before the first restart"),
    ],
)
def test_a_partition_is_without_a_leader_while_it_has_none_or_one_that_is_down(
    changes: list[tuple[float, int | None]], seconds: float | None
):
    assert without_leader({ORDERS: changes}, RESTARTS, 10, 50).get(ORDERS) == seconds


def test_a_restart_is_summed_up():
    history = {ORDERS: [(0.0, 1), (10.5, 3), (21.0, 1)], OTHERS: [(0.0, 3)]}
    samples = [sample(5, 0.002), sample(12, 0.004), sample(13, 3.0), sample(14, 30.0, 1, "_TIMED_OUT"), sample(55, 9.0)]
    told = figures(ROLLED, samples, history, out_of_place=0)
    assert told["seconds_of_restarts"] == 32
    assert told["seconds_a_broker_was_down"] == [10, 11]
    assert told["seconds_to_balance_after_the_last"] == 8
    assert told["leader_changes"] == 2
    assert told["unavailable"]["by_leadership"]["mean_seconds"] == 0.25
    assert told["unavailable"]["acks=1"]["max_seconds"] == 30
    assert told["unavailable"]["acks=1"]["affected"] == 2
    assert told["unavailable"]["acks=all"]["max_seconds"] == 0
    assert told["latency"]["acks=1"]["before"]["count"] == 1
    assert (told["latency"]["acks=1"]["during"]["count"], told["latency"]["acks=1"]["during"]["failed"]) == (3, 1)


def test_leaders_that_do_not_come_back_are_said_so_and_counted():
    told = figures(Rolled(0, RESTARTS, None, 60), [], {ORDERS: [(0.0, 1), (10.5, 3)]}, out_of_place=7)
    assert told["seconds_to_balance_after_the_last"] is None
    assert told["leaders_out_of_place_at_the_end"] == 7
    report = {"without_operator": told, "with_operator": figures(ROLLED, [], {ORDERS: [(0.0, 1)]}, 0)}
    assert rows(report)[0] == ("leaders back after the last broker, s", "not within the patience", "8")

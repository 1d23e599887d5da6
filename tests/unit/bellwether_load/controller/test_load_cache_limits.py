"""A policy that limits brokers by load, from its first plan on: real store, loop and desk, and a planner for Spark."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.controllers.policy_controller import PolicyController
from bellwether.core.signals import OverrideState
from bellwether_load.controller.load_cache import AWAITED_SECONDS
from bellwether_load.store.filesystems import Store
from bellwether_load.store.store_errors import StoreUnavailable
from testkit.messages import assert_wording
from testkit.simulation.rebalance_fixture import SPEC, Desked, Planner

# Every broker follows all: 2718. Leading partition i costs 2000 / (1 + i): of broker 1, 2000, 500 and 286, so that
# brokers 2 and 3 carry 4368 and 3718.
ROOM_FOR_TWO = 4718


def limited(most: int = ROOM_FOR_TWO, **more: Any) -> dict[str, Any]:
    return {"dwellSeconds": 0, "capacity": {"maxBytesPerSecond": most, **more}}


def measured(desked: Desked, **demotion: Any) -> PolicyController:
    """A loop whose policy limits brokers, and has a plan with its loads."""
    loop = desked.make(rebalance=SPEC, demotion=demotion or limited())
    desked.annotate(rebalance="please")
    desked.until(loop, "Proposed")
    desked.go(loop, 2)
    return loop


def demote(desked: Desked, loop: PolicyController, broker: int = 1) -> None:
    desked.site.signals.override(broker, OverrideState.DEMOTED)
    desked.go(loop, 6)


def led_by_1(desked: Desked) -> list[int]:
    return [p.index for p in desked.site.cluster.partitions() if p.leader == 1]


def conditions(desked: Desked) -> set[str]:
    return {c["type"] for c in desked.body()["status"]["conditions"]}


def held(desked: Desked) -> dict[str, int]:
    return {h["reason"]: h["count"] for h in desked.body()["status"].get("blockedByReason", [])}


def writes(desked: Desked) -> list[str]:
    return [w for w in desked.api.writes if " leases " not in w]


def test_until_loads_were_measured_it_is_said_that_the_limit_cannot_hold_and_nothing_is_held(desked: Desked):
    loop = desked.make(rebalance=SPEC, demotion=limited(1))
    desked.go(loop, 3)
    status, reason, message = desked.condition("LoadsAvailable")
    assert (status, reason) == ("False", "NoEvidence")
    assert_wording(message)
    demote(desked, loop)
    assert led_by_1(desked) == []


def test_meanwhile_the_limit_by_number_holds(desked: Desked):
    loop = desked.make(rebalance=SPEC, demotion=limited(1, maxLeaders=4))
    desked.go(loop, 3)
    assert "only maxLeaders limits brokers" in desked.condition("LoadsAvailable")[2]
    demote(desked, loop)
    assert max(desked.site.cluster.snapshot().leaders().values()) <= 4


def test_a_broker_is_demoted_in_part_where_the_others_cannot_carry_all_of_it(desked: Desked):
    loop = measured(desked)
    assert "LoadsAvailable" not in conditions(desked)
    demote(desked, loop)
    assert led_by_1(desked) == [0]
    assert held(desked) == {"CapacityReached": 1}
    status, reason, message = desked.condition("Ready")
    assert (status, reason) == ("False", "CapacityReached")
    assert_wording(message)
    assert f"(loads as of {desked.status['madeAt']})" in message
    desked.go(loop, 20)
    desked.api.writes.clear()
    before = desked.site.cluster.mutations
    desked.go(loop, 8, seconds=30)
    assert writes(desked) == []
    assert desked.site.cluster.mutations == before


def test_capacities_of_the_objective_count_here_as_well(desked: Desked):
    strong = {**SPEC, "objective": {"capacities": [{"brokerId": 3, "capacity": 200}]}}
    loop = desked.make(rebalance=strong, demotion=limited())
    desked.annotate(rebalance="please")
    desked.until(loop, "Proposed")
    demote(desked, loop)
    assert led_by_1(desked) == []
    assert desked.site.cluster.partitions()[0].leader == 3


def test_a_process_that_takes_over_moves_nothing_before_it_has_read_the_loads(desked: Desked):
    loop = measured(desked)
    demote(desked, loop)
    loop.release()
    desked.site.clock.advance(60)
    successor = desked.loop()
    desked.step(successor)  # a turn before the desk could do anything
    assert led_by_1(desked) == [0]
    assert "LoadsAvailable" not in conditions(desked)
    desked.go(successor, 8)
    assert led_by_1(desked) == [0]
    assert held(desked) == {"CapacityReached": 1}


def test_the_next_process_has_read_them_before_it_looks_at_a_plan_whose_recheck_may_take_long(
    desked: Desked, monkeypatch: pytest.MonkeyPatch
):
    loop = measured(desked)
    desked.planner.looks = 1000
    desked.annotate(rebalance="again")
    desked.go(loop, 3)
    loop.release()
    desked.site.clock.advance(60)
    known: list[bool] = []
    real = Planner.look

    def look(self: Planner, run: str) -> Any:
        loads = desked.desks[-1].rebalance_input().loads
        known.append(loads is not None and len(loads.partitions) == 8)
        return real(self, run)

    monkeypatch.setattr(Planner, "look", look)
    desked.go(desked.loop(), 3)
    assert known
    assert all(known)


def test_heavier_loads_bring_nothing_back(desked: Desked):
    loop = measured(desked, **limited(10**6))
    demote(desked, loop)
    desked.planner.rates = lambda _: 10.0**9
    before = desked.site.cluster.mutations
    desked.annotate(rebalance="again")
    desked.go(loop, 12)
    assert led_by_1(desked) == []
    assert desked.site.cluster.mutations == before


class TestAStoreThatIsAway:
    @pytest.fixture
    def away(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """What the store says while it is away; empty it, and it is back."""
        said = ["s3://loads: no answer"]
        for name in ("parquet", "list", "read_bytes"):
            monkeypatch.setattr(Store, name, self.failing(getattr(Store, name), said))
        return said

    @staticmethod
    def failing(real: Any, said: list[str]) -> Any:
        def answer(*given: Any, **more: Any) -> Any:
            if said:
                raise StoreUnavailable(said[0])
            return real(*given, **more)

        return answer

    def test_an_unavailable_store_is_reported_and_earlier_loads_stay(self, desked: Desked, away: list[str]):
        kept = away.pop()
        loop = measured(desked)
        away.append(kept)
        desked.change(rebalance={**SPEC, "objective": {"statistic": "Peak"}})  # so that they are to be read again
        desked.go(loop, 3)
        assert desked.status["reason"] == "StoreUnavailable"
        wanted = "the loads for spec.demotion.capacity.maxBytesPerSecond: s3://loads: no answer"
        assert desked.status["message"] == wanted
        assert desked.state == "Proposed"
        demote(desked, loop)
        assert led_by_1(desked) == [0]
        away.clear()
        desked.go(loop, 5, seconds=60)
        assert desked.status["reason"] == "PlanProposed"


def test_a_hanging_store_is_awaited_for_a_bounded_time(desked: Desked):
    """The desk's thread is stuck in the store: turns go on, at first without moving what may be too much."""
    loop = desked.begin(rebalance=SPEC, demotion=limited())
    desked.site.signals.override(1, OverrideState.DEMOTED)
    desked.step(loop)
    assert held(desked) == {"NoEvidence": 3}
    desked.site.clock.advance(AWAITED_SECONDS)
    desked.step(loop, 2)
    assert led_by_1(desked) == []
    assert desked.condition("LoadsAvailable")[0] == "False"

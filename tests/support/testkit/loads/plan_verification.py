"""Hand a plan to the verifier without files or in a store, and small problems of every kind to try it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective
from bellwether.core.waves.approved_plan import RebalanceMove
from bellwether_load.plan.documents import header_line
from bellwether_load.plan.problem import NO_BROKER, BrokerInput, PartitionInput, Problem
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans import problem_files
from bellwether_load.verify.plan_verifier import Report, verify
from testkit.loads.approved_plans import write_plan
from testkit.loads.small_planner import Loads, load_table, move_table, partition_table, planned, problem, write_loads

_RACKS = ("a", "b", "c")


def rechecked(
    posed: Problem,
    known: Loads,
    plan: RebalancePlan,
    moves: Iterable[RebalanceMove],
    account: Mapping[str, Any] | None = None,
) -> Report:
    """What the verifier says of a plan."""
    tables = partition_table(posed.partitions), load_table(posed, known), plan, move_table(tuple(moves))
    return verify(posed.header, header_line(posed.header), *tables, account=account)


@st.composite
def broker_slots(draw: st.DrawFn, most: int = 4) -> tuple[BrokerInput, ...]:
    """Two brokers or more, one of them open, of any strength and in any rack."""
    count = draw(st.integers(2, most))
    shut = draw(st.sets(st.integers(1, count), max_size=count - 1))
    racks = draw(st.lists(st.sampled_from([*_RACKS, None]), min_size=count, max_size=count))
    sizes = draw(st.lists(st.integers(1, 300), min_size=count, max_size=count))
    return tuple(
        BrokerInput(b, racks[b - 1], sizes[b - 1], b not in shut, "Sick" if b in shut else "")
        for b in range(1, count + 1)
    )


@st.composite
def partition_slots(draw: st.DrawFn, brokers: Sequence[int], index: int) -> PartitionInput:
    """Any partition over these brokers: with or without ISR and leader, held or not."""
    replicas = tuple(draw(st.lists(st.sampled_from(brokers), min_size=1, max_size=3, unique=True)))
    isr = tuple(b for b in replicas if draw(st.sampled_from([True, True, True, False])))
    leader = draw(st.sampled_from([*replicas, *replicas, *isr, NO_BROKER]))
    held = draw(st.sampled_from(["", "", "", "", "Displaced"]))
    topic = draw(st.sampled_from(["orders", "payments"]))
    return PartitionInput(topic, f"id-of-{topic}", index, replicas, isr, leader, held)


@st.composite
def objectives(draw: st.DrawFn) -> Objective:
    """Any objective without a limit of moves."""
    return Objective(
        consumption=draw(st.booleans()),
        preferred_racks=tuple(draw(st.lists(st.sampled_from(_RACKS), max_size=2, unique=True))),
    )


@st.composite
def load_problems(draw: st.DrawFn, most: int = 6) -> tuple[Problem, dict[PartitionKey, tuple[float, float | None]]]:
    """A problem and its loads: closed brokers, held partitions, and such without load, without leader, without ISR."""
    brokers = draw(broker_slots())
    ids = [b.id for b in brokers]
    slots = [draw(partition_slots(ids, index)) for index in range(draw(st.integers(0, most)))]
    rate = st.floats(0, 1e6, allow_nan=False) | st.integers(0, 5).map(lambda n: n / 2)
    known: dict[PartitionKey, tuple[float, float | None]] = {}
    for one in slots:
        if draw(st.sampled_from([True, True, True, True, False])):
            known[one.key] = (draw(rate), draw(st.none() | rate))
    return problem(*slots, brokers=brokers, objective=draw(objectives())), known


@dataclass(frozen=True)
class Folders:
    """Where a problem, its loads and a plan lie in a store."""

    store: Store
    uri: str
    problem: str
    loads: str
    plan: str

    def arguments(self) -> list[str]:
        """What ``bellwether verify-plan`` is given."""
        return [
            "--problem", f"{self.uri}/{self.problem}", "--loads", f"{self.uri}/{self.loads}", "--plan",
            f"{self.uri}/{self.plan}",
        ]  # fmt: skip


def folders(
    uri: str,
    posed: Problem,
    known: Loads,
    plan: RebalancePlan | None = None,
    moves: Sequence[RebalanceMove] | None = None,
) -> Folders:
    """Everything written down; the greedy plan unless another is given."""
    made, made_moves = planned(posed, known) if plan is None else (plan, tuple(moves or ()))
    store = Store.open(uri)
    problem_files.write_problem(store, "main", posed)
    return Folders(
        store,
        uri,
        "problems/main",
        write_loads(store, "main", known),
        write_plan(store, made, made_moves),
    )

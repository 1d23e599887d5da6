"""The loads that limits are held against, from a real store: the verifier's own figures, or nothing at all."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from bellwether.core.model.cluster import PartitionKey
from bellwether.core.settings.objective import Objective, Statistic
from bellwether_load.plan.problem import Problem
from bellwether_load.store.filesystems import Store
from bellwether_load.store.plans.load_reader import PackedLoads
from bellwether_load.store.plans.plan_store import FilePlanStore
from bellwether_load.store.store_errors import StoreDamaged, StoreMissing
from testkit.loads.approved_plans import write_plan
from testkit.loads.sample_rounds import read_table
from testkit.loads.small_planner import NOON, loads, planned, problem, slot, write_loads

NAME = "kafka.main.at-1"
POSED = problem(*(slot(i, (1, 2, 3)) for i in range(4)), slot(0, (2, 3), topic="audit"))
KNOWN = loads(POSED, 10.0, 20.0, 30.0, 40.0, consume=5.0)  # the last one was never measured


def run(store: Store, name: str = NAME, posed: Problem = POSED, *, plan: bool = True) -> None:
    """What a run leaves; without ``plan`` it has not ended."""
    FilePlanStore(store, "memory-cluster", "kafka/main").put_problem(name, posed)
    write_loads(store, name, KNOWN)
    if plan:
        write_plan(store, *planned(posed, KNOWN))


def at(hour: int, **terms: str) -> Problem:
    return replace(POSED, header=replace(POSED.header, made_at=NOON.replace(hour=hour), **terms))


def test_each_partition_that_was_measured_has_its_cost_and_the_others_have_none(store: Store, shelf: FilePlanStore):
    run(store)
    found = shelf.measured(NAME, Objective(), {})
    first = POSED.partitions[0].key
    assert first == PartitionKey("id-of-audit", 0)
    assert found.partitions[first] == 10 + 5  # one follower
    assert len(found.partitions) == 4
    assert found.partitions.get(POSED.partitions[-1].key) is None


def test_they_are_as_of_the_moment_of_the_problem_and_weighed_as_the_policy_says_now(
    store: Store, shelf: FilePlanStore
):
    run(store)
    found = shelf.measured(NAME, Objective(consumption=False), {2: 300})
    assert (found.measured_at, found.capacities) == (NOON, {2: 300})
    assert found.partitions[POSED.partitions[0].key] == 10


def test_the_statistic_is_the_policys(store: Store, shelf: FilePlanStore):
    run(store)
    path = f"loads/{NAME}/part-0.parquet"
    table = read_table(store, path)
    place = table.schema.get_field_index("produce_peak")
    store.write_table(path, table.set_column(place, "produce_peak", [[1000.0] * len(table)]))
    median, peak = (shelf.measured(NAME, Objective(statistic=s), {}) for s in (Statistic.MEDIAN, Statistic.PEAK))
    key = POSED.partitions[0].key
    assert (median.partitions[key], peak.partitions[key]) == (15, 1005)


def test_a_load_that_is_no_load_makes_all_of_them_unusable(store: Store, shelf: FilePlanStore):
    run(store)
    write_loads(store, NAME, {**KNOWN, POSED.partitions[1].key: (-1.0, 0.0)})
    with pytest.raises(StoreDamaged, match=rf"loads/{NAME}: orders-0 has a produce_p95 of -1"):
        shelf.measured(NAME, Objective(), {})


def test_a_problem_whose_partitions_cannot_be_is_named(store: Store, shelf: FilePlanStore):
    shelf.put_problem(NAME, problem(slot(5_000_000)))
    write_loads(store, NAME, {PartitionKey("id-of-orders", 5_000_000): (1.0, 0.0)})
    with pytest.raises(StoreDamaged, match="5000000 is not a partition index"):
        shelf.measured(NAME, Objective(), {})


@pytest.mark.parametrize("folder", ["problems", "loads"])
def test_a_missing_folder_is_named(store: Store, shelf: FilePlanStore, folder: str):
    run(store)
    store.delete_directory(f"{folder}/{NAME}")
    with pytest.raises(StoreMissing, match=rf"{folder}/{NAME}"):
        shelf.measured(NAME, Objective(), {})


def test_the_loads_of_another_policy_are_not_taken(store: Store, shelf: FilePlanStore):
    run(store, posed=at(12, policy="kafka/other"))
    with pytest.raises(StoreDamaged, match="belongs to policy kafka/other on Kafka cluster memory-cluster, not to"):
        shelf.measured(NAME, Objective(), {})


def test_runs_that_ended_with_a_plan_are_found_the_newest_first(store: Store, shelf: FilePlanStore):
    run(store, "kafka.main.asked-z", at(3))
    run(store, "kafka.main.asked-a", at(5))
    run(store, "kafka.main.asked-m", at(7), plan=False)
    assert shelf.finished("kafka.main.") == ("kafka.main.asked-a", "kafka.main.asked-z")


def test_neither_another_policys_runs_nor_what_cannot_be_read_are_found(store: Store, shelf: FilePlanStore):
    run(store, "kafka.main.x.at-1", at(3, policy="kafka/main.x"))
    run(store, "kafka.main.at-2", at(4, cluster_id="another"))
    run(store, "kafka.main.at-3", at(5))
    store.write_bytes("problems/kafka.main.at-3/problem.json", b"{")
    assert shelf.finished("kafka.main.") == ()


def test_every_replica_follows_and_capacities_go_along(store: Store, shelf: FilePlanStore):
    run(store)
    found = shelf.measured(NAME, Objective(), {3: 50})
    assert (found.following, found.capacities) == ({1: 90, 2: 100, 3: 100}, {3: 50})


def test_packed_loads_read_like_any_mapping():
    key = PartitionKey("t", 1)
    loads = PackedLoads({"t": array("q", [5, -1, 6])})
    assert dict(loads) == {PartitionKey("t", 0): 5, PartitionKey("t", 2): 6}
    assert (len(loads), key in loads, loads.get(key, 7), loads.get(PartitionKey("x", 0))) == (2, False, 7, None)
    assert loads.get(PartitionKey("t", -1), 7) == 7
    with pytest.raises(KeyError):
        loads[key]

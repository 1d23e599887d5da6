"""Which tools a policy's desk gets: what runs its jobs, and its part of the store."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.ports.errors import Terminal
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.controller.rebalance_controller import RebalanceBackend
from bellwether_load.load_side import rebalance_backend
from bellwether_load.store.store_errors import StoreUnusable
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.loads.load_configs import load_config
from testkit.loads.small_planner import problem, slot


def made(config: LoadConfig, policy: LeadershipPolicy | None = None) -> RebalanceBackend:
    policy = policy or api_objects.rebalanced()
    return rebalance_backend(MemoryApi(), config, policy, "cluster-1")


def test_a_new_store_has_no_problem(tmp_path: Path):
    assert not made(load_config(str(tmp_path))).plans.has_problem("default.main.at-1")


def test_the_files_of_a_policy_are_in_a_directory_of_its_namespace(tmp_path: Path):
    config = load_config(str(tmp_path))
    body = api_objects.policy("orders")
    body["metadata"]["namespace"] = "team-a"
    made(config, api_objects.rebalanced(body)).plans.put_problem("team-a.orders.at-1", problem(slot(0, (1, 2, 3))))
    assert {path.relative_to(tmp_path).parts[:3] for path in tmp_path.rglob("*.json")} == {
        ("team-a", "orders", "problems")
    }


def test_a_store_that_is_none_is_refused_with_a_remedy():
    with pytest.raises(StoreUnusable, match="ftp://host/x/default/main: is not a store"):
        made(load_config("ftp://host/x"))


def test_a_policy_that_rebalances_nothing_has_no_tools():
    with pytest.raises(Terminal, match=r"policy default/main has no LeaderRebalance"):
        made(load_config("/store"), LeadershipPolicy.read(api_objects.policy()))


def test_without_arrow_the_message_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in ("filesystems", "plans.plan_store"):
        monkeypatch.delitem(sys.modules, f"bellwether_load.store.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Terminal, match=r"a LeaderRebalance needs the extra load: pip install '"):
        made(load_config("/store"))

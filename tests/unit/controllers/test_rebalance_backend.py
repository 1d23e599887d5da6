"""Which tools a policy's desk gets: what runs its jobs, and its part of the store."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.jobs.kubernetes_jobs import KubernetesJobs
from bellwether.adapters.process_jobs import ProcessJobs
from bellwether.adapters.store.store_errors import StoreUnusable
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.rebalance_controller import RebalanceBackend, rebalance_backend
from bellwether.ports.errors import Terminal
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi


def made(body: api_objects.Body) -> RebalanceBackend:
    return rebalance_backend(MemoryApi(), SystemClock(), LeadershipPolicy.read(body), "cluster-1")


@pytest.mark.parametrize(
    ("runner", "kind"),
    [
        ({"type": "Job", "image": "x"}, KubernetesJobs),
        ({"type": "SparkOnKubernetes", "image": "x", "serviceAccountName": "spark"}, KubernetesJobs),
        ({"type": "Process"}, ProcessJobs),
    ],
)
def test_each_runner_has_its_own_kind_of_job(tmp_path: Path, runner: dict[str, Any], kind: type):
    found = made(api_objects.rebalance(history={"uri": str(tmp_path)}, runner=runner))
    assert isinstance(found.jobs, kind)
    assert not found.plans.has_problem("default.main.at-1")


def test_a_store_that_is_none_is_refused_with_a_remedy():
    with pytest.raises(StoreUnusable, match="ftp://host/x: is not a store"):
        made(api_objects.rebalance(history={"uri": "ftp://host/x"}))


def test_a_policy_that_rebalances_nothing_has_no_tools():
    with pytest.raises(Terminal, match=r"policy default/main has no spec\.rebalance"):
        made(api_objects.policy())


def test_without_arrow_the_policy_is_told_which_extra_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in ("filesystems", "plans.plan_store"):
        monkeypatch.delitem(sys.modules, f"bellwether.adapters.store.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Terminal, match=r"spec\.rebalance needs the extra load: pip install 'bellwether-kafka\[load\]'"):
        made(api_objects.rebalance())

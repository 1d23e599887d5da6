"""The tools of a policy's desk: its part of the store, and what runs its jobs, as the policy says. Decides nothing."""

from __future__ import annotations

from bellwether.adapters.kubernetes.client import KubernetesClient
from bellwether.adapters.kubernetes.jobs import KubernetesJobs
from bellwether.adapters.planwork import Work
from bellwether.adapters.processes import ProcessJobs
from bellwether.api.v1alpha1.leadershippolicy import LeadershipPolicy
from bellwether.api.v1alpha1.planrunner import RunnerType
from bellwether.extras import needed_extra
from bellwether.handlers.rebalancing import Tools
from bellwether.ports import Clock, PlanJobs, Terminal


def tools_for(api: KubernetesClient, clock: Clock, policy: LeadershipPolicy, cluster_id: str) -> Tools:
    """What the policy's desk works with. Raises StoreError, or Terminal where the policy asks for no rebalance."""
    rebalance, metadata = policy.spec.rebalance, policy.metadata
    if rebalance is None:
        raise Terminal(f"policy {metadata.namespace}/{metadata.name} has no spec.rebalance")
    try:  # Arrow is for policies that rebalance
        from bellwether.adapters.parquet.filesystems import Store  # noqa: PLC0415
        from bellwether.adapters.parquet.shelves import Shelf  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Terminal(f"spec.rebalance {needed_extra(error)}") from error
    shelf = Shelf(Store.open(rebalance.history.uri), cluster_id, f"{metadata.namespace}/{metadata.name}")
    jobs: PlanJobs
    if rebalance.runner.type is RunnerType.PROCESS:
        jobs = ProcessJobs(lambda run: Work.of(policy, rebalance, run, cluster_id), rebalance.runner, clock)
    else:
        jobs = KubernetesJobs(api, policy, rebalance, cluster_id)
    return Tools(shelf, jobs)

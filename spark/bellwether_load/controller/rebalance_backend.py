"""Backend of a policy's rebalance controller: its directory in the store, and the jobs that compute its plans.

In: the operator configuration and a policy that names a store and a profile in it. Called by ``rebalance_controller``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.extras import needed_extra
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal
from bellwether_load.api.job_profile import JobType
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.controller.job_commands import PlanJobs, Work
from bellwether_load.controller.kubernetes_jobs import KubernetesJobs
from bellwether_load.controller.process_jobs import ProcessJobs, inherited

if TYPE_CHECKING:  # Arrow is for policies that rebalance
    from bellwether_load.store.plans.plan_store import FilePlanStore


@dataclass(frozen=True, slots=True)
class RebalanceBackend:
    """What a policy's rebalance controller works with, rebuilt when the policy changes."""

    plans: FilePlanStore
    jobs: PlanJobs


MakeRebalanceBackend = Callable[[LeadershipPolicy, str], RebalanceBackend]
"""From a policy and the id of its Kafka cluster. Raises StoreError or Terminal."""


def rebalance_backend(
    api: KubernetesClient, clock: Clock, config: LoadConfig, policy: LeadershipPolicy, cluster_id: str
) -> RebalanceBackend:
    """The backend of the policy's rebalance controller, from the store and the profile that the policy names.

    Raises StoreError, NotConfigured if the administrator has not configured them for the policy, or another Terminal.
    """
    settings, metadata = config.settings(policy), policy.metadata
    profile = settings.profile
    try:  # Arrow is for policies that rebalance
        from bellwether_load.store.filesystems import Store  # noqa: PLC0415
        from bellwether_load.store.plans.plan_store import FilePlanStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Terminal(f"a LeaderRebalance {needed_extra(error)}") from error
    plans = FilePlanStore(Store.open(settings.uri), cluster_id, f"{metadata.namespace}/{metadata.name}")
    jobs: PlanJobs
    if profile.type is JobType.PROCESS:
        environment = inherited(profile.environment_variables)
        jobs = ProcessJobs(lambda run: Work.of(policy, settings.uri, run, cluster_id), profile, clock, environment)
    else:
        jobs = KubernetesJobs(api, policy, settings, cluster_id)
    return RebalanceBackend(plans, jobs)

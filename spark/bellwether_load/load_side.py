"""What the entry point ``bellwether.load`` names: the load side as the operator uses it (``ports.rebalance.LoadSide``).

A module that needs Arrow is imported when it is used: only policies that rebalance need it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

import structlog

from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.controllers.policy_rebalance import MakeRebalancer
from bellwether.core.doctor.risks import LogEndSample
from bellwether.core.model.cluster import PartitionKey
from bellwether.extras import needed_extra
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal
from bellwether_load.api.load_config import LoadConfig
from bellwether_load.controller.kubernetes_jobs import KubernetesJobs
from bellwether_load.controller.rebalance_controller import RebalanceBackend, RebalanceController
from bellwether_load.store.store_uri import Redacted

log = structlog.get_logger(__name__)


class LoadSide:
    """See the module. Raises InvalidLoadConfig."""

    def __init__(self, load_config: Path | None = None) -> None:
        self._config = LoadConfig.read(load_config)

    def rebalancers(self, api: KubernetesClient, clock: Clock) -> MakeRebalancer:
        """How a policy's rebalance controller is made."""
        config = self._config
        log.info("load_configured", stores=sorted(config.stores), profiles=sorted(config.profiles))

        def make(status: LeaderRebalanceStatus, wake: Callable[[], None]) -> RebalanceController:
            tools = partial(rebalance_backend, api, config)
            made = RebalanceController(status, config.settings, tools, clock, wake)
            made.start()
            return made

        return make

    def samples(self, store: str) -> Samples:
        """The samples in a store. Raises StoreError."""
        return Samples(store)


def rebalance_backend(
    api: KubernetesClient, config: LoadConfig, policy: LeadershipPolicy, cluster_id: str
) -> RebalanceBackend:
    """The backend of the policy's rebalance controller, from the store and the profile that the policy names.

    Raises StoreError, NotConfigured if the administrator has not configured them for the policy, or another Terminal.
    """
    settings, metadata = config.settings(policy), policy.metadata
    try:  # Arrow is for policies that rebalance
        from bellwether_load.store.filesystems import Store  # noqa: PLC0415
        from bellwether_load.store.plans.plan_store import FilePlanStore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise Terminal(f"a LeaderRebalance {needed_extra(error)}") from error
    plans = FilePlanStore(Store.open(settings.uri), cluster_id, f"{metadata.namespace}/{metadata.name}")
    return RebalanceBackend(plans, KubernetesJobs(api, policy, settings, cluster_id))


class Samples:
    """The samples in a store. Raises StoreError where it cannot be opened."""

    def __init__(self, uri: str) -> None:
        from bellwether_load.store.filesystems import Store  # noqa: PLC0415

        self._store = Store.open(uri)
        self.printable = str(Redacted(uri))

    def last_samples(self, cluster_id: str, wanted: Collection[PartitionKey]) -> Mapping[PartitionKey, LogEndSample]:
        """The last sample of each of these partitions that has one. Raises StoreError."""
        from bellwether_load.store.samples.last_samples import last_samples  # noqa: PLC0415

        return last_samples(self._store, cluster_id, wanted)

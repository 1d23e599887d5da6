"""Read what the operator of a policy knows now, with the rights of the user: metadata, signals, undo record, status.

In: the Kubernetes API and a policy. Out: a ``Situation`` for a forecast. Only reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellwether.adapters.job_commands import file_name
from bellwether.adapters.kubernetes.api_client import KubernetesClient
from bellwether.api.v1alpha1.broker_health import reported_flaps, reported_hosts, reported_verdicts
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.policy_status import HarmEpisodes
from bellwether.cli.planning.open_policy import open_policy
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.loads import Loads
from bellwether.core.model.undo_record import UndoRecord
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal
from bellwether.simulation.forecast import Situation

LISTEN_SECONDS = 10.0
"""For so long at most it waits for every prober to renew its Lease: until then the age of its signals is unknown."""


@contextmanager
def live_situation(
    api: KubernetesClient, policy: LeadershipPolicy, namespace: str, store: str | None, clock: Clock
) -> Iterator[Situation]:
    """What is known now of a policy. Raises what the clients raise; readers of settings work inside of the context."""
    name = policy.metadata.name
    with open_policy(api, policy, namespace, clock, LISTEN_SECONDS) as opened:
        world, healths = opened.world, opened.healths
        cluster = world.clusters.read()
        record = opened.record or UndoRecord(cluster.cluster_id)
        for pinned in (policy.status.cluster_id, record.cluster_id):
            if pinned and pinned != cluster.cluster_id:
                raise Terminal(
                    f"the addresses lead to Kafka cluster {cluster.cluster_id}, and policy {namespace}/{name} is pinned"
                    f" to {pinned}, as is its undo record: correct spec.kafka, or make another policy"
                )
        cost = policy.status.move_cost
        yield Situation(
            clock.now(),
            cluster,
            record,
            world.signals.signals(),
            world.signals.overrides(),
            reported_verdicts(healths),
            reported_flaps(healths),
            cost.elections if cost is not None else (),
            HarmEpisodes.to_core(policy.status.harm_episodes),
            world.strimzi,
            world.pods(KnownHosts(reported_hosts(healths)).seen(cluster).hosts) if world.pods is not None else None,
            world.configs,
            world.log_dirs,
            world.margins,
            _loads(store, policy, namespace, cluster.cluster_id) if store is not None else None,
        )


def _loads(store: str, policy: LeadershipPolicy, namespace: str, cluster_id: str) -> Loads | None:
    """The newest measured loads in the policy's store; None if there are none."""
    from bellwether.adapters.store.filesystems import Store
    from bellwether.adapters.store.plans.plan_store import FilePlanStore

    rebalance = policy.policy().rebalance
    if rebalance is None:
        raise Terminal("--store needs a policy with spec.rebalance, which measures loads")
    plans = FilePlanStore(Store.open(store), cluster_id, f"{namespace}/{policy.metadata.name}")
    for name in plans.finished(file_name(namespace, policy.metadata.name, "")):
        return plans.measured(name, rebalance.objective, rebalance.capacities)
    return None

"""Read what the operator of a policy knows now, with the rights of the user: metadata, signals, undo record, status.

In: the Kubernetes API and a policy. Out: a ``Situation`` for a forecast. Only reads; Secrets are those that the policy
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bellwether.adapters.job_commands import file_name
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch, Wanted
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import surroundings
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.broker_health import BrokerHealth, reported_flaps, reported_verdicts
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.policy_status import HarmEpisodes
from bellwether.cli.leadership import broker_lookup
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
    with SecretReader(api, namespace) as secrets:
        connection, strimzi = surroundings(policy.spec.kafka, secrets)
        nodes = BrokerPool(connection, MANUAL_LIMITS)
        signals = _heard(api, namespace, name, clock)
        healths = [BrokerHealth.read(body) for body in broker_lookup.healths(api, namespace, name)]
        pods = PodWatch(api, clock)
        pods.want(Wanted.of(policy))
        cluster = KafkaReader(nodes).read()
        record = ConfigMapRecords(api, namespace, name).read() or UndoRecord(cluster.cluster_id)
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
            signals.signals(),
            signals.overrides(),
            reported_verdicts(healths),
            reported_flaps(healths),
            cost.elections if cost is not None else (),
            HarmEpisodes.to_core(policy.status.harm_episodes),
            strimzi,
            pods.look(),
            KafkaConfigs(nodes),
            _loads(store, policy, namespace, cluster.cluster_id) if store is not None else None,
        )


def _heard(api: KubernetesClient, namespace: str, name: str, clock: Clock) -> SignalCache:
    """The signals, once every prober has been seen to renew its Lease, or after ``LISTEN_SECONDS``."""
    cache = SignalCache(clock)
    labels = {object_names.POLICY_LABEL: object_names.legal(name)}
    deadline = clock.monotonic() + LISTEN_SECONDS
    while True:
        for health in broker_lookup.healths(api, namespace, name):
            cache.on_broker_health(health)
        for lease in api.list(LEASES, namespace, {**labels, object_names.PROBER_LABEL: "true"}):
            cache.on_lease(lease)
        if all(s.age_seconds is not None for s in cache.signals()) or clock.monotonic() >= deadline:
            return cache
        clock.sleep(1.0)


def _loads(store: str, policy: LeadershipPolicy, namespace: str, cluster_id: str) -> Loads | None:
    """The newest measured loads in the policy's store; None if there are none."""
    from bellwether.adapters.store.filesystems import Store  # noqa: PLC0415 - needs the extra `load`
    from bellwether.adapters.store.plans.plan_store import FilePlanStore  # noqa: PLC0415

    rebalance = policy.policy().rebalance
    if rebalance is None:
        raise Terminal("--store needs a policy with spec.rebalance, which measures loads")
    plans = FilePlanStore(Store.open(store), cluster_id, f"{namespace}/{policy.metadata.name}")
    for name in plans.finished(file_name(namespace, policy.metadata.name, "")):
        return plans.measured(name, rebalance.objective, rebalance.capacities)
    return None

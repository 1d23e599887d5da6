"""Read a policy's objects from the Kubernetes API and connect to its Kafka cluster, with the rights of the user.

In: the Kubernetes API and a policy. Out: ``PolicyInputs``: undo record, BrokerHealths, the ports to the cluster, and
the memory of the policy's operator; and a ``Preview``: what it would do now. Its verdicts are those that the operator
last reported, so that both agree; a broker without one is Unknown. Nothing is written; Secrets are those that the
policy names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch, Wanted
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import surroundings
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.signal_sources import with_sources
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.kubernetes_target import Target, connect_policy
from bellwether.cli.leadership import broker_lookup
from bellwether.controllers.restored_memory import restored_memory
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Override
from bellwether.destinations import ANYWHERE
from bellwether.gather import Memory, gather
from bellwether.ports.clock import Clock
from bellwether.ports.kubernetes import NothingShared, SignalReader
from bellwether.ports.world import World


@dataclass(frozen=True)
class Preview:
    """Context, decisions and plan of one reconcile that moves nothing."""

    policy: LeadershipPolicy
    context: Context
    decisions: Decisions
    plan: Plan
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Namespace and name of the policy."""
        return f"{self.policy.metadata.namespace}/{self.policy.metadata.name}"

    def with_overrides(self, changed: Mapping[int, Override | None]) -> Preview:
        """The same, if these brokers had these overrides; None: no override."""
        snapshot = self.context.snapshot
        kept = [override for override in snapshot.overrides if override.broker not in changed]
        added = [override for override in changed.values() if override is not None]
        context = self.context.with_snapshot(overrides=tuple(sorted([*kept, *added], key=lambda o: o.broker)))
        return _planned(self.policy, context, self.notes)


@dataclass(frozen=True)
class PolicyInputs:
    """A policy with its objects as the API has them, and the ports to its Kafka cluster.

    ``audit_log`` is for a command that moves leaders itself; ``notes`` name what a plan does not know.
    """

    policy: LeadershipPolicy
    healths: tuple[BrokerHealth, ...]
    record: UndoRecord | None
    world: World
    audit_log: ConfigMapAuditLog
    notes: tuple[str, ...] = ()

    def memory(self, cluster_id: str) -> Memory:
        """The memory of the policy's operator, as far as it is stored."""
        return restored_memory(self.record or UndoRecord(cluster_id), self.policy.status, self.healths)

    def preview(self) -> Preview:
        """Read the cluster and plan. Raises what reading raises, and WrongCluster."""
        memory, settings = self.memory(self.world.clusters.read().cluster_id), self.policy.policy()
        snapshot, _, _ = gather(self.world, replace(settings, mode=Mode.OBSERVE), memory)
        judged = judge(snapshot, settings, memory.verdicts)
        verdicts = {broker: memory.verdicts.get(broker, verdict) for broker, verdict in judged.items()}
        return _planned(self.policy, Context(snapshot, verdicts, settings), self.notes)


@contextmanager
def policy_inputs(target: Target) -> Iterator[PolicyInputs]:
    """Read the policy that options name, and open it as ``open_policy`` does."""
    api, namespace, name = connect_policy(target)
    body = broker_lookup.find_policy(api, namespace, name)
    problem = broker_lookup.trouble(body)
    policy = with_sources(api, LeadershipPolicy.read(body))
    with open_policy(api, policy, namespace, SystemClock()) as opened:
        outdated = () if problem is None else (f"verdicts may be outdated: {problem}",)
        yield replace(opened, notes=(*outdated, *opened.notes))


@contextmanager
def open_policy(
    api: KubernetesClient, policy: LeadershipPolicy, namespace: str, clock: Clock, listen_seconds: float = 0.0
) -> Iterator[PolicyInputs]:
    """Open a policy. It waits up to ``listen_seconds`` until every prober has renewed its Lease: until then the age of
    its signals is unknown. Raises Terminal, Transient or Unauthenticated; Secrets' files exist as long as the context.
    """
    name = policy.metadata.name
    with SecretReader(api, namespace, destinations=ANYWHERE) as secrets:
        signals, healths = _listened(api, namespace, name, clock, listen_seconds)
        record = ConfigMapRecords(api, namespace, name).read()
        pods = PodWatch(api, clock)
        pods.want(Wanted.of(policy))
        pods.look()
        pods.by_broker({health.spec.broker_id: health.status.advertised_hosts for health in healths})
        world = replace(world_of(policy, secrets, signals, clock), pods=pods.source)
        audit_log = ConfigMapAuditLog(api, namespace, name, clock)
        yield PolicyInputs(policy, healths, record, world, audit_log, tuple(_notes(policy.policy(), pods.problem)))


def _notes(policy: Policy, pods_problem: str) -> Iterator[str]:
    if pods_problem:
        yield f"restarts of pods are not known: {pods_problem}"
    if policy.demotion.capacity.max_load is not None:
        yield "limits of brokers by load are not applied: only the operator reads the loads"


def world_of(policy: LeadershipPolicy, secrets: SecretReader, signals: SignalReader, clock: Clock) -> World:
    """Ports to the policy's Kafka cluster; the undo record is not written. Raises Transient or Terminal."""
    from bellwether.adapters.kafka.brokers.log_dirs import KafkaLogDirs
    from bellwether.adapters.kafka.config_reader import KafkaConfigs
    from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
    from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
    from bellwether.adapters.kafka.leader_mover import KafkaMover
    from bellwether.adapters.kafka.metadata_reader import KafkaReader

    connection, strimzi = surroundings(policy.spec.kafka, secrets)
    nodes = BrokerPool(connection, MANUAL_LIMITS)
    reader, mover, configs, log_dirs = KafkaReader(nodes), KafkaMover(nodes), KafkaConfigs(nodes), KafkaLogDirs(nodes)
    records = lease = NothingShared()
    margins = KafkaFaultTolerance(nodes)
    return World(
        reader, mover, records, lease, signals, clock, strimzi, margins=margins, configs=configs, log_dirs=log_dirs
    )


def _listened(
    api: KubernetesClient, namespace: str, name: str, clock: Clock, seconds: float
) -> tuple[SignalCache, tuple[BrokerHealth, ...]]:
    """Signals and BrokerHealths, once every prober has been seen to renew its Lease, or after that time."""
    cache = SignalCache(clock)
    labels = {object_names.POLICY_LABEL: object_names.legal(name), object_names.PROBER_LABEL: "true"}
    deadline = clock.monotonic() + seconds
    while True:
        bodies = broker_lookup.healths(api, namespace, name)
        for body in bodies:
            cache.on_broker_health(body)
        if seconds:
            for lease in api.list(LEASES, namespace, labels):
                cache.on_lease(lease)
        if all(s.age_seconds is not None for s in cache.signals()) or clock.monotonic() >= deadline:
            return cache, tuple(BrokerHealth.read(body) for body in bodies)
        clock.sleep(1.0)


def _planned(policy: LeadershipPolicy, context: Context, notes: tuple[str, ...]) -> Preview:
    decisions = decide(context)
    return Preview(policy, context, decisions, build_plan(context, decisions), notes)

"""Connect one policy to its Kafka cluster and to its Lease, and connect again when the policy's settings change.

Called by ``policy_controller``. Nothing here decides; it only keeps the adapters of one policy together. Secrets are
read before reconciles, never during one, so that rotated credentials are used without a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from bellwether.adapters.kafka.brokers.log_dirs import KafkaLogDirs
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.connection.tls_sasl import certificate_ends
from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
from bellwether.adapters.kafka.installation_marks import InstallationMarks, mark
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, Resource
from bellwether.adapters.kubernetes.former_senders import SenderProofs
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch, Wanted
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import at_work_now, surroundings
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import StrimziNotShared, StrimziUnavailable
from bellwether.adapters.kubernetes.leases import POLICY_ANNOTATION, ClusterLease, annotation
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.condition import Condition
from bellwether.core.model.strimzi import Strimzi
from bellwether.core.model.undo_record import Sender
from bellwether.core.reasons import Reason
from bellwether.destinations import Destinations
from bellwether.kafka_connection import Connection
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated, Unauthorized
from bellwether.ports.world import World
from bellwether.telemetry.heartbeat import WithHeartbeat

log = structlog.get_logger(__name__)

CHECK_SECONDS = 10.0
"""Interval of Secret reads while reconciles follow one another; an idle policy reads them at each reconcile."""

NAMESPACES = Resource("/api/v1", "namespaces", "v1", "Namespace")
CREDENTIALS_CURRENT = "CredentialsCurrent"


class PolicyRefused(Terminal):
    """The policy cannot be reconciled; ``reason`` becomes the reason of its condition."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass
class ClusterConnection:
    """Everything that a reconcile of one policy needs: ports, Lease, undo record, id of the cluster.

    ``marks`` are those of all installations in the cluster; None in a simulation.
    """

    world: World
    lease: ClusterLease
    records: ConfigMapRecords
    cluster_id: str
    senders: SenderProofs | None = None
    marks: InstallationMarks | None = None

    @property
    def former_senders(self) -> str:
        """Which former operators may still send, and what would prove that they have ended; empty without one."""
        return self.senders.problem if self.senders is not None else ""


_REQUESTS = ("clusters", "leaders", "records", "senders", "quarantine_orders", "margins", "configs", "log_dirs")
"""The ports of a world that wait for Kafka or the Kubernetes API."""


def with_heartbeat(world: World, beat: Callable[[], None]) -> World:
    """The same world; each request to it is a heartbeat, however long a reconcile takes."""
    ports = {name: getattr(world, name) for name in _REQUESTS}
    beating: dict[str, Any] = {name: WithHeartbeat(port, beat) for name, port in ports.items() if port is not None}
    return replace(world, **beating)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long the Lease of a cluster lasts and how often it is renewed, in seconds."""

    duration_seconds: int = 10
    renew_seconds: float = 2.0


Observe = Callable[[str, str, str, str, float], None]
"""Called after each request to Kafka: namespace and name of the policy, kind, outcome, seconds."""

TellCertificate = Callable[[str, str, str, float | None], None]
"""Called with a certificate's expiry: namespace and name of the policy, owner, Unix time or None for none."""


class CredentialWatcher:
    """The connection of one policy, as it was last made."""

    def __init__(self, make: Callable[[LeadershipPolicy], Connection], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._made: Connection | None = None
        self._look_at = 0.0
        self._problem = ""
        self._why = Reason.CREDENTIALS_UNUSABLE

    def now(self, policy: LeadershipPolicy) -> Connection:
        """A connection from the current settings. Raises Transient or Terminal."""
        self._look_at = self._clock.monotonic() + CHECK_SECONDS
        self._made = self._make(policy)
        self._problem = ""
        return self._made

    def changed(self, policy: LeadershipPolicy) -> Connection | None:
        """Another connection, where something has changed and it is time to look again.

        If the new credentials are unusable, ``condition`` reports it and the former ones stay in use.
        """
        if self._clock.monotonic() < self._look_at:
            return None
        before = self._made
        try:
            after = self.now(policy)
        except Transient:
            return None
        except Terminal as error:
            self._why = connection_error_reason(error)
            if isinstance(error, StrimziNotShared):
                self._look_at = float("-inf")  # no reconcile before it is shared again
                raise
            if self._problem != str(error):
                self._problem = str(error)
                log.warning("credentials_not_updated", error=str(error))
            return None
        if after == before:
            return None
        log.info("kafka_reconnecting", reason="credentials or addresses have changed")
        return after

    @property
    def condition(self) -> Condition | None:
        """Reports that the current Secrets are unusable; None while they are usable."""
        if not self._problem:
            return None
        text = f"the connection uses the earlier credentials, because the new ones cannot be used: {self._problem}"
        return Condition(CREDENTIALS_CURRENT, False, self._why, text)


def connection_error_reason(error: BellwetherError) -> Reason:
    """The reason for the condition: why the policy could not be reconciled."""
    if isinstance(error, StrimziUnavailable):
        return error.reason
    if isinstance(error, Unauthenticated):
        return Reason.CREDENTIALS_UNUSABLE
    return Reason.ACL_MISSING if isinstance(error, Unauthorized) else Reason.CLUSTER_UNREACHABLE


class Connector:
    """Connects one policy. ``namespace`` is the policy's; the Lease is in ``lease_namespace``."""

    def __init__(
        self,
        api: KubernetesClient,
        clock: Clock,
        signals: SignalCache,
        times: LeaseTimes,
        lease_namespace: str,
        observe: Observe = lambda *_: None,
        certificate: TellCertificate = lambda *_: None,
        *,
        destinations: Destinations,
        labelled_secrets: bool = False,
        limits: Limits | None = None,
        sender: Sender | None = None,
    ) -> None:
        """``sender`` is this process, as its undo records name it."""
        self._sender = sender
        self._secret_rules: dict[str, Any] = {"labelled": labelled_secrets, "destinations": destinations}
        self._limits = limits
        self._observe = observe
        self._certificate = certificate
        self._api = api
        self._clock = clock
        self._signals = signals
        self._times = times
        self._lease_namespace = lease_namespace
        self._secrets: SecretReader | None = None
        self._marked = ""
        self._strimzi: Strimzi | None = None
        self._followed = CredentialWatcher(self._connection, clock)
        self._pods = PodWatch(api, clock)

    def link(self, policy: LeadershipPolicy) -> ClusterConnection:
        """A connection to the cluster that the policy names. Raises Transient, Terminal, or PolicyRefused."""
        namespace, name = policy.metadata.namespace, policy.metadata.name
        nodes, reader, mover, margins, configs, log_dirs = self._through(self._followed.now(policy), policy)
        cluster_id = reader.read().cluster_id
        pinned = policy.status.cluster_id
        if pinned and pinned != cluster_id:
            text = (
                f"the bootstrap servers lead to Kafka cluster {cluster_id}, and this policy is pinned to {pinned}: "
                "correct spec.kafka.bootstrapServers or strimzi, or make another policy for the other cluster"
            )
            raise PolicyRefused(Reason.CLUSTER_CHANGED, text)
        who = f"{namespace}/{name}"
        lease = ClusterLease(
            self._api,
            self._lease_namespace,
            cluster_id,
            who,
            self._clock,
            duration_seconds=self._times.duration_seconds,
            renew_seconds=self._times.renew_seconds,
            margin_seconds=mover.request_timeout_seconds,
            process=self._sender.uid if self._sender is not None else "",
        )
        records = ConfigMapRecords(self._api, namespace, name, self._sender)
        trail = ConfigMapAuditLog(self._api, namespace, name, self._clock)
        orders = LeaseOrders(self._api, self._lease_namespace, who, lease.holder, lease.seconds_left)
        senders = SenderProofs(self._api, self._clock, self._sender) if self._sender is not None else None
        world = World(
            reader,
            mover,
            records,
            lease,
            self._signals,
            self._clock,
            self._strimzi,
            trail,
            margins,
            configs,
            log_dirs=log_dirs,
            senders=senders,
            quarantine_orders=orders,
        )
        marks = InstallationMarks(nodes, self._mark, self._clock)
        return ClusterConnection(world, lease, records, cluster_id, senders, marks)

    def renew(self, link: ClusterConnection, policy: LeadershipPolicy) -> ClusterConnection:
        """The same link with new connections, made from the current policy and Secrets."""
        return self._over(self._followed.now(policy), link, policy)

    def follow(self, link: ClusterConnection, policy: LeadershipPolicy) -> ClusterConnection:
        """The same link; with new connections where the policy's Secrets have changed. Looks now and then, and waits
        for what cannot be used now: ``former_credentials`` says so.
        """
        found = self._followed.changed(policy)
        if found is not None:
            return self._over(found, link, policy)
        return link if link.world.strimzi == self._strimzi else replace(link, world=self._seen(link.world))

    def restarts(self, policy: LeadershipPolicy) -> PodWatch:
        """The pods of the policy's brokers, where it has their restarts watched."""
        self._pods.want(Wanted.of(policy))
        return self._pods

    @property
    def former_credentials(self) -> Condition | None:
        """Reports that former credentials are still in use, and why; None when they are not."""
        return self._followed.condition

    def led_elsewhere(self, policy: LeadershipPolicy) -> bool:
        """Whether another process seems to lead this policy: a hint for who writes status, never for who acts."""
        if not policy.status.cluster_id:
            return False
        try:
            found = self._api.find(LEASES, self._lease_namespace, object_names.cluster_lease(policy.status.cluster_id))
        except BellwetherError:
            return False
        if not found or annotation(found, POLICY_ANNOTATION) != f"{policy.metadata.namespace}/{policy.metadata.name}":
            return False
        spec = found.get("spec") or {}
        if not spec.get("holderIdentity") or not spec.get("renewTime"):
            return False
        age = self._clock.now() - datetime.fromisoformat(str(spec["renewTime"]))
        return age < timedelta(seconds=self._times.duration_seconds)

    def _mark(self) -> str:
        """Unique over all Kubernetes clusters, and the same for all replicas and after a new installation."""
        if not self._marked:
            found = self._api.get(NAMESPACES, "", self._lease_namespace)
            self._marked = mark(self._lease_namespace, str(found["metadata"]["uid"]))
        return self._marked

    def _connection(self, policy: LeadershipPolicy) -> Connection:
        if self._secrets is None:
            self._secrets = SecretReader(self._api, policy.metadata.namespace, **self._secret_rules)
        try:
            made, self._strimzi = surroundings(policy.spec.kafka, self._secrets)
        except Terminal:
            # Even with former credentials, what Strimzi is doing now counts (invariant 10).
            if self._strimzi is not None:
                with suppress(BellwetherError):
                    self._strimzi = at_work_now(self._strimzi, self._secrets)
            raise
        return made

    def _through(
        self, made: Connection, policy: LeadershipPolicy
    ) -> tuple[BrokerPool, KafkaReader, KafkaMover, KafkaFaultTolerance, KafkaConfigs, KafkaLogDirs]:
        who = (policy.metadata.namespace, policy.metadata.name)
        for which, ends in certificate_ends(made.security).items():
            self._certificate(*who, which, ends)
        nodes = BrokerPool(made, self._limits, partial(self._observe, *who), partial(self._certificate, *who, "broker"))
        tolerance, configs, log_dirs = KafkaFaultTolerance(nodes), KafkaConfigs(nodes), KafkaLogDirs(nodes)
        return nodes, KafkaReader(nodes), KafkaMover(nodes), tolerance, configs, log_dirs

    def _over(self, made: Connection, link: ClusterConnection, policy: LeadershipPolicy) -> ClusterConnection:
        nodes, reader, mover, margins, configs, log_dirs = self._through(made, policy)
        if link.marks is not None:
            link.marks.nodes = nodes
        seen = self._seen(link.world)
        seen = replace(seen, clusters=reader, leaders=mover, margins=margins, configs=configs, log_dirs=log_dirs)
        return replace(link, world=seen)

    def _seen(self, world: World) -> World:
        """The same world as Strimzi describes it by now."""
        return replace(world, strimzi=self._strimzi)

    def close(self) -> None:
        """The policy is not worked on any more: remove the files that its Secrets were written to."""
        if self._secrets is not None:
            self._secrets.close()

    def grace_seconds(self, link: ClusterConnection) -> float:
        """How long what a broker's metadata leaves out is kept: the previous holder's Lease and its last request."""
        return self._times.duration_seconds + link.world.leaders.request_timeout_seconds

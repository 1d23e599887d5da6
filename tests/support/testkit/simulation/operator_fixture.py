"""An operator: everything that the controllers of one operator share, over the API and a Kafka cluster in memory.

In: a ``MemorySite`` and the body of a policy. Out: loops as ``policy_manager`` would make them, with a real Lease, a
real undo record and real notices; only the API server and the Kafka cluster are simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from bellwether.adapters.kafka.installation_marks import InstallationMarks
from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES
from bellwether.adapters.kubernetes.former_senders import SenderProofs
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch, Wanted
from bellwether.adapters.kubernetes.leases import ClusterLease
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import ClusterConnection, Connector
from bellwether.controllers.policy_controller import PolicyController
from bellwether.controllers.policy_finalizer import PolicyFinalizer
from bellwether.controllers.policy_rebalance import MakeRebalancer
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.core.condition import Condition
from bellwether.core.model.undo_record import Sender
from bellwether.ports.errors import BellwetherError
from bellwether.ports.kafka import FaultToleranceReader
from bellwether.ports.world import World
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.simulation.memory_site import MemorySite
from testkit.values.builders import site

LEASE_SECONDS = 1_000_000
LEASES_IN = "operators"


@dataclass
class MemoryConnector:
    """Links to the simulated cluster instead of to Kafka. ``trouble`` is raised instead, while it is set."""

    operator: MemoryOperator
    holder: str
    trouble: BellwetherError | None = None
    linked: int = 0
    renewed: int = 0
    closed: int = 0
    led_by_another: bool = False
    former_credentials: Condition | None = None
    pods: PodWatch | None = None
    marks: InstallationMarks | None = None

    def link(self, policy: LeadershipPolicy) -> ClusterConnection:
        """A link whose signals are those of the site."""
        if self.trouble is not None:
            raise self.trouble
        self.linked += 1
        operator, metadata = self.operator, policy.metadata
        process = operator.site.process()
        lease = ClusterLease(
            operator.api,
            LEASES_IN,
            operator.site.cluster_id,
            f"{metadata.namespace}/{metadata.name}",
            operator.site.clock,
            duration_seconds=LEASE_SECONDS,
            holder=self.holder,
            process=operator.sender.uid if operator.sender is not None else "",
        )
        records = ConfigMapRecords(operator.api, metadata.namespace, metadata.name, operator.sender)
        world = World(process.clusters, process.leaders, records, lease, operator.site.signals, operator.site.clock)
        who = f"{metadata.namespace}/{metadata.name}"
        orders = LeaseOrders(operator.api, LEASES_IN, who, self.holder, lease.seconds_left)
        world = replace(
            world, quarantine_orders=orders, margins=operator.margins or process.margins, configs=process.configs
        )
        if operator.audited:
            trail = ConfigMapAuditLog(operator.api, metadata.namespace, metadata.name, operator.site.clock)
            world = replace(world, trail=trail)
        proofs = SenderProofs(operator.api, operator.site.clock, operator.sender) if operator.sender else None
        world = operator.faults(replace(world, senders=proofs))
        return ClusterConnection(world, lease, records, operator.site.cluster_id, proofs, self.marks)

    def renew(self, link: ClusterConnection, policy: LeadershipPolicy) -> ClusterConnection:  # noqa: ARG002 - the linker's signature
        """The same: there are no connections to renew. Counted; raises the present trouble."""
        self.renewed += 1
        if self.trouble is not None:
            raise self.trouble
        return link

    def follow(self, link: ClusterConnection, policy: LeadershipPolicy) -> ClusterConnection:  # noqa: ARG002 - the linker's signature
        """The same: nothing is renewed here but by ``renew``."""
        return link

    def restarts(self, policy: LeadershipPolicy) -> PodWatch:
        """The pods in the operator's API."""
        self.pods = self.pods or PodWatch(self.operator.api, self.operator.site.clock)
        self.pods.want(Wanted.of(policy))
        return self.pods

    def led_elsewhere(self, policy: LeadershipPolicy) -> bool:  # noqa: ARG002 - the linker's signature
        """Whether another process seems to lead the policy: as the test says."""
        return self.led_by_another

    def close(self) -> None:
        """The loop has ended."""
        self.closed += 1

    def grace_seconds(self, link: ClusterConnection) -> float:  # noqa: ARG002 - the linker's signature
        """Short, so that tests need few turns."""
        return 5.0


@dataclass
class MemoryOperator:
    """One operator process. ``faults`` may wrap each world that is made; ``desk`` makes what rebalances are kept on.

    ``audited`` keeps the audit trail, in ConfigMaps next to those that most tests count.
    """

    site: MemorySite = field(default_factory=site)
    api: MemoryApi = field(default_factory=MemoryApi)
    holder: str = "operator-a"
    faults: Callable[[World], World] = lambda world: world
    desk: MakeRebalancer | None = None
    audited: bool = False
    sender: Sender | None = None
    margins: FaultToleranceReader | None = None
    loops: list[PolicyController] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = OperatorMetrics()
        self.reporter = StatusReporter(self.api, self.site.clock, self.holder, self.metrics)
        self.finalizer = PolicyFinalizer(self.api, lease_namespace=LEASES_IN)
        self.connector = MemoryConnector(self, self.holder)

    @classmethod
    def well(cls) -> MemoryOperator:
        """An operator over three well brokers with six partitions."""
        made = cls()
        made.site.well()
        return made

    def body(self, name: str = "main") -> dict[str, Any]:
        """The present policy."""
        return self.api.get(POLICIES, "default", name)

    def make(self, name: str = "main", **spec: Any) -> PolicyController:
        """A policy that enforces by default, and its loop; ``rebalance`` is the spec of a LeaderRebalance of it."""
        rebalance = spec.pop("rebalance", None)
        if ("leadershippolicies", "default", name) not in self.api.objects:
            self.api.put(
                POLICIES, api_objects.policy(name, **{"mode": "Enforce", "demotion": {"dwellSeconds": 0}, **spec})
            )
        if rebalance is not None:
            self.api.put(LEADER_REBALANCES, api_objects.rebalance(policy=name, **rebalance))
        return self.loop(name)

    def begin(self, steps: int = 1, **spec: Any) -> PolicyController:
        """A policy and its loop, as in ``make``, after its first steps."""
        loop = self.make(**spec)
        self.step(loop, steps)
        return loop

    def loop(self, name: str = "main") -> PolicyController:
        """A loop of an existing policy; its thread is not started."""

        def connector(_: SignalCache) -> Connector:
            return cast(Connector, self.connector)

        made = PolicyController(
            self.body(name), connector, self.reporter, self.finalizer, self.site.clock, rebalancer=self.desk
        )
        self.loops.append(made)
        return made

    def step(self, loop: PolicyController, times: int = 1, seconds: float = 1.0) -> float:
        """Steps of a loop, each with the present object of the policy; the last one's wait."""
        wait = 0.0
        for _ in range(times):
            found = self.api.find(POLICIES, "default", loop.policy_name)
            if found is not None:
                loop.update(found)
            wait = loop.step()
            self.site.clock.advance(seconds)
        return wait

    def change(self, name: str = "main", **spec: Any) -> None:
        """A person changes a policy's spec, or (``rebalance``) that of its LeaderRebalance; None deletes that."""
        rebalance = spec.pop("rebalance", {})
        if rebalance is None:
            self.api.delete(LEADER_REBALANCES, "default", api_objects.LOADS)
        elif rebalance:
            self.api.merge(LEADER_REBALANCES, "default", api_objects.LOADS, {"spec": rebalance})
        if spec:
            self.api.merge(POLICIES, "default", name, {"spec": spec})

    def condition(self, type_: str = "Ready", name: str = "main") -> tuple[str, str, str]:
        """Status, reason and message of a condition of a policy."""
        found = next(c for c in self.body(name)["status"]["conditions"] if c["type"] == type_)
        return found["status"], found["reason"], found["message"]

    def close(self) -> None:
        """Give the Leases up, which ends their threads."""
        for loop in self.loops:
            loop.release()

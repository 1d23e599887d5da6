"""Session of one policy with its Kafka cluster: connection, Lease, and what one reconcile remembers for the next.

Called by ``policy_controller``. It begins when the Lease is acquired and the undo record is read, and ends when the
Lease is lost, the policy names another cluster, or the policy ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import structlog

from bellwether.adapters.kafka.installation_marks import KEY, Standing
from bellwether.adapters.kubernetes.api_client import Object
from bellwether.adapters.kubernetes.kafka_cluster.broker_pods import PodWatch
from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.controllers.cluster_connection import ClusterConnection, Connector, PolicyRefused
from bellwether.controllers.reporting.status_reporter import StatusReporter
from bellwether.controllers.restored_memory import restored_memory
from bellwether.core.condition import Condition
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.reporting.audit import lost_orders, settled_entry
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy, QuarantineMode
from bellwether.gather import Memory
from bellwether.ports.errors import BellwetherError, Fenced, Terminal, Transient

log = structlog.get_logger(__name__)

MESSAGE_LIMIT = 1024


class Session:
    """One policy's session. ``memory`` is None until the undo record was read under this Lease."""

    def __init__(
        self, namespace: str, policy: str, connector: Connector, signals: SignalCache, reporter: StatusReporter
    ) -> None:
        self._namespace = namespace
        self._policy = policy
        self._connector = connector
        self._signals = signals
        self._reporter = reporter
        self._connected_to: object = None
        self.link: ClusterConnection | None = None
        self.memory: Memory | None = None
        self.pods: PodWatch | None = None
        self._orders_read = self._outstanding = False
        self._sources: list[Object] | None = None
        self._unread = ""
        self._standing = Standing()

    @property
    def leads(self) -> bool:
        """Whether this process holds the Lease of the cluster now."""
        link = self.link  # asked by the watches' threads, too
        return link is not None and link.lease.seconds_left() > 0

    def must_lead(self) -> None:
        """Raises Fenced when the Lease ran out: from then on its holder writes the status."""
        if not self.leads:
            raise Fenced("the Lease expired during the reconcile; its new holder reports the status")

    def led_elsewhere(self, policy: LeadershipPolicy) -> bool:
        """Whether another process seems to lead this policy, so that errors of this one are not the policy's."""
        return not self.leads and self._connector.led_elsewhere(policy)

    def ensure(self, policy: LeadershipPolicy) -> None:
        """Connect and hold the Lease. Raises PolicyRefused while another process, or another policy, holds it."""
        if self.link is not None and self._connected_to != policy.spec.kafka:
            self.end()
        if self.link is None:
            self.link = self._connector.link(policy)
            self._connected_to = policy.spec.kafka
        else:
            self.link = self._connector.follow(self.link, policy)
        if self.leads:
            return
        self.memory = None
        if not self.link.lease.acquire():
            self._reporter.leading(self._namespace, self._policy, False)
            # No owner: another process was quicker in this moment, and the next try shows which.
            if not self._other_policy(self.link):
                raise PolicyRefused(Reason.NOT_LEADER, DESCRIPTIONS[Reason.NOT_LEADER])
            text = (
                f"{self.link.lease.owner} already manages Kafka cluster {self.link.cluster_id}: one policy per Kafka"
                " cluster; delete one of the two"
            )
            raise PolicyRefused(Reason.CLUSTER_CLAIMED, text)
        self._reporter.leading(self._namespace, self._policy, True)

    def settings(self, policy: LeadershipPolicy) -> Policy:
        """The policy's settings; only observing where another installation manages the Kafka cluster.

        Raises Transient where that was never read.
        """
        settings, marks = policy.policy(), self.link.marks if self.link is not None else None
        before, self._standing = self._standing, Standing()
        if marks is not None:
            self._standing = marks.standing(claims=settings.mode is Mode.ENFORCE)
        if self._standing != before and (self._standing.others or self._standing.problem):
            said = self._sole(policy)
            log.warning("other_installations", marks=self._standing.others, message=said.message if said else "")
        return settings if self._standing.first else replace(settings, mode=Mode.OBSERVE)

    def _other_policy(self, link: ClusterConnection) -> bool:
        """Whether another policy of this installation has the cluster's Lease, as far as it was seen."""
        owner = link.lease.owner
        return owner is not None and not owner.startswith(f"policy {self._namespace}/{self._policy} ")

    def withdraw(self) -> None:
        """Leave the Kafka cluster to another installation, unless another policy of this one manages it."""
        if self.link is not None and self.link.marks is not None and not self._other_policy(self.link):
            try:
                self.link.marks.withdraw()
            except BellwetherError as error:
                log.warning("mark_not_removed", error=str(error))

    def with_sources(self, policy: LeadershipPolicy) -> LeadershipPolicy:
        """The policy with its SignalSources: while they cannot be read, those that were read last stay in force.

        Raises Transient or Terminal where none were read yet: what was demoted by one must not return without it.
        """
        if not policy.spec.detection.signal_sources:
            self._sources, self._unread = None, ""
            return policy
        try:
            self._sources, self._unread = self._reporter.sources(policy), ""
        except BellwetherError as error:
            if self._sources is None:
                raise
            self._unread = f"SignalSources cannot be read: {error}: those that were read last stay in force"
        return policy.with_sources(self._sources)

    def begin(self, policy: LeadershipPolicy) -> tuple[ClusterConnection, Memory, PodWatch]:
        """What a reconcile works with. The first of a session reads the undo record, the last status and the orders.

        Raises Transient without a connection, PolicyRefused when the record cannot be read, and what the ports raise.
        """
        if self.link is None:
            raise Transient("there is no connection to the Kafka cluster yet")
        if self.memory is None:
            self.memory = self._take_over(self.link, policy)
        else:
            self.link.records.check()  # a record that a person imported is found even if nothing is to be written
            if not self._orders_read and policy.policy().quarantine.mode is not QuarantineMode.OFF:
                self.memory = replace(self.memory, quarantine_orders=self._take_over_orders(self.link))
        self.pods = self._connector.restarts(policy)
        return self.link, self.memory, self.pods

    def _take_over(self, link: ClusterConnection, policy: LeadershipPolicy) -> Memory:
        try:
            record = link.records.take_over(link.cluster_id)
            if link.records.never_saved:  # it is new, or the one before is lost
                lost = lost_orders(link.world.trail.read(), link.cluster_id, link.world.clock.now())
                record = record.with_entries({**lost, **record.entries})
        except (Transient, Terminal) as error:
            raise PolicyRefused(Reason.RECORD_UNAVAILABLE, str(error)) from error
        self._outstanding = record.has_outstanding
        # Who released the Lease has ended its last request; who lost it may be paused before one.
        senders = tuple(one for one in record.senders if one == record.senders[-1] or one.uid != link.lease.released_by)
        record = replace(record, senders=senders)
        # The watch may not have delivered yet: the first reconcile must not miss an override.
        healths = self._reporter.healths(policy)
        for health in healths:
            self._signals.on_broker_health(health)
        read = self._reporter.last_said(policy, healths)
        grace, orders = self._connector.grace_seconds(link), self._orders_of(link, policy, healths)
        structlog.contextvars.bind_contextvars(epoch=record.epoch)
        log.info("leadership_acquired", displaced=len(record.entries), demoted=sorted(record.demoted))
        return replace(restored_memory(record, policy.status, read), grace_seconds=grace, quarantine_orders=orders)

    def remember(self, link: ClusterConnection, memory: Memory, report: Report) -> Memory:
        """Keep and return what a reconcile leaves; the audit trail notes when no order may arrive late any more."""
        before, self._outstanding = self._outstanding, memory.record.has_outstanding
        if before and not self._outstanding:
            link.world.trail.conclude(settled_entry(link.cluster_id, memory.record.epoch, report.now))
        self.memory = memory
        return memory

    def _orders_of(
        self, link: ClusterConnection, policy: LeadershipPolicy, healths: list[Object]
    ) -> Mapping[int, QuarantineOrder]:
        """Orders that a previous process left: listed if the policy allows quarantine, or a status shows one."""
        self._orders_read = False
        if policy.policy().quarantine.mode is QuarantineMode.OFF and not any(map(_quarantined, healths)):
            return {}
        return self._take_over_orders(link)

    def _take_over_orders(self, link: ClusterConnection) -> Mapping[int, QuarantineOrder]:
        orders = link.world.quarantine_orders.take_over()
        self._orders_read = True
        return orders

    def qualified(self, report: Report, policy: LeadershipPolicy) -> Report:
        """The report with what limits it: former credentials in use, pods and SignalSources that cannot be read."""
        found = [self._connector.former_credentials] if self._connector.former_credentials is not None else []
        if self.pods is not None and self.pods.problem:
            text = self.pods.problem[:MESSAGE_LIMIT]
            found.append(Condition("RestartDetection", False, Reason.NO_EVIDENCE, text))
        if self.link is not None and (text := self.link.former_senders):
            found.append(Condition("OrdersSettled", False, Reason.SENDER_MAY_RUN, text[:MESSAGE_LIMIT]))
        if text := (self._unread or str(policy.sources))[:MESSAGE_LIMIT]:
            found.append(Condition("SourcesUsable", False, Reason.NO_EVIDENCE, text))
        conditions = report.conditions
        if said := self._sole(policy):
            found.append(said)
            if not self._standing.first:
                conditions = (*(c for c in conditions if c.type != "Ready"), replace(said, type="Ready"))
        return replace(report, conditions=(*conditions, *found)) if found else report

    def _sole(self, policy: LeadershipPolicy) -> Condition | None:
        """What there is to say about other installations that manage the same Kafka cluster."""
        first, others, problem = self._standing.first, self._standing.others, self._standing.problem
        if not others:
            text = f"another installation that manages this Kafka cluster would not be noticed: {problem}"
            return Condition("SoleInstallation", None, Reason.NO_EVIDENCE, text[:MESSAGE_LIMIT]) if problem else None
        if policy.policy().mode is not Mode.ENFORCE:
            return None
        where = ", ".join(one.split(".")[1] for one in others[:3])
        if first:
            text = f"the installation in namespace {where} has a policy for this Kafka cluster, too, and only observes:"
            text += " delete one of the two policies"
        else:
            text = f"the installation in namespace {where} manages this Kafka cluster, and this one only observes:"
            text += " delete one of the two policies; if it has no such policy any more, remove its mark:"
            text += " kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type clients"
            text += f" --entity-name {others[0]} --delete-config {KEY}"
        return Condition("SoleInstallation", False, Reason.CLUSTER_CLAIMED, text[:MESSAGE_LIMIT])

    def reconnect(self, policy: LeadershipPolicy) -> BellwetherError | None:
        """Connect again with what the policy's Secrets hold now; returns what is wrong with them."""
        if self.link is not None:
            try:
                self.link = self._connector.renew(self.link, policy)
            except BellwetherError as error:
                return error
        return None

    def end(self) -> None:
        """Release the Lease and forget what was known."""
        structlog.contextvars.unbind_contextvars("epoch")
        link, self.link, self.memory = self.link, None, None
        if link is not None:
            link.lease.release()
            self._reporter.leading(self._namespace, self._policy, False)

    def close(self) -> None:
        """Close the session and remove the files that Secrets were written to."""
        self.end()
        self._connector.close()


def _quarantined(health: Object) -> bool:
    """Whether a BrokerHealth reports an order, also one that has ended."""
    return any(one.get("type") == "Quarantined" for one in (health.get("status") or {}).get("conditions") or ())

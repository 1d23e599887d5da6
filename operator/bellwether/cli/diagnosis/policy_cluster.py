"""Connect to the Kafka cluster of a policy with its addresses and Secrets, for ``bellwether doctor --policy``.

In: a policy's name. Out: a ``PolicyCluster``, with what the policy has demoted and judges unhealthy. The Secrets are
read with the rights of the user who runs the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.broker_health import BrokerHealth, BrokerVerdict
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.status_conditions import condition
from bellwether.cli.commands.kubernetes_options import Target
from bellwether.cli.diagnosis import policy_view
from bellwether.cli.diagnosis.policy_view import PolicyView
from bellwether.cli.diagnosis.remedies import remedy, typed
from bellwether.cli.kubernetes_target import connect_policy
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.moments import since
from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.doctor.cause_remediation import few_brokers
from bellwether.core.doctor.remediation import Remediation
from bellwether.core.doctor.unhealthy_leaders import UnhealthyBroker
from bellwether.core.reasons import DESCRIPTIONS, Reason, reason_named
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError, Terminal

_SHOWN_BROKERS = 8


@dataclass(frozen=True)
class PolicyCluster:
    """A policy's connection and name, the cluster id that it is pinned to (empty: none yet), and notes.

    ``unhealthy``: the brokers that it judges Sick or Down; None if its verdicts cannot be read.
    """

    connection: Connection
    namespace: str
    policy: str
    cluster_id: str
    notes: tuple[str, ...]
    unhealthy: tuple[UnhealthyBroker, ...] | None = None

    def check(self, cluster_id: str) -> None:
        """Raise Terminal if the addresses lead to another cluster."""
        if self.cluster_id and cluster_id != self.cluster_id:
            raise Terminal(
                f"the addresses lead to Kafka cluster {cluster_id}, and the policy is pinned to {self.cluster_id}: "
                "correct --bootstrap, or spec.kafka of the policy"
            )


@contextmanager
def policy_cluster(target: Target, bootstrap: tuple[str, ...]) -> Iterator[PolicyCluster]:
    """The cluster of a policy; ``bootstrap`` replaces its addresses. Raises Terminal, Transient or Unauthenticated.

    The files that Secrets are written to exist as long as the context.
    """
    api, namespace, policy = connect_policy(target)
    body = broker_lookup.find_policy(api, namespace, policy)
    found = LeadershipPolicy.read(body)
    notes = list(_demotions(api, namespace, policy))
    unhealthy = _unhealthy(api, body, notes)
    with SecretReader(api, namespace) as secrets:
        made = connection(found.spec.kafka, secrets, bootstrap)
        yield PolicyCluster(made, namespace, policy, found.status.cluster_id, tuple(notes), unhealthy)


def _demotions(api: KubernetesClient, namespace: str, policy: str) -> Iterator[str]:
    """Brokers that the policy has demoted, by its undo record."""
    try:
        record = ConfigMapRecords(api, namespace, policy).read()
    except BellwetherError as error:
        yield f"the undo record of policy {namespace}/{policy} cannot be read: {error}"
        return
    if record is None or not record.demoted:
        return
    brokers = sorted(record.demoted.values(), key=lambda d: d.broker)
    shown = ", ".join(f"{d.broker} ({d.reason})" for d in brokers[:_SHOWN_BROKERS])
    more = f" and {len(brokers) - _SHOWN_BROKERS} more" if len(brokers) > _SHOWN_BROKERS else ""
    yield f"demoted by policy {namespace}/{policy}: broker {shown}{more}"


def _unhealthy(api: KubernetesClient, body: Object, notes: list[str]) -> tuple[UnhealthyBroker, ...] | None:
    """Brokers that the policy judges Sick or Down; adds to ``notes`` why a verdict is missing or old."""
    policy = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
    try:
        view = policy_view.read_rest(api, body, None, SystemClock().now())
    except BellwetherError as error:
        notes.append(f"the verdicts of policy {policy} cannot be read: {error}")
        return None
    if view.unattended and view.renewed is not None:
        notes.append(f"no operator is at work, {since(view.renewed, view.now)}: verdicts on brokers are as old")
    judged = [(health, health.status.verdict) for health in view.brokers if health.status.verdict is not None]
    known = [health.spec.broker_id for health, verdict in judged if verdict.state is not HealthState.UNKNOWN]
    if not known:
        notes.append(f"policy {policy} judges no broker: whether clients reach the leaders is unknown")
        return None
    if unknown := [h.spec.broker_id for h in view.brokers if h.spec.broker_id not in known]:
        notes.append(
            f"policy {policy} cannot judge {few_brokers(unknown)}: whether clients reach what "
            f"{'it leads' if len(unknown) == 1 else 'they lead'} is unknown"
        )
    return tuple(_broker(health, verdict, view) for health, verdict in judged if verdict.state in SHOULD_NOT_LEAD)


def _broker(health: BrokerHealth, verdict: BrokerVerdict, view: PolicyView) -> UnhealthyBroker:
    demoted, metadata = condition(health.status.conditions, "Demoted"), view.policy.metadata
    number = str(health.spec.broker_id)
    named = f"{number} --policy {metadata.name} -n {metadata.namespace}"

    def advised(reason: str) -> str:
        return typed(remedy(reason), metadata.namespace, metadata.name, number)

    steps = [Remediation(advised(verdict.reason), "nothing", checks=(f"bellwether explain {named}",))]
    kept = ""
    if demoted is not None and str(demoted.status) != "True":
        kept = f"{demoted.reason}: {demoted.message}"
        if demoted.reason != verdict.reason:
            overrides = (f"bellwether demote {named}",) if demoted.reason == Reason.CAP_REACHED else ()
            steps.append(Remediation(advised(demoted.reason), "nothing: no data moves", overrides))
    message = verdict.message or DESCRIPTIONS[reason_named(verdict.reason)]
    known = tuple(step for step in steps if step.do)
    return UnhealthyBroker(health.spec.broker_id, str(verdict.state), verdict.reason, message, kept, known)

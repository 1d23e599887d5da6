"""Connect to the Kafka cluster of a policy with its addresses and Secrets, for ``bellwether doctor --policy``.

In: a policy's name. Out: a ``PolicyCluster``. The Secrets are read with the rights of the user who runs the command.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from bellwether.adapters.kubernetes.kafka_cluster.connection_resolver import connection
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.leadership import broker_lookup
from bellwether.kafka_connection import Connection
from bellwether.ports.errors import BellwetherError, Terminal

_SHOWN_BROKERS = 8


@dataclass(frozen=True)
class PolicyCluster:
    """Connection of a policy, the id of the cluster that it is pinned to (empty: none yet), and notes for the user."""

    connection: Connection
    cluster_id: str
    notes: tuple[str, ...]

    def check(self, cluster_id: str) -> None:
        """Raise Terminal if the addresses lead to another cluster."""
        if self.cluster_id and cluster_id != self.cluster_id:
            raise Terminal(
                f"the addresses lead to Kafka cluster {cluster_id}, and the policy is pinned to {self.cluster_id}: "
                "correct --bootstrap, or spec.kafka of the policy"
            )


@contextmanager
def policy_cluster(namespace: str, policy: str, bootstrap: tuple[str, ...]) -> Iterator[PolicyCluster]:
    """The cluster of a policy; ``bootstrap`` replaces its addresses. Raises Terminal, Transient or Unauthenticated.

    The files that Secrets are written to exist as long as the context.
    """
    api = connect(timeout_seconds=broker_lookup.ANSWER_SECONDS)
    found = LeadershipPolicy.read(broker_lookup.find_policy(api, namespace, policy))
    with SecretReader(api, namespace) as secrets:
        made = connection(found.spec.kafka, secrets, bootstrap)
        yield PolicyCluster(made, found.status.cluster_id, tuple(_demotions(api, namespace, policy)))


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

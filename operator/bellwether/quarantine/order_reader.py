"""Read the quarantine order of a broker from its Lease (``quarantine.agent_loop.Orders``).

In: a client, the namespace of the operator's Leases, the policy, the broker. Out: the current order, and the id of
another broker of the policy that is held. Called by ``bellwether quarantine-agent`` each second; its time limit is
short: the broker may be held meanwhile.
"""

from __future__ import annotations

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.objects.quarantine_orders import hold_order
from bellwether.core.quarantine.agent import OrderRead
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.signals import Reading

TIMEOUT_SECONDS = 2.0


class BrokerOrders:
    """The orders of one broker; ``namespace`` is the policy's."""

    def __init__(self, api: KubernetesClient, lease_namespace: str, namespace: str, policy: str, broker: int) -> None:
        self._api = api.with_timeout(TIMEOUT_SECONDS)
        self._lease_namespace = lease_namespace
        self._namespace = namespace
        self._policy = policy
        self._broker = broker

    def read(self) -> OrderRead:
        """The current order; a broker without a Lease has none. Raises Transient or Terminal."""
        name = object_names.quarantine_order(self._namespace, self._policy, self._broker)
        lease = self._api.find(LEASES, self._lease_namespace, name)
        command = hold_order(lease, self._broker) if lease is not None else None
        # Looked for only where there is something to obey: it is one list request.
        return OrderRead(command, self._held_elsewhere() if command is not None else None)

    def _held_elsewhere(self) -> int | None:
        labels = {object_names.POLICY_LABEL: object_names.legal(self._policy)}
        for one in self._api.list(BROKER_HEALTHS, self._namespace, labels):
            broker = (one.get("spec") or {}).get("brokerId")
            if isinstance(broker, int) and broker != self._broker and self._holds(one):
                return broker
        return None

    @staticmethod
    def _holds(found: Object) -> bool:
        entries = (found.get("status") or {}).get("signals") or []
        return any(e.get("type") == QUARANTINE_AGENT and e.get("reading") == Reading.FAILING for e in entries)

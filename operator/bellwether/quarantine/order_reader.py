"""Read the quarantine order of a broker from ``status.quarantine`` of its BrokerHealth
(``quarantine.agent_ports.Orders``).

In: a client, the policy, the broker. Out: the current order, and the id of another broker
of the policy that is paused. Called by ``bellwether quarantine-agent`` each second; its time limit is short: the broker
may be paused meanwhile.
"""

from __future__ import annotations

from pydantic import ValidationError

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, KubernetesClient, NotFound, Object
from bellwether.api.v1alpha1.base_model import explain
from bellwether.api.v1alpha1.spec.quarantine_spec import QuarantineStatus
from bellwether.core.quarantine.agent import OrderRead, PauseOrder
from bellwether.core.settings.detection import QUARANTINE_AGENT
from bellwether.core.signals import Reading
from bellwether.ports.errors import Terminal

TIMEOUT_SECONDS = 2.0


class BrokerOrders:
    """The orders of one broker."""

    def __init__(self, api: KubernetesClient, namespace: str, policy: str, broker: int) -> None:
        self._api = api.with_timeout(TIMEOUT_SECONDS)
        self._namespace = namespace
        self._policy = policy
        self._broker = broker

    def read(self) -> OrderRead:
        """The current order; a broker whose object is gone has none. Raises Transient or Terminal."""
        name = object_names.broker_health(self._policy, self._broker)
        try:
            found = self._api.get(BROKER_HEALTHS, self._namespace, name)
        except NotFound:
            return OrderRead()
        command = command_of(found)
        # Looked for only where there is something to obey: it is one list request.
        return OrderRead(command, self._paused_elsewhere() if command is not None and not self._pauses(found) else None)

    def _paused_elsewhere(self) -> int | None:
        labels = {object_names.POLICY_LABEL: object_names.legal(self._policy)}
        for one in self._api.list(BROKER_HEALTHS, self._namespace, labels):
            broker = (one.get("spec") or {}).get("brokerId")
            if isinstance(broker, int) and broker != self._broker and self._pauses(one):
                return broker
        return None

    @staticmethod
    def _pauses(found: Object) -> bool:
        entries = (found.get("status") or {}).get("signals") or []
        return any(e.get("type") == QUARANTINE_AGENT and e.get("reading") == Reading.FAILING for e in entries)


def command_of(found: Object) -> PauseOrder | None:
    """The order in a BrokerHealth, if any. Raises Terminal for one that cannot be parsed."""
    raw = (found.get("status") or {}).get("quarantine")
    if raw is None:
        return None
    try:
        status = QuarantineStatus.model_validate(raw)
    except ValidationError as error:
        raise Terminal(f"status.quarantine cannot be understood: {explain(error)}") from error
    if status.ended_at is not None:
        return None
    limit = (status.until - status.since).total_seconds()
    return PauseOrder(status.epoch, status.number, status.renewed_at, max(0.0, limit))

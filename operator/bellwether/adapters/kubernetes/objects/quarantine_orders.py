"""Quarantine orders as Leases: one per broker to hold, renewed by each reconcile that still requires the hold.

In: the orders of one policy. Out: Leases in the namespace of the operator's other Leases, where a prober has no
permission; an order that is over keeps its Lease, without a holder, until it no longer matters. Called by ``reconcile``
through ``ports.kubernetes.QuarantineOrders``, by the finalizer, and each second (``BrokerOrders``) by the quarantine
agent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.adapters.kubernetes.leases import POLICY_ANNOTATION, micro_time
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, QuarantineOrder
from bellwether.core.quarantine.agent import HoldOrder, OrderRead
from bellwether.core.signals import QUARANTINE_AGENT, Reading
from bellwether.ports.errors import Terminal, Transient

COMPONENT = "quarantine-order"
EPOCH, NUMBER, UNTIL = "bellwether.dev/epoch", "bellwether.dev/order", "bellwether.dev/hold-until"
HELD_AT, ENDED_AT = "bellwether.dev/held-at", "bellwether.dev/ended-at"
FREEZES = "bellwether.dev/freezes"
REASON, MESSAGE = "bellwether.dev/reason", "bellwether.dev/message"
MESSAGE_LIMIT = 1024
TIMEOUT_SECONDS = 2.0

log = structlog.get_logger(__name__)


class LeaseOrders:
    """``ports.kubernetes.QuarantineOrders`` of one policy; ``policy`` is ``namespace/name``.

    ``seconds_left`` is for how long this process surely leads; it writes nothing afterwards. A Lease is written only
    over the version that this process read or wrote last. One that a person deletes is not created again: its order is
    withdrawn.
    """

    def __init__(
        self,
        api: KubernetesClient,
        lease_namespace: str,
        policy: str,
        holder: str = "",
        seconds_left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._api = api.with_timeout(TIMEOUT_SECONDS)
        self._namespace = lease_namespace
        self._policy = policy
        self._holder = holder
        self._seconds_left = seconds_left
        self._leases: dict[int, Object] = {}
        self._written: dict[int, QuarantineOrder] = {}
        self._deleted: dict[int, tuple[str, str]] = {}

    def take_over(self) -> Mapping[int, QuarantineOrder]:
        """The orders of the Leases. One that cannot be read is no order, and is removed by the next ``keep``."""
        self._leases = self._found()
        self._written, self._deleted = {}, {}
        for broker, lease in self._leases.items():
            try:
                self._written[broker] = order_of(lease, broker)
            except Terminal as error:
                log.warning("quarantine_order_not_read", broker=broker, error=str(error))
        return dict(self._written)

    def keep(self, orders: Mapping[int, QuarantineOrder]) -> None:
        """Write what has changed. The first failure ends it; the next reconcile continues."""
        try:
            for broker in sorted(set(self._leases) - set(orders)):
                if self._seconds_left() > 0:
                    self._remove(broker)
            for broker, order in orders.items():
                if order != self._written.get(broker) and self._seconds_left() > 0:
                    self._write(order)
        except (Transient, Terminal) as error:
            log.warning("quarantine_order_not_written", error=str(error))

    def remove(self) -> None:
        """Remove all orders of the policy, whichever process wrote them. Raises Transient or Terminal."""
        self._leases = self._found()
        for broker in sorted(self._leases):
            self._remove(broker)

    def _found(self) -> dict[int, Object]:
        labels = {
            object_names.COMPONENT_LABEL: COMPONENT,
            object_names.POLICY_LABEL: object_names.legal(self._policy.partition("/")[2]),
        }
        found = {}
        for lease in self._api.list(LEASES, self._namespace, labels):
            metadata = lease["metadata"]
            broker = (metadata.get("labels") or {}).get(object_names.BROKER_LABEL, "")
            # Labels are for selection; the name says whose order it is.
            if broker.isdecimal() and metadata["name"] == self._name(int(broker)):
                found[int(broker)] = lease
        return found

    def _name(self, broker: int) -> str:
        namespace, _, name = self._policy.partition("/")
        return object_names.quarantine_order(namespace, name, broker)

    def _remove(self, broker: int) -> None:
        lease = self._leases[broker]
        try:
            self._api.delete(LEASES, self._namespace, lease["metadata"]["name"], lease["metadata"]["resourceVersion"])
        except (Conflict, NotFound):
            if not self._gone(broker):
                raise
        self._leases.pop(broker, None)
        self._written.pop(broker, None)

    def _write(self, order: QuarantineOrder) -> None:
        lease, broker, body = self._leases.get(order.broker), order.broker, self._lease(order)
        if self._deleted.get(broker) == _identity(body):
            return
        try:
            if lease is None:
                written = self._api.create(LEASES, self._namespace, body)
            else:
                # Without the uid, the API server would create a Lease that is gone.
                known = {key: lease["metadata"][key] for key in ("uid", "resourceVersion")}
                body["metadata"] = {**body["metadata"], **known}
                written = self._api.replace(LEASES, self._namespace, body)
        except (Conflict, NotFound):
            if not self._gone(broker) or lease is None:
                raise
            log.warning("quarantine_order_deleted", broker=broker, lease=f"{self._namespace}/{self._name(broker)}")
            self._deleted[broker] = _identity(lease)
            self._write(order)  # which is another order, or is not written
            return
        self._leases[broker], self._written[broker] = written, order

    def _gone(self, broker: int) -> bool:
        """Read a Lease again after a conflict; whether it is gone.

        Otherwise an answer was lost, or another process wrote: the next reconcile writes over what is there now.
        """
        self._written.pop(broker, None)
        self._leases.pop(broker, None)
        found = self._api.find(LEASES, self._namespace, self._name(broker))
        if found is not None:
            self._leases[broker] = found
        return found is None

    def _lease(self, order: QuarantineOrder) -> Object:
        annotations = {
            POLICY_ANNOTATION: self._policy,
            EPOCH: str(order.epoch),
            NUMBER: str(order.number),
            UNTIL: micro_time(order.until),
            REASON: str(order.reason),
            MESSAGE: order.message[:MESSAGE_LIMIT],
            **({HELD_AT: micro_time(order.held_at)} if order.held_at is not None else {}),
            **({ENDED_AT: micro_time(order.ended_at)} if order.ended_at is not None else {}),
            **({FREEZES: "true"} if order.freezes else {}),
        }
        labels = {
            "app.kubernetes.io/name": "bellwether",
            object_names.COMPONENT_LABEL: COMPONENT,
            object_names.POLICY_LABEL: object_names.legal(self._policy.partition("/")[2]),
            object_names.BROKER_LABEL: str(order.broker),
        }
        metadata = {"name": self._name(order.broker), "namespace": self._namespace}
        return {
            "metadata": {**metadata, "labels": labels, "annotations": annotations},
            "spec": {
                "holderIdentity": self._holder if order.active else "",
                "leaseDurationSeconds": round(EXPIRES_AFTER_SECONDS),
                "acquireTime": micro_time(order.since),
                "renewTime": micro_time(order.renewed_at),
            },
        }


def _identity(lease: Object) -> tuple[str, str]:
    """Epoch and number of the order in a Lease."""
    said = lease["metadata"].get("annotations") or {}
    return said.get(EPOCH, ""), said.get(NUMBER, "")


def order_of(lease: Object, broker: int) -> QuarantineOrder:
    """The order that a Lease holds, ended or not. Raises Terminal for one that cannot be understood."""
    said, spec = lease["metadata"].get("annotations") or {}, lease.get("spec") or {}
    try:
        return QuarantineOrder(
            broker=broker,
            epoch=int(said[EPOCH]),
            number=int(said[NUMBER]),
            since=_moment(spec["acquireTime"]),
            until=_moment(said[UNTIL]),
            renewed_at=_moment(spec["renewTime"]),
            reason=said[REASON],
            message=said.get(MESSAGE, ""),
            held_at=_moment(said[HELD_AT]) if HELD_AT in said else None,
            ended_at=_moment(said[ENDED_AT]) if ENDED_AT in said else None,
            freezes=said.get(FREEZES) == "true",
        )
    except (KeyError, ValueError, TypeError) as error:
        name = f"{lease['metadata'].get('namespace', '')}/{lease['metadata']['name']}"
        raise Terminal(f"Lease {name} is no quarantine order ({type(error).__name__}: {error}): delete it") from error


def hold_order(lease: Object, broker: int) -> HoldOrder | None:
    """What a quarantine agent obeys of a Lease; None for one without a holder. Raises Terminal as ``order_of``."""
    spec = lease.get("spec") or {}
    if not spec.get("holderIdentity"):
        return None
    order = order_of(lease, broker)
    if not order.active:
        return None
    limit = max(0.0, (order.until - order.since).total_seconds())
    return HoldOrder(order.epoch, order.number, order.renewed_at, limit, float(spec.get("leaseDurationSeconds") or 0))


class BrokerOrders:
    """The orders of one broker, for its quarantine agent; ``namespace`` is the policy's.

    The time limit is short: the broker may be held meanwhile.
    """

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


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment

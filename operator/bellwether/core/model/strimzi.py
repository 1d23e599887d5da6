"""State of a Strimzi-managed Kafka cluster: listeners, pause and rebalances, and its pods.

Built by the Strimzi adapter. Pure: ``choose_listener`` finds the listener for a policy that names none;
``Strimzi.external_operation`` is why deferrable work waits (invariant 10). Names and types are those of Strimzi's API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bellwether.core.model.broker_identity import Pod
from bellwether.core.model.refusals import Refusal
from bellwether.core.reasons import Reason

NO_AUTHENTICATION = ""
"""Authentication of a listener without client authentication."""

_INSIDE = frozenset({"internal", "cluster-ip"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listener. ``bootstrap`` (``host:port``) and ``certificates`` (PEM) are empty until Strimzi publishes them.

    ``own_certificate``: its brokers use certificates that the cluster's own CA did not sign.
    """

    name: str
    port: int = 0
    type: str = "internal"
    tls: bool = False
    authentication: str = NO_AUTHENTICATION
    own_certificate: bool = False
    bootstrap: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()

    @property
    def internal(self) -> bool:
        """Whether it is reachable only from within the Kubernetes cluster."""
        return self.type in _INSIDE

    @property
    def advertised_as(self) -> str:
        """Its name in the brokers' ``advertised.listeners``."""
        return f"{self.name.upper()}-{self.port}"

    def __str__(self) -> str:
        return f"{self.name} ({self.type}, {'TLS' if self.tls else 'no TLS'}, {self.authentication or 'no user'})"


def choose_listener(
    listeners: Sequence[Listener], wanted: str, accepted: Sequence[str], otherwise: str
) -> Listener | Refusal:
    """The listener to connect to: the one named ``wanted``, else the best internal one.

    ``accepted`` are the supported kinds of authentication, best first; ``otherwise`` explains, for the message, why no
    other is supported. Without a name, a listener with authentication but without TLS is not chosen.
    """
    there = ", ".join(str(one) for one in listeners) or "none"
    if not wanted:
        fitting = [
            one
            for one in listeners
            if one.internal and one.authentication in accepted and (one.tls or one.authentication == NO_AUTHENTICATION)
        ]
        if fitting:
            return min(fitting, key=lambda one: (accepted.index(one.authentication), not one.tls))
        text = f"no internal listener is suitable, because {otherwise}; the listeners are: {there}"
        return Refusal(Reason.STRIMZI_REFERENCE_INVALID, f"{text}. Set spec.kafka.strimzi.listener to one of them")
    named = next((one for one in listeners if one.name == wanted), None)
    if named is None:
        return Refusal(Reason.STRIMZI_REFERENCE_INVALID, f"there is no listener {wanted}; the listeners are: {there}")
    if named.authentication not in accepted:
        return Refusal(Reason.STRIMZI_REFERENCE_INVALID, f"listener {named} is not suitable: {otherwise}")
    return named


def external_listeners(listeners: Iterable[Listener], wanted: Sequence[str]) -> tuple[Listener | str, ...]:
    """The listeners of external clients, in order: those of these names, and a name that none has as it is.

    Without a name, or with one that none has, as the default, it is the first listener that is not internal.
    """
    known = tuple(listeners)
    found: list[Listener | str] = [
        next((one for one in known if name in (one.name, one.advertised_as)), name) for name in wanted
    ]
    if len(found) < 2 and not isinstance(next(iter(found), ""), Listener):
        found = [*[one for one in known if not one.internal], *found][:1]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class Strimzi:
    """State of one Strimzi cluster, and operations in progress.

    ``listener`` and ``user`` are used to connect (an empty user: without authentication). ``rebalancing`` names the
    KafkaRebalances that are moving replicas or leaders.
    """

    namespace: str
    name: str
    listener: str
    user: str = ""
    paused: bool = False
    rebalancing: tuple[str, ...] = ()
    pods: Mapping[int, Pod] = field(default_factory=dict)

    @property
    def external_operation(self) -> Refusal | None:
        """Why promotion, rebalancing and re-assertion wait, if they do."""
        if self.paused:
            text = (
                f"Kafka {self.namespace}/{self.name} has the annotation strimzi.io/pause-reconciliation; continues when"
                " it is removed"
            )
            return Refusal(Reason.EXTERNAL_OPERATION, text)
        if self.rebalancing:
            names = ", ".join(self.rebalancing)
            return Refusal(Reason.EXTERNAL_OPERATION, f"KafkaRebalance {names} is running; continues when it has ended")
        return None

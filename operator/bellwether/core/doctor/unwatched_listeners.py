"""Which advertised listeners are not watched, for ``bellwether doctor``.

In: brokers' own settings, and the listeners that the policy watches. Metadata names only the listener that was asked;
a broker's settings name all of them. Those between brokers, of controllers and of the policy's own connection are
no clients' listeners.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bellwether.core.doctor.cause_remediation import few_brokers
from bellwether.core.model.broker_identity import ADVERTISED_LISTENERS, LISTENERS, advertised_listeners

_BETWEEN_BROKERS, _PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
_CONTROLLERS = "controller.listener.names"
LISTENER_SETTINGS = (ADVERTISED_LISTENERS, LISTENERS, _BETWEEN_BROKERS, _PROTOCOL, _CONTROLLERS)
"""The settings of a broker that ``check_listeners`` reads."""

FIELD = "spec.detection.externalReachability.listeners"


@dataclass(frozen=True, slots=True)
class ListenerCheck:
    """``unwatched``: advertised and not watched, with the brokers. ``absent``: watched, and no broker advertises it.

    ``unread``: brokers whose settings could not be read, with ``problem`` where that says more.
    """

    unwatched: Mapping[str, tuple[int, ...]]
    absent: tuple[str, ...] = ()
    unread: tuple[int, ...] = ()
    problem: str = ""

    def sentences(self) -> Iterator[str]:
        """What is wrong, each with the remedy; nothing where all is watched."""
        for name, brokers in self.unwatched.items():
            yield (
                f"listener {name} of {few_brokers(brokers)} is not watched: if clients use it, add {name} to {FIELD};"
                " until then no fault of it is found"
            )
        for name in self.absent:
            yield f"listener {name} is watched, and no broker advertises it: correct {FIELD}"
        if self.unread:
            remedy = self.problem or "allow DescribeConfigs on Cluster to the policy's user, and run this again"
            yield f"listeners of {few_brokers(self.unread)} were not checked: {remedy}"


def check_listeners(
    settings: Mapping[int, Mapping[str, str]],
    watched: Sequence[str],
    addresses: Mapping[int, str],
    brokers: Collection[int],
    problem: str = "",
) -> ListenerCheck:
    """Compare what ``brokers`` advertise with what is watched.

    ``settings``: ``LISTENER_SETTINGS`` of each broker that was read; ``addresses``: ``host:port`` of each broker on the
    policy's own connection.
    """
    unwatched: dict[str, list[int]] = {}
    seen: set[str] = set()
    for broker, known in sorted(settings.items()):
        advertised = advertised_listeners(known, nowhere=True)
        seen.update(advertised)
        internal = {name for name, address in advertised.items() if address == addresses.get(broker)}
        for name in sorted(set(advertised) - internal - _of_brokers(known) - set(watched)):
            unwatched.setdefault(name, []).append(broker)
    unread = tuple(sorted(set(brokers) - settings.keys()))
    absent = () if unread or not seen else tuple(name for name in watched if name not in seen)
    return ListenerCheck({name: tuple(ids) for name, ids in unwatched.items()}, absent, unread, problem)


def _of_brokers(known: Mapping[str, str]) -> set[str]:
    """Listeners of brokers and controllers among themselves; one without a name is called as its protocol."""
    controllers = {name.strip() for name in known.get(_CONTROLLERS, "").split(",")}
    return {known.get(_BETWEEN_BROKERS) or known.get(_PROTOCOL) or "PLAINTEXT", *controllers}

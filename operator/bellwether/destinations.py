"""Destinations: which addresses the connections of a policy may go to, by the administrator's list.

In: entries such as ``10.0.0.0/8:9092-9094`` and ``*.kafka.example.com``. Out: a check of each address that a socket is
about to connect to, after its name was resolved, so that a name cannot lead elsewhere than where it led when it was
checked. Connections that a person makes by hand go ``ANYWHERE``. Also the one syntax of hosts and ports in addresses
and URLs that people write.
"""

from __future__ import annotations

import errno
import ipaddress
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)"
PORT = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
PROXY = f"^https?://{HOST}:{PORT}$"
"""Regular expressions for RE2, CEL and Python: a name, an IPv4 address or one of IPv6 in brackets; a port; a proxy."""

ENTRY = (
    r"^(\[[0-9A-Fa-f:.]+(/[0-9]{1,3})?\]|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(/[0-9]{1,2})?"
    r"|(\*\.)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)"
    f"(:{PORT}(-{PORT})?)?$"
)
ENTRY_SYNTAX = (
    "must be a network, an address, a host name, or '*.' and a domain, with a port or a range of ports where they are"
    " limited, such as 10.0.0.0/8, [2001:db8::/32]:9093 or *.kafka.example.com:9092-9094"
)
VARIABLE = "BELLWETHER_ALLOWED_DESTINATIONS"
"""Environment variable with the entries, separated by blanks."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_ALL_PORTS = (1, 65535)


class DestinationRefused(PermissionError):
    """No connection was made: policies may not have one to this address."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            errno.EACCES,
            f"policies may not connect to {host}, port {port}: an administrator can add it to the chart value"
            " allowedDestinations (option --allow-destination)",
        )


@dataclass(frozen=True, slots=True)
class Destination:
    """One entry: a network, or a name, which ``*.`` may precede; and its ports."""

    network: Network | None
    name: str = ""
    ports: tuple[int, int] = _ALL_PORTS

    @classmethod
    def parse(cls, text: str) -> Destination:
        """Raises ValueError."""
        found = re.fullmatch(ENTRY, text)
        if found is None:
            raise ValueError(f"{text!r} {ENTRY_SYNTAX}")
        host, first = found[1], found[7]
        ports = (int(first), int(found[9] or first)) if first else _ALL_PORTS
        if ports[0] > ports[1]:
            raise ValueError(f"{text!r} has a range of ports that ends before it begins")
        if host[0] == "[" or host.rpartition(".")[2].partition("/")[0].isdigit():
            try:
                return cls(ipaddress.ip_network(host.strip("[]")), ports=ports)
            except ValueError as error:
                raise ValueError(f"{text!r}: {error}") from None
        return cls(None, host.lower(), ports)

    def holds(self, hosts: tuple[str, ...], address: Any, port: int) -> bool:
        """Whether a connection to that address, which one of the hosts was resolved to, is one of these."""
        if not self.ports[0] <= port <= self.ports[1]:
            return False
        if self.network is not None:
            return address in self.network
        names = [host.lower().rstrip(".") for host in hosts]
        return any(name == self.name or (self.name[0] == "*" and name.endswith(self.name[1:])) for name in names)

    def within(self, network: Any) -> bool:
        """Whether it is a part of that network, and nothing else."""
        own = self.network
        return own is not None and own.version == network.version and bool(own.subnet_of(network))


_LOCAL = tuple(
    Destination(ipaddress.ip_network(text))
    for text in (
        *("0.0.0.0/8", "127.0.0.0/8", "::/96", "169.254.0.0/16", "fe80::/10"),
        *("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128"),
        *("64:ff9b::7f00:0/104", "64:ff9b::a9fe:0/112", "2002:7f00::/24", "2002:a9fe::/32"),
    )
)
"""What is this machine, link-local, or a metadata server of a cloud; also through NAT64 and 6to4."""


@dataclass(frozen=True, slots=True)
class Destinations:
    """Where connections may go: to one of ``allowed``, or anywhere without any entry, but not to one of ``closed``.

    An entry opens what is closed only where it is a part of that: ``127.0.0.1`` does, ``0.0.0.0/0`` and names do not.
    """

    allowed: tuple[Destination, ...] = ()
    closed: tuple[Destination, ...] = _LOCAL

    def without(self, servers: Iterable[tuple[str, int]]) -> Destinations:
        """The same with these servers closed too, each an IP address and a port."""
        further = tuple(Destination(ipaddress.ip_network(host), ports=(port, port)) for host, port in sorted(servers))
        return replace(self, closed=(*self.closed, *further))

    def check(self, hosts: tuple[str, ...], target: Any) -> None:
        """Raise DestinationRefused unless a socket may connect to ``target``, which one of ``hosts`` is resolved to."""
        if self == ANYWHERE:
            return
        try:
            address, port = ipaddress.ip_address(target[0].partition("%")[0]), int(target[1])
        except (ValueError, AttributeError, IndexError, TypeError):  # a name, or a socket of another family
            raise DestinationRefused(", ".join(hosts), 0) from None
        inner = getattr(address, "ipv4_mapped", None) or address
        matching = [one for one in self.allowed if one.holds(hosts, inner, port)]
        closed = [one.network for one in self.closed if one.holds((), inner, port)]
        opened = all(any(one.within(network) for one in matching) for network in closed)
        if not (opened and (matching or not self.allowed)):
            raise DestinationRefused(", ".join(hosts), port)

    @contextmanager
    def guard(self, *hosts: str) -> Iterator[list[DestinationRefused]]:
        """Check every connection that this thread makes in the block by Python's sockets, whatever library makes it.

        Names among the entries count for these ``hosts``. Gives what was refused, as libraries hide such errors. A
        hook sees the address that a socket connects to: what was resolved before is no proof of it.
        """
        refused: list[DestinationRefused] = []
        if self == ANYWHERE:
            yield refused
            return
        _install()
        token = _guarding.set((self, hosts, refused))
        try:
            yield refused
        finally:
            _guarding.reset(token)


NOT_LOCAL = Destinations()
ANYWHERE = Destinations(closed=())
"""For connections that a person or an administrator names."""

_guarding: ContextVar[tuple[Destinations, tuple[str, ...], list[DestinationRefused]] | None] = ContextVar(
    "destinations", default=None
)


@cache
def _install() -> None:
    """Audit hooks (PEP 578) cannot be removed: one, for the process."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and (guarding := _guarding.get()) is not None:
        destinations, hosts, refused = guarding
        try:
            destinations.check(hosts, arguments[1])
        except DestinationRefused as error:
            refused.append(error)
            raise

"""HTTP proxies that a person chose, for requests: settings of a session, and what a proxy's refusal means.

In: a ``kafka_connection.HttpProxy``. Out: the ``proxies`` of a session without environment, and an error that names the
proxy and not its password. For token endpoints and Prometheus.
"""

from __future__ import annotations

import re

from bellwether.kafka_connection import HttpProxy
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated

_STATUS = re.compile(r"Tunnel connection failed: ([0-9]{3})")


def proxied(proxy: HttpProxy | None) -> dict[str, str]:
    """The ``proxies`` of a session; empty for none. With ``trust_env`` those of the environment are used, too."""
    return {} if proxy is None else {"http": str(proxy.address), "https": str(proxy.address)}


def proxy_failure(error: Exception, proxy: HttpProxy | None, where: str) -> BellwetherError:
    """What it means that a request by way of a proxy failed; ``where`` is what it was meant for."""
    found = _STATUS.search(str(error))
    return refusal(int(found[1]) if found else 0, proxy, where)


def refusal(status: int, proxy: HttpProxy | None, where: str) -> BellwetherError:
    """What the status of a proxy means; 0: it was not reached."""
    name = proxy_title(proxy)
    if status == 407:
        return Unauthenticated(f"{name} refuses its user ({status}): check its user name and password")
    if 400 <= status < 500:
        return Terminal(f"{name} does not let requests to {where} pass ({status}): allow that there")
    if status:
        return Transient(f"{name} cannot reach {where} now ({status})")
    return Transient(f"{name} cannot be reached, or ends the connection")


def proxy_title(proxy: HttpProxy | None) -> str:
    """A proxy by the field that sets it and its URL, which has no password."""
    return f"{proxy.name} {proxy.url}" if proxy is not None else "the proxy"

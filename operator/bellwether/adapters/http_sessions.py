"""HTTP requests with secrets in them, by way of a proxy that a person chose; answers bounded in time and in memory.

In: a ``kafka_connection.HttpProxy``, a file of certificates. Out: a session without environment, bodies, and errors
that name the proxy and not its password. For token endpoints and Prometheus.
"""

from __future__ import annotations

import re
import ssl
import time
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import parse_url

from bellwether.destinations import Destinations
from bellwether.kafka_connection import HttpProxy
from bellwether.ports.errors import BellwetherError, Terminal, Transient, Unauthenticated

_CHUNK = 65_536
_CONNECTIONS = 32
_STATUS = re.compile(r"Tunnel connection failed: ([0-9]{3})")


class _Guarded(HTTPAdapter):
    """Connects only where policies may. With a proxy that is the proxy: it decides where it goes itself."""

    def __init__(self, destinations: Destinations, proxy: HttpProxy | None) -> None:
        super().__init__(pool_connections=1, pool_maxsize=_CONNECTIONS, max_retries=0)
        self._destinations, self._proxy = destinations, proxy

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        """Raises Terminal if no address of the host is allowed."""
        host = parse_url(self._proxy.url if self._proxy is not None else str(request.url)).host or ""
        with self._destinations.guard(host.strip("[]")) as refused:
            try:
                return super().send(request, *arguments, **options)
            except requests.ConnectionError:
                if refused:
                    raise Terminal(str(refused[-1].strerror)) from None
                raise


def session_of(proxy: HttpProxy | None, ca: Path | str | None, destinations: Destinations) -> requests.Session:
    """A session without retries; ``ca`` is a PEM file of authorities, empty for those of the system."""
    session = requests.Session()
    # Neither a .netrc nor a proxy of the environment may decide where a secret goes.
    session.trust_env = False
    session.proxies = proxied(proxy)
    session.verify = str(ca) if ca else ssl.get_default_verify_paths().cafile or True
    adapter = _Guarded(destinations, proxy)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    session.headers.update({"Accept": "application/json", "Accept-Encoding": "identity"})
    return session


def read_body(response: requests.Response, limit: int, deadline: float, too_large: str) -> bytes:
    """The body of a streamed answer, of at most ``limit`` bytes. Raises Terminal, ``too_large``, if there are more.

    Raises requests.Timeout at the deadline (time.monotonic), also if the server drips bytes.
    """
    body = bytearray()
    while part := response.raw.read1(_CHUNK):
        body += part
        if len(body) > limit:
            raise Terminal(too_large)
        if time.monotonic() > deadline:
            raise requests.Timeout
    return bytes(body)


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

"""Prometheus client: instant queries (``/api/v1/query``) and alert rules (``rules``), bounded in time and in memory.

In: a base URL, optionally credentials, headers, a proxy and the certificates of an authority. Out: a ``QueryResponse``,
or Transient or Terminal with a sentence that is the same for the same failure and never holds a credential. Called by
``bellwether probe prometheus``, from one thread per rule.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import requests
import urllib3.exceptions

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.http_sessions import proxy_failure, read_body, refusal, session_of
from bellwether.adapters.prometheus.query_response import (
    SERIES_LIMIT,
    QueryResponse,
    error_of,
    read_answer,
    unevaluated,
)
from bellwether.destinations import Destinations
from bellwether.kafka_connection import Hidden, HttpProxy
from bellwether.ports.errors import Terminal, Transient

# A thousand brokers at a kilobyte of labels each are a quarter of it.
BODY_LIMIT = 4 * 1024 * 1024

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to get at a Prometheus: a bearer token, or a user and a password; headers, a proxy, certificates of CAs."""

    destinations: Destinations = field(repr=False)
    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    proxy: HttpProxy | None = None
    ca: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "token", Hidden(self.token))
        object.__setattr__(self, "password", Hidden(self.password))

    @property
    def authorization(self) -> Hidden:
        """The header Authorization; empty for none."""
        if self.token:
            return Hidden(f"Bearer {self.token}")
        pair = f"{self.username}:{self.password}"
        return Hidden(f"Basic {base64.b64encode(pair.encode()).decode()}" if self.username else "")


class PrometheusClient:
    """One Prometheus. Safe to use from several threads; one body at a time is read and held in memory."""

    def __init__(
        self,
        url: str,
        access: Access,
        *,
        body_limit: int = BODY_LIMIT,
        series_limit: int = SERIES_LIMIT,
    ) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/"
        self._body_limit = body_limit
        self._series_limit = series_limit
        self._reading = threading.Lock()
        self._proxy = access.proxy
        self._session = session_of(access.proxy, access.ca, access.destinations)
        self._session.headers.update(dict(access.headers))
        if access.authorization:
            self._session.headers["Authorization"] = access.authorization

    def ask(self, query: str, label: str, timeout_seconds: float) -> QueryResponse:
        """The values of a query that returns a series for each ``label``. Raises Transient or Terminal.

        Looking up the server's name and reading its headers obey no deadline of ours: a caller that must go on asks
        from a thread of its own.
        """
        deadline = time.monotonic() + timeout_seconds
        milliseconds = max(1, round(timeout_seconds * 1000))  # a duration of Prometheus has no decimals
        form = {"query": query, "timeout": f"{milliseconds}ms", "limit": str(self._series_limit + 1)}
        remedy = f"aggregate the query to one series for each {label}"
        for method in ("POST", "GET"):
            answer = self._send(
                method, "query", form, deadline, lambda body: read_answer(body, label, self._series_limit), remedy
            )
            if answer is not None:
                return answer
        raise Terminal("accepts neither POST nor GET: check url")

    def check_alerts(self, alerts: Collection[str], timeout_seconds: float) -> None:
        """Raise Terminal or Transient unless the rules of these alerts are evaluated: then no series means no alert."""
        deadline = time.monotonic() + timeout_seconds
        form: dict[str, str | list[str]] = {"type": "alert", "exclude_alerts": "true", "rule_name[]": sorted(alerts)}
        remedy = "use a Prometheus that knows the parameter rule_name"
        problem = self._send(
            "GET", "rules", form, deadline, lambda body: unevaluated(body, alerts, SystemClock().now()), remedy
        )
        if problem is None:
            raise Terminal("does not show its alert rules (/api/v1/rules): check url")
        if problem:
            raise Terminal(problem)

    def close(self) -> None:
        """Let go of the connections."""
        self._session.close()

    def _send(
        self,
        method: str,
        path: str,
        form: Mapping[str, str | list[str]],
        deadline: float,
        read: Callable[[bytes], _Read],
        remedy: str,
    ) -> _Read | None:
        """One request; None when it came to a gateway that does not let this method through.

        ``remedy`` is for a body that is too large.
        """
        posted = method == "POST"
        try:
            left = _left(deadline)
            with self._session.request(
                method,
                self._url + path,
                data=form if posted else None,
                params=None if posted else form,
                timeout=(left, left),
                stream=True,
                allow_redirects=False,
            ) as response:
                if response.status_code in (405, 501):
                    return None
                with _turn(self._reading, deadline):
                    text = f"answers with more than {self._body_limit // 1024} KiB: {remedy}"
                    body = read_body(response, self._body_limit, deadline, text)
                    if response.status_code == 407:
                        raise refusal(407, self._proxy, "url")
                    if response.status_code != 200:
                        raise error_of(response.status_code, body, path)
                    return read(body)
        except requests.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise Terminal(
                    "presents a certificate that is not trusted: check caSecretName and url's host"
                ) from None
            raise Terminal("does not complete a TLS handshake: check url's scheme and caSecretName") from None
        except requests.exceptions.ProxyError as error:
            raise proxy_failure(error, self._proxy, "url") from None
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            raise Transient("does not answer in time") from None
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema):
            raise Terminal("cannot be queried: url is not that of an HTTP server") from None
        except (requests.exceptions.InvalidHeader, UnicodeEncodeError):
            raise Terminal("cannot be queried: the credentials have characters that no header can have") from None
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
            raise Transient("cannot be reached, or ends the connection") from None


@contextmanager
def _turn(lock: threading.Lock, deadline: float) -> Iterator[None]:
    """The lock, which is waited for until the deadline."""
    if not lock.acquire(timeout=_left(deadline)):
        raise requests.Timeout
    try:
        yield
    finally:
        lock.release()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise requests.Timeout
    return left

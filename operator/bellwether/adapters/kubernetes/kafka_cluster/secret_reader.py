"""Read Kafka credentials from the Secrets that a policy references.

In: names of Secrets and keys. Out: the value, or a file that only this process's user can read, for clients that need
one; the files are removed with the reader, or at the end of the process. No value appears in a message (invariant 11).
Also the credentials that a policy names: user and password, an HTTP proxy, an identity of Bellwether's own pods. Called
by ``controllers`` and the CLI when a connection is made.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import os
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from bellwether.adapters.kubernetes.api_client import CORE, SECRETS, KubernetesClient
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.api.config.workload_identity import VARIABLE, WorkloadIdentities, WorkloadIdentity
from bellwether.api.v1alpha1.spec.credentials_spec import HttpProxy as HttpProxySpec
from bellwether.destinations import ANYWHERE, Destinations
from bellwether.kafka_connection import Hidden, HttpProxy, join_address, split_address
from bellwether.ports.errors import Terminal, Unauthenticated

PURPOSE_LABEL, PURPOSE = "bellwether.dev/purpose", "kafka"
"""Label of the Secrets that a policy may name where the operator could read any Secret (invariant 14)."""

# A connection that was made from an earlier version of a Secret may still use its files for a while.
KEPT_SECONDS = 3600.0
REFUSED_SECONDS = 600.0
_KAFKA_USER = ("strimzi.io/kind", "KafkaUser")
"""Label of the Secrets that Strimzi makes for its users."""


class OpenSecret:
    """One Secret at the time it was opened: its values belong together, even if it is changed meanwhile."""

    def __init__(self, title: str, data: Mapping[str, str], keep: Callable[[str, bytes], Path]) -> None:
        self.title = title
        self._data = data
        self._keep = keep

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the Secret, sorted."""
        return tuple(sorted(self._data))

    def raw(self, key: str) -> bytes:
        """One value. Raises Unauthenticated if there is no such key."""
        if key not in self._data:
            raise Unauthenticated(f"secret {self.title} has no key {key!r}; its keys: {', '.join(self.keys) or 'none'}")
        try:
            return base64.b64decode(self._data[key], validate=True)
        except binascii.Error:
            raise Unauthenticated(f"secret {self.title}: key {key!r} cannot be decoded") from None

    def text(self, key: str) -> str:
        """One value as text, without trailing line breaks. Unauthenticated if it is missing, empty or not text."""
        try:
            found = self.raw(key).decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise Unauthenticated(f"secret {self.title}: key {key!r} is not UTF-8 text") from None
        if not found:
            raise Unauthenticated(f"secret {self.title}: key {key!r} is empty")
        return found

    def file(self, key: str, content: bytes | None = None) -> Path:
        """One value, or ``content`` derived from it, as a file; different content has a different path."""
        return self._keep(f"{self.title}/{key}", self.raw(key) if content is None else content)


class SecretReader:
    """Reads the Secrets of one namespace. Keep it for as long as a client uses its files.

    ``labelled``: only Secrets with the purpose label. A policy's author, who may not be allowed to read the Secrets of
    the namespace, could otherwise have any of them sent as a password to an address of their choice. ``found``: Strimzi
    names them, and not the policy. ``destinations``: where the connections of its policies may go.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespace: str,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        destinations: Destinations,
        labelled: bool = False,
        found: bool = False,
    ) -> None:
        self.api = api
        self.namespace = namespace
        self._labelled = labelled
        self._found = found
        self._destinations = destinations
        self._monotonic = monotonic
        self._directory: Path | None = None
        self._removal: weakref.finalize[..., SecretReader] | None = None
        self._used: dict[Path, float] = {}
        self._elsewhere: dict[str, SecretReader] = {}
        self._refused: dict[str, float] = {}

    @cached_property
    def destinations(self) -> Destinations:
        """Where connections that are made of these Secrets may go. Raises Transient."""
        return ANYWHERE if self._destinations == ANYWHERE else self._destinations.without(api_servers(self.api))

    def of_strimzi(self, namespace: str) -> SecretReader:
        """One for Secrets there that Strimzi and not the policy names: it needs no label, and has the same lifetime."""
        made = SecretReader(self.api, namespace, self._monotonic, destinations=self._destinations, found=True)
        return self._elsewhere.setdefault(namespace, made)

    def __enter__(self) -> SecretReader:
        """Use it in a with statement."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files."""
        self.close()

    def close(self) -> None:
        """Remove the files now instead of when the reader is garbage-collected or the process ends."""
        for reader in self._elsewhere.values():
            reader.close()
        if self._removal is not None:
            self._removal()
        self._directory = self._removal = None
        self._used = {}

    def open(self, name: str, wanted: str = "") -> OpenSecret:
        """Read a Secret in one request. Raises Unauthenticated if it does not exist, Transient or Terminal.

        ``wanted`` names the keys that the error message lists.
        """
        title = f"{self.namespace}/{name}"
        try:
            found = self.api.get(SECRETS, self.namespace, name)
        except NotFound:
            remedy = f"create it with key {wanted}" if wanted else "create it"
            raise Unauthenticated(f"secret {title} does not exist: {remedy}, or correct the reference") from None
        except Terminal:
            self._refused[name] = self._monotonic()
            raise
        labels = found["metadata"].get("labels") or {}
        if not self._found and labels.get(_KAFKA_USER[0]) == _KAFKA_USER[1]:
            # It has the purpose label of the KafkaUser, which is for the addresses that Strimzi has alone.
            raise Unauthenticated(
                f"secret {title} is that of a KafkaUser, which connects only to the addresses that Strimzi has: name"
                " the cluster in spec.kafka.strimzi, or copy the Secret without its label strimzi.io/kind"
            )
        if self._labelled and labels.get(PURPOSE_LABEL) != PURPOSE:
            raise Unauthenticated(
                f"secret {title} lacks the label {PURPOSE_LABEL}={PURPOSE}, so no policy may name it. If it is meant"
                f" for Kafka: kubectl label secret {name} -n {self.namespace} {PURPOSE_LABEL}={PURPOSE}"
            )
        return OpenSecret(title, found.get("data") or {}, self.file)

    def refused(self, name: str) -> bool:
        """Whether this account was lately not allowed to read the Secret; each try is a line in the audit log."""
        return self._monotonic() - self._refused.get(name, -math.inf) < REFUSED_SECONDS

    def value(self, name: str, key: str) -> str:
        """One value as text. Raises Unauthenticated if the Secret or its key is missing or not text."""
        return self.open(name, repr(key)).text(key)

    def file(self, title: str, data: bytes) -> Path:
        """What is called so, as a file; different data has a different path."""
        now = self._monotonic()
        digest = hashlib.sha256(b"\0".join((title.encode(), data))).hexdigest()
        path = self._private() / digest[:32]
        if not path.exists():
            self._sweep(now)
            draft = path.with_suffix(f".{os.getpid()}")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            draft.replace(path)
        self._used[path] = now
        return path

    def _sweep(self, now: float) -> None:
        """Remove files that have not been used for a long time, so that old keys do not accumulate."""
        for path in [path for path, at in self._used.items() if now - at > KEPT_SECONDS]:
            del self._used[path]
            path.unlink(missing_ok=True)

    def _private(self) -> Path:
        """Directory of the files, created for the first one: most processes need none."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="bellwether-"))
            self._removal = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory


def api_servers(api: KubernetesClient) -> set[tuple[str, int]]:
    """Addresses and ports of the API server: of its URL, and those that it gives to clients. Raises Transient."""
    url, found = urlsplit(api.url), set[tuple[str, int]]()
    networks: list[dict[str, str]] = []
    with suppress(Terminal):  # accounts may be denied discovery
        networks = api.get(CORE, "", "").get("serverAddressByClientCIDRs") or []
    for address in (join_address(str(url.hostname), url.port or 443), *(one["serverAddress"] for one in networks)):
        with suppress(OSError, ValueError):  # a name that only clients outside know
            host, port = split_address(address)
            found |= {(str(to[0]), port) for *_, to in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    return found


USERNAME, PASSWORD = "username", "password"
"""Keys of a Secret of type ``kubernetes.io/basic-auth``."""


@contextmanager
def about(field: str) -> Iterator[None]:
    """Add this field to errors raised inside the block."""
    try:
        yield
    except Unauthenticated as error:
        raise Unauthenticated(f"{field}: {error}") from None


def basic_auth(secrets: SecretReader, name: str, field: str) -> tuple[str, Hidden]:
    """User name and password. Raises Unauthenticated."""
    with about(field):
        secret = secrets.open(name, f"{USERNAME!r} and {PASSWORD!r}")
        username = secret.text(USERNAME)
        if ":" in username:
            raise Unauthenticated(f"secret {secret.title}: key {USERNAME!r} contains a colon, which RFC 7617 forbids")
        return username, Hidden(secret.text(PASSWORD))


def http_proxy(secrets: SecretReader, proxy: HttpProxySpec | None, field: str) -> HttpProxy | None:
    """The proxy of a field, with its user; None without one. Raises Unauthenticated."""
    if proxy is None:
        return None
    username = password = ""
    if proxy.credentials_secret_name is not None:
        username, password = basic_auth(secrets, proxy.credentials_secret_name, f"{field}.credentialsSecretName")
    return HttpProxy(url=proxy.url, username=username, password=password, name=f"{field}.url")


def named_identity(name: str, namespace: str, field: str) -> WorkloadIdentity:
    """The identity that a field of a policy names, as it is configured now. Raises Unauthenticated."""
    return WorkloadIdentities.read(os.environ.get(VARIABLE, "")).named(name, namespace, field)

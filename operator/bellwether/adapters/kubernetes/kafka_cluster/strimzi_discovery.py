"""Discover a Strimzi Kafka cluster: addresses, certificates, user, and running operations.

In: the name of a Kafka resource. Out: the result, as values. Nothing is cached: each call reads the current state.
``StrimziUnavailable`` names what is missing and the remedy; what a Secret lacks is Unauthenticated. Called by
``connection_resolver`` and by ``controllers.cluster_connection``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bellwether import documentation
from bellwether.adapters import pem
from bellwether.adapters.kubernetes.api_client import PODS, Object, Resource
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.kafka_cluster import strimzi_parsing as shapes
from bellwether.adapters.kubernetes.kafka_cluster.kafka_user_secrets import (
    UserCredentials,
    authorities,
    user_credentials,
)
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import PURPOSE, PURPOSE_LABEL, SecretReader
from bellwether.api.v1alpha1.spec.kafka_spec import Strimzi as Wanted
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.strimzi import NO_AUTHENTICATION, Listener, Strimzi, choose_listener, external_listeners
from bellwether.core.reasons import Reason
from bellwether.ports.errors import BellwetherError, Terminal, Unauthenticated

GROUP = "kafka.strimzi.io"
VERSIONS = ("v1", "v1beta2")
DEFAULT_USER = "bellwether"
TLS, SCRAM = "tls", "scram-sha-512"

_GROUPS = Resource("/apis", GROUP, "v1", "APIGroup")


class StrimziUnavailable(Terminal):
    """A part of a Strimzi cluster is missing or not ready; ``reason`` is that of the condition."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StrimziNotShared(StrimziUnavailable):
    """The cluster is in another namespace and does not admit the policy's."""


@dataclass(frozen=True, slots=True)
class Found:
    """A cluster that was found. ``outside``: the external listeners, or the names that no listener has.

    ``credentials`` are None if the listener needs no authentication, or the policy has its own.
    """

    strimzi: Strimzi
    listener: Listener
    outside: tuple[Listener | str, ...]
    ca_file: str
    credentials: UserCredentials | None


class StrimziClusters:
    """Reads Strimzi's objects for policies in the namespace of ``secrets``."""

    def __init__(self, secrets: SecretReader) -> None:
        self._secrets = secrets
        self._api = secrets.api
        self._namespace = secrets.namespace
        self._version = VERSIONS[0]

    def find(
        self, wanted: Wanted, *, own_user: bool = False, own_ca: bool = False, outside_as: Sequence[str] = ()
    ) -> Found:
        """Find the cluster. Raises StrimziUnavailable, Unauthenticated, Transient or Terminal.

        ``own_user`` and ``own_ca``: the policy has its own. ``outside_as`` names the external listeners.
        """
        namespace = wanted.namespace or self._namespace
        sight = _Sight(namespace, wanted.cluster_name, self._kafka(namespace, wanted.cluster_name))
        if not shapes.admits(sight.kafka, self._namespace):
            raise StrimziNotShared(Reason.STRIMZI_REFERENCE_INVALID, self._not_shared(namespace, wanted.cluster_name))
        user = None if own_user else self._user(sight, wanted.user_name)
        listener = _listener(sight, wanted, user, own_user)
        if not listener.bootstrap:
            raise _not_ready(sight.kafka, f"{sight.title} has no address of listener {listener.name} in its status")
        credentials = None
        if user is not None and listener.authentication != NO_AUTHENTICATION:
            credentials = self._credentials(sight, user)
        return Found(
            strimzi=Strimzi(
                namespace=namespace,
                name=wanted.cluster_name,
                listener=listener.name,
                user=user.name if user is not None and credentials is not None else "",
                paused=shapes.paused(sight.kafka),
            ),
            listener=listener,
            outside=external_listeners(sight.listeners, outside_as),
            ca_file=self._authorities(sight) if listener.tls and not own_ca else "",
            credentials=credentials,
        )

    def at_work_now(self, known: Strimzi) -> Strimzi:
        """A cluster that was found before, with its current operations. Raises Transient or Terminal."""
        kafka = self._kafka(known.namespace, known.name)
        return self.surroundings(replace(known, paused=shapes.paused(kafka)))

    def surroundings(self, strimzi: Strimzi) -> Strimzi:
        """The same with running rebalances and broker pods. Raises Transient or Terminal."""
        labels = {shapes.CLUSTER_LABEL: strimzi.name}
        try:
            rebalances = self._api.list(self._kind("kafkarebalances", "KafkaRebalance"), strimzi.namespace, labels)
        except NotFound:
            rebalances = []  # Strimzi without the KafkaRebalance CRD
        pods = self._api.list(PODS, strimzi.namespace, {**labels, shapes.BROKER_LABEL: "true"})
        return replace(strimzi, rebalancing=shapes.rebalancing(rebalances), pods=shapes.pods(pods))

    def _kafka(self, namespace: str, name: str) -> Object:
        try:
            return self._api.get(self._kind("kafkas", "Kafka"), namespace, name)
        except NotFound:
            self._learn_version()
        kind = self._kind("kafkas", "Kafka")
        found = self._api.find(kind, namespace, name)
        if found is not None:
            return found
        if namespace != self._namespace:
            raise _unfit(self._not_shared(namespace, name))
        raise StrimziUnavailable(
            Reason.STRIMZI_REFERENCE_INVALID,
            f"Kafka {name} does not exist in namespace {namespace}{self._others(kind, namespace)}: correct"
            " spec.kafka.strimzi, or create it",
        )

    def _not_shared(self, namespace: str, name: str) -> str:
        """The same for a cluster that does not exist: without permission, what there is stays unknown."""
        return (
            f"Kafka {namespace}/{name} does not exist, or does not permit policies of namespace {self._namespace}:"
            f" annotate it with {shapes.SHARING_ANNOTATION}={self._namespace}, or create the policy in namespace"
            f" {namespace}"
        )

    def _learn_version(self) -> None:
        """Find the served API version; called if an object is missing, because its kind may be missing."""
        try:
            served = {one["version"] for one in self._api.get(_GROUPS, "", "").get("versions") or ()}
        except NotFound:
            served = set()
        known = [version for version in VERSIONS if version in served]
        if not known:
            there = f"serves {', '.join(sorted(served))} only" if served else "is not served"
            raise StrimziUnavailable(
                Reason.STRIMZI_REFERENCE_INVALID,
                f"API group {GROUP} {there} here: install Strimzi with its CRDs ({' or '.join(VERSIONS)}), or"
                " set spec.kafka.bootstrapServers instead",
            )
        self._version = known[0]

    def _user(self, sight: _Sight, name: str | None) -> shapes.User | None:
        """The KafkaUser to connect as; None if none is configured and the default one does not exist."""
        body = self._api.find(self._kind("kafkausers", "KafkaUser"), sight.namespace, name or DEFAULT_USER)
        if body is None and name is None:
            return None
        if body is None:
            raise _unfit(
                f"KafkaUser {name} does not exist in namespace {sight.namespace}: create it, or correct"
                " spec.kafka.strimzi.userName"
            )
        user = shapes.user(body)
        if (body["metadata"].get("labels") or {}).get(PURPOSE_LABEL) != PURPOSE:
            raise _unfit(
                f"KafkaUser {user.name} lacks the label {PURPOSE_LABEL}={PURPOSE}, so no policy may connect as it. If"
                f" it is meant for Bellwether: kubectl label kafkauser {user.name} -n {sight.namespace}"
                f" {PURPOSE_LABEL}={PURPOSE}"
            )
        if user.cluster != sight.name:
            whose = f"belongs to Kafka cluster {user.cluster}" if user.cluster else "belongs to no Kafka cluster"
            raise _unfit(f"KafkaUser {user.name} {whose}: set its label {shapes.CLUSTER_LABEL} to {sight.name}")
        if user.authentication not in (TLS, SCRAM):
            kind = user.authentication or "none"
            raise _unfit(
                f"KafkaUser {user.name} has authentication {kind}, for which Strimzi creates no Secret: use"
                f" {TLS} or {SCRAM}, or set credentials in spec.kafka.tls or spec.kafka.sasl"
            )
        if not user.secret:
            raise _not_ready(body, f"KafkaUser {user.name} has no Secret yet")
        return user

    def _credentials(self, sight: _Sight, user: shapes.User) -> UserCredentials:
        try:
            found = user_credentials(self._secrets.of_strimzi(sight.namespace), user.secret)
        except Unauthenticated as error:
            raise Unauthenticated(f"KafkaUser {user.name}: {error}. Strimzi's user operator creates it") from None
        if (found.mechanism is None) != (user.authentication == TLS):
            raise _not_ready(
                sight.kafka,
                f"the Secret of KafkaUser {user.name} does not match its authentication {user.authentication}",
            )
        return found if found.mechanism is None else replace(found, username=user.username)

    def _authorities(self, sight: _Sight) -> str:
        """File with the CAs of the cluster, and of listeners with their own certificates.

        The Secret has the previous CA, too, while Strimzi replaces the key of the CA; the status of the Kafka resource
        has the current ones, and is readable to each account that finds the cluster.
        """
        name = f"{sight.name}-cluster-ca-cert"
        secrets = self._secrets.of_strimzi(sight.namespace)
        published = dict.fromkeys(one for listener in sight.listeners for one in listener.certificates)
        try:
            path = "" if published and secrets.refused(name) else authorities(secrets, name)
        except Unauthenticated as error:
            if not published:
                raise Unauthenticated(f"{sight.title}: {error}. Strimzi's cluster operator creates it") from None
            path = ""
        except Terminal:  # it may not be read
            if not published:
                raise
            path = ""
        if not path:
            return str(secrets.file(f"{sight.title}: status", self._checked(sight, published)))
        more = [one for listener in sight.listeners if listener.own_certificate for one in listener.certificates]
        if not more:
            return path
        content = "\n".join((Path(path).read_text(), *more)).encode()
        return str(secrets.file(f"{sight.title}: {name} and those of listeners", content))

    @staticmethod
    def _checked(sight: _Sight, certificates: Iterable[str]) -> bytes:
        content = "\n".join(certificates).encode()
        try:
            pem.validities(content)
        except ValueError as error:
            raise Unauthenticated(f"{sight.title}: status.listeners[].certificates {error}") from None
        return content

    def _kind(self, plural: str, kind: str) -> Resource:
        return Resource(f"/apis/{GROUP}/{self._version}", plural, f"{GROUP}/{self._version}", kind)

    def _others(self, kind: Resource, namespace: str) -> str:
        try:
            names = sorted(str(one["metadata"]["name"]) for one in self._api.list(kind, namespace))
        except BellwetherError:
            return ""  # without the permission to list, the message is shorter
        return f"; existing: {', '.join(names) or 'none'}"


@dataclass(frozen=True)
class _Sight:
    """One Kafka resource that was just read."""

    namespace: str
    name: str
    kafka: Object

    @property
    def title(self) -> str:
        return f"Kafka {self.namespace}/{self.name}"

    @cached_property
    def listeners(self) -> tuple[Listener, ...]:
        return shapes.listeners(self.kafka)


def _listener(sight: _Sight, wanted: Wanted, user: shapes.User | None, own_user: bool) -> Listener:
    """The listener to connect to, depending on the user."""
    if own_user:
        accepted = tuple(dict.fromkeys(one.authentication for one in sight.listeners))
        otherwise = "the policy has its own credentials"
    elif user is None:
        accepted = (NO_AUTHENTICATION,)
        otherwise = (
            f"KafkaUser {DEFAULT_USER} does not exist in namespace {sight.namespace}"
            f" ({documentation.page('strimzi.md')} has one to apply), and spec.kafka.strimzi.userName is not set"
        )
    else:
        accepted = (user.authentication,) if wanted.user_name else (user.authentication, NO_AUTHENTICATION)
        otherwise = f"KafkaUser {user.name} has authentication {user.authentication}"
    found = choose_listener(sight.listeners, wanted.listener or "", accepted, otherwise)
    if isinstance(found, Refusal):
        raise StrimziUnavailable(found.reason, f"{sight.title}: {found.message}")
    return found


def _unfit(message: str) -> StrimziUnavailable:
    return StrimziUnavailable(Reason.STRIMZI_REFERENCE_INVALID, message)


def _not_ready(body: Object, message: str) -> StrimziUnavailable:
    reported = shapes.not_ready_message(body)
    because = f" (Strimzi reports: {reported})" if reported else ": check that the Strimzi operator is running"
    return StrimziUnavailable(Reason.STRIMZI_NOT_READY, f"{message}{because}")

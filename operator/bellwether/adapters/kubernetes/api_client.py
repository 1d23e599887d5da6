"""Kubernetes API client on top of the official one: plain objects in and out, every call with a timeout.

Used by every other module of this package. Errors are classified by what the caller must do next: ``Transient``
(unavailable, overloaded), ``Terminal`` with the remedy (rejected, invalid), and ``NotFound``, ``Conflict`` and
``NamespaceEnding`` for callers that expect them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bellwether import __version__
from bellwether.adapters.kubernetes.api_errors import MESSAGE_LENGTH, Conflict, NotFound, TooLarge, refusal
from bellwether.ports.errors import Transient

Object = dict[str, Any]

DEFAULT_TIMEOUT_SECONDS = 5.0

PAGE_SIZE = 500
"""Objects of one page of a list, as kubectl asks for them."""

LIST_LIMIT = 64 << 20
"""Bytes of a whole list, and of any other response. An undo record and its audit log have 14 MB at most, 2,000
BrokerHealths 10 MB; anyone who may write ConfigMaps with our labels could make lists longer."""

SMALL_LIST, SMALL_PAGE = 8 << 20, 20
"""A list with more bytes is read again, one such list at a time: reading takes some four times its size. Where large
objects are left out, its pages have so few objects, which are 30 MB at most."""

_large_list = threading.Lock()

_WATCH_CHUNK = 1 << 16
_LONGEST_PAUSE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type, as in the API's URLs."""

    prefix: str
    plural: str
    api_version: str
    kind: str

    def path(self, namespace: str | None, name: str = "", sub: str = "") -> str:
        """URL path of the collection, of one object, or of its subresource."""
        parts = [self.prefix, *(["namespaces", namespace] if namespace else []), self.plural, name, sub]
        return "/".join(part for part in parts if part)

    def typed(self, body: Object) -> Object:
        """The object with its API version and kind."""
        return {"apiVersion": self.api_version, "kind": self.kind, **body}


CONFIG_MAPS = Resource("/api/v1", "configmaps", "v1", "ConfigMap")
SECRETS = Resource("/api/v1", "secrets", "v1", "Secret")
LEASES = Resource("/apis/coordination.k8s.io/v1", "leases", "coordination.k8s.io/v1", "Lease")
EVENTS = Resource("/apis/events.k8s.io/v1", "events", "events.k8s.io/v1", "Event")
JOBS = Resource("/apis/batch/v1", "jobs", "batch/v1", "Job")
PODS = Resource("/api/v1", "pods", "v1", "Pod")
NODES = Resource("/api/v1", "nodes", "v1", "Node")
POLICIES = Resource(
    "/apis/bellwether.dev/v1alpha1", "leadershippolicies", "bellwether.dev/v1alpha1", "LeadershipPolicy"
)
BROKER_HEALTHS = Resource("/apis/bellwether.dev/v1alpha1", "brokerhealths", "bellwether.dev/v1alpha1", "BrokerHealth")
SIGNAL_SOURCES = Resource("/apis/bellwether.dev/v1alpha1", "signalsources", "bellwether.dev/v1alpha1", "SignalSource")
LEADER_REBALANCES = Resource(
    "/apis/bellwether.dev/v1alpha1", "leaderrebalances", "bellwether.dev/v1alpha1", "LeaderRebalance"
)
KINDS = (POLICIES, BROKER_HEALTHS, SIGNAL_SOURCES, LEADER_REBALANCES)
"""The kinds that Bellwether defines."""

CORE, _DISCOVERY = Resource("", "/api", "v1", "APIVersions"), Resource("", "/apis", "v1", "APIGroupList")
_SCHEMAS = Resource("/openapi/v3", "apis", "v3", "OpenAPI")

Observe = Callable[[str, str, str, float], None]
"""Called after each request with verb (get, create, update, patch, delete), plural, outcome and seconds."""


class KubernetesClient:
    """One connection pool to one API server; safe to share between threads.

    ``timeout_seconds`` is the timeout of connecting and of each read. Nothing is retried here, because only the caller
    knows what a lost response means. While an overloaded server has asked to wait (Retry-After), requests for that kind
    of object fail at once; those for Leases are sent, as they are few and a lost one costs more.
    """

    def __init__(
        self,
        api: Any,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        observe: Observe | None = None,
        paused: dict[str, float] | None = None,
    ) -> None:
        self._api = api
        self.url = str(api.configuration.host) if api is not None else ""
        self._observe = observe
        # By plural, until when (monotonic) no request is sent.
        self._paused: dict[str, float] = {} if paused is None else paused
        self.timeout_seconds = timeout_seconds

    def with_timeout(self, timeout_seconds: float) -> KubernetesClient:
        """The same connection pool with another timeout."""
        return KubernetesClient(self._api, timeout_seconds, self._observe, self._paused)

    def observed(self, observe: Observe) -> KubernetesClient:
        """The same connection pool; ``observe`` is called after every request."""
        return KubernetesClient(self._api, self.timeout_seconds, observe, self._paused)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Get one object. Raises NotFound if it does not exist."""
        return self._call("GET", resource, namespace, name)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Get one object; None if it does not exist."""
        try:
            return self.get(resource, namespace, name)
        except NotFound:
            return None

    def list_version(
        self,
        resource: Resource,
        namespace: str | None,
        labels: Mapping[str, str] | None = None,
        largest: int | None = None,
        keep: Callable[[Object], Object] = lambda one: one,
    ) -> tuple[list[Object], str]:
        """As ``list``, with the resource version of the list, from which ``watch`` goes on.

        With ``largest``, objects of more bytes are left out and logged, and the limit is for one page: large objects
        hide no others. Pages are not limited then, so that of each object only what ``keep`` returns is held.
        """
        query = {**_selector(labels), "limit": str(PAGE_SIZE)}
        try:
            return self._list(resource, namespace, dict(query), largest, keep, SMALL_LIST)
        except TooLarge:
            with _large_list:
                query["limit"] = str(PAGE_SIZE if largest is None else SMALL_PAGE)
                return self._list(resource, namespace, query, largest, keep, LIST_LIMIT)

    def _list(
        self, resource: Resource, namespace: str | None, query: Object, largest: int | None, keep: Any, limit: int
    ) -> tuple[list[Object], str]:
        """Pages with ``limit`` bytes in all, or each where large objects are left out."""
        items = list[Object]()
        size = 0
        while True:
            text = self._send("GET", resource, namespace, "", query=query, limit=limit - size)
            size += len(text) if largest is None else 0
            page = json.loads(text)
            for one in page.get("items") or []:
                if largest is None or len(text) <= largest or len(json.dumps(one)) <= largest:
                    items.append(keep(resource.typed(one)))  # items of a list have no kind
                else:
                    named = one["metadata"].get("namespace"), one["metadata"]["name"]
                    import structlog

                    log = structlog.get_logger(__name__)
                    log.warning("object_left_out", kind=resource.kind, object=named, most_bytes=largest)
            metadata = page.get("metadata") or {}
            following = metadata.get("continue")
            if not following:
                return items, str(metadata.get("resourceVersion", ""))
            query["continue"] = following

    def list(self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """List all objects with these labels, in one namespace or (None) in all, page by page.

        An empty value of a label means any. Raises Terminal if they have more than ``LIST_LIMIT`` bytes in all.
        """
        return self.list_version(resource, namespace, labels)[0]

    def watch(
        self, resource: Resource, namespace: str | None, labels: Mapping[str, str], version: str, seconds: int
    ) -> Iterator[tuple[str, Object]]:
        """Events after a resource version: their type, and the object. Ends after so many seconds.

        Raises Transient when the connection is lost or the version is too old to go on from: then list again.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": version}
        query |= {"timeoutSeconds": str(seconds), **_selector(labels)}
        what, rest = f"watch {resource.plural} {namespace or '*'}/*", b""
        read_seconds = self.timeout_seconds + seconds
        with self._unreachable(what):
            answer = self._open("GET", resource.path(namespace), query, None, "application/json", read_seconds)
        with closing(answer), self._unreachable(what):
            if answer.status != 200:
                raise refusal(answer.status, answer.read(MESSAGE_LENGTH), "GET", what, ours=resource in KINDS)
            for part in answer.stream(_WATCH_CHUNK):
                *lines, rest = (rest + part).split(b"\n")
                if len(rest) > LIST_LIMIT:
                    raise Transient(f"Kubernetes API: {what}: an event of more than {LIST_LIMIT} bytes")
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        raise Transient(f"Kubernetes API: {what}: {event['object'].get('message', '')}")
                    yield event["type"], event["object"]

    def served(self, group: str, version: str) -> frozenset[str]:
        """Plurals of the kinds that discovery lists for a version of a group; empty if it does not list the group."""
        groups = self._call("GET", _DISCOVERY, None, "").get("groups") or []
        versions = {found["version"] for one in groups if one["name"] == group for found in one["versions"]}
        if version not in versions:
            return frozenset()
        try:
            listed = self._call("GET", _DISCOVERY, None, f"{group}/{version}")
        except NotFound:
            return frozenset()
        return frozenset(one["name"] for one in listed.get("resources") or [])

    def schemas(self, group: str, version: str) -> dict[str, Object]:
        """The schemas that are served for a version of a group, by kind. Raises NotFound if there are none."""
        found = self._call("GET", _SCHEMAS, None, f"{group}/{version}").get("components") or {}
        named = "x-kubernetes-group-version-kind"
        return {str(k["kind"]): one for one in (found.get("schemas") or {}).values() for k in one.get(named) or ()}

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Create an object. Raises Conflict if the name is in use."""
        about = body["metadata"].get("name", "")
        return self._call("POST", resource, namespace, "", body=resource.typed(body), about=about)

    def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Replace an object. Raises Conflict if the body has a resourceVersion that is not the latest."""
        return self._call("PUT", resource, namespace, body["metadata"]["name"], body=resource.typed(body))

    def merge(self, resource: Resource, namespace: str, name: str, patch: Object, sub: str = "") -> Object:
        """Apply a JSON merge patch."""
        return self._call(
            "PATCH", resource, namespace, name, sub=sub, body=patch, content_type="application/merge-patch+json"
        )

    def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        manager: str,
        sub: str = "",
        force: bool = True,
    ) -> Object:
        """Server-side apply: ``manager`` owns exactly the fields of ``body``; fields that it no longer sets are
        removed.
        """
        whole = resource.typed(body)
        whole["metadata"] = {**body.get("metadata", {}), "name": name, "namespace": namespace}
        query = {"fieldManager": manager, "force": str(force).lower()}
        how: dict[str, Any] = {"query": query, "content_type": "application/apply-patch+yaml"}
        return self._call("PATCH", resource, namespace, name, sub=sub, body=json.dumps(whole), **how)

    def delete(self, resource: Resource, namespace: str, name: str, resource_version: str | None = None) -> None:
        """Delete an object. Raises NotFound if it does not exist, and Conflict if it is not at ``resource_version``."""
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if resource_version is not None:
            body["preconditions"] = {"resourceVersion": resource_version}
        self._send("DELETE", resource, namespace, name, body=body)

    def _call(self, method: str, resource: Resource, namespace: str | None, name: str, **how: Any) -> Object:
        parsed: Object = json.loads(self._send(method, resource, namespace, name, **how))
        return parsed

    def _send(self, method: str, resource: Resource, namespace: str | None, name: str, **how: Any) -> bytes:
        wait = self._paused.get(resource.plural, 0.0) - time.monotonic()
        if wait > 0:
            raise Transient(
                f"Kubernetes API: {method} {resource.plural}: overloaded; it asked to wait {wait:.1f} s more"
            )
        began, outcome = time.monotonic(), "ok"
        try:
            return self._request(method, resource, namespace, name, **how)
        except Exception as error:
            outcome = _outcome(error)
            raise
        finally:
            if self._observe is not None:
                verb = {"POST": "create", "PUT": "update"}.get(method, method.lower())  # a list counts as get
                self._observe(verb, resource.plural, outcome, time.monotonic() - began)

    def _request(
        self,
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        sub: str = "",
        body: Object | str | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        about: str = "",
        limit: int = LIST_LIMIT,
    ) -> bytes:
        path = resource.path(namespace, name, sub)
        what = f"{resource.plural} {namespace or '*'}/{name or about or '*'}"
        with self._unreachable(f"{method} {what}"):
            answer = self._open(method, path, query, body, content_type, self.timeout_seconds)
            text: bytes = answer.read(limit + 1)
        if len(text) > limit:
            answer.close()
            raise TooLarge(
                f"Kubernetes API: {method} {what}: more than {LIST_LIMIT} bytes: delete objects that are not"
                " Bellwether's but have its labels"
            )
        if not 200 <= answer.status < 300:
            if answer.status in (429, 503) and resource is not LEASES:
                self._paused[resource.plural] = time.monotonic() + _retry_after(answer.headers.get("Retry-After"))
            raise refusal(answer.status, text, method, what, ours=resource in KINDS)
        return text

    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Object | str | None,
        content_type: str,
        read_seconds: float,
    ) -> Any:
        """The answer to one request, of which only the head has been read.

        On the connections of the official client, but not by its ``request``, which takes a fifth longer.
        """
        import urllib3

        headers = {"Accept": "application/json", "Content-Type": content_type, **self._api.default_headers}
        pairs: list[tuple[str, str]] = list((query or {}).items())
        self._api.update_params_for_auth(headers, pairs, ["BearerToken"], path, method, body)
        url = f"{self.url}{path}" + (f"?{urlencode(pairs)}" if pairs else "")
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        limits = urllib3.Timeout(connect=self.timeout_seconds, read=read_seconds)
        return self._api.rest_client.pool_manager.urlopen(
            method, url, body=text, headers=headers, timeout=limits, preload_content=False, retries=False
        )

    @contextmanager
    def _unreachable(self, what: str) -> Iterator[None]:
        """Failures of a request without an answer become Transient."""
        import urllib3

        try:
            yield
        except urllib3.exceptions.NewConnectionError as error:  # a subclass of TimeoutError
            raise Transient(self._not_reachable(what, "connection refused")) from error
        except urllib3.exceptions.TimeoutError as error:
            raise Transient(f"Kubernetes API: {what}: no response within {self.timeout_seconds:g} s") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(self._not_reachable(what, type(error).__name__)) from error

    def _not_reachable(self, what: str, why: str) -> str:
        said = f"{self.url} is not reachable ({why})"
        return f"Kubernetes API: {what}: {said}: check that API server and the network to it"


def connect(kubeconfig: Path | None = None) -> KubernetesClient:
    """A client for the API of the current context, or of the pod's ServiceAccount, as in ``api_access``."""
    from bellwether.adapters.kubernetes.kubeconfig import api_access

    return from_configuration(api_access(kubeconfig).configuration)


def from_configuration(configuration: Any, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> KubernetesClient:
    """A client from a configuration of the official client, with its retries disabled."""
    from kubernetes import client

    from bellwether.adapters.kubernetes.kubeconfig import verify_as_kubectl

    configuration.retries = False
    made = client.ApiClient(configuration)
    made.user_agent = f"bellwether/{__version__}"  # its first part is the field manager of a merge
    verify_as_kubectl(made.rest_client.pool_manager.connection_pool_kw)
    return KubernetesClient(made, timeout_seconds)


def _selector(labels: Mapping[str, str] | None) -> dict[str, str]:
    wanted = ",".join(f"{key}={value}" if value else key for key, value in (labels or {}).items())
    return {"labelSelector": wanted} if wanted else {}


def _outcome(error: Exception) -> str:
    for kind, outcome in ((NotFound, "not_found"), (Conflict, "conflict"), (Transient, "unavailable")):
        if isinstance(error, kind):
            return outcome
    return "refused"


def _retry_after(header: str | None) -> float:
    """Seconds to wait; 0 if the header is missing or is a date, which the API server does not send."""
    return min(float(header), _LONGEST_PAUSE_SECONDS) if header and header.isdecimal() else 0.0

"""The Kubernetes API in memory: a ``KubernetesClient`` over a plain dictionary, for tests of what is built on it.

Keeps resource versions, generations, finalizers and the status subresource as the API server does; knows neither
schemas nor permissions. ``writes`` lists every call that changed something; ``away`` and ``refuse`` make calls fail.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping

import pytest

from bellwether.adapters.kubernetes import api_client, kubeconfig
from bellwether.adapters.kubernetes.api_client import KINDS, POLICIES, KubernetesClient, Object, Resource
from bellwether.adapters.kubernetes.api_errors import Conflict, NotFound
from bellwether.adapters.kubernetes.kubeconfig import ApiAccess
from bellwether.cli import kubernetes_target
from bellwether.ports.errors import BellwetherError, Transient

Key = tuple[str, str, str]
# Lists whose entries belong to their field manager, by the fields that tell them apart.
LIST_MAPS = {"signals": ("type", "source")}
DELETED_AT = "2026-01-01T00:00:00Z"


class MemoryApi(KubernetesClient):
    """One API server. Every answer is a copy, so that only a call changes an object."""

    def __init__(self) -> None:
        super().__init__(None)
        self.objects: dict[Key, Object] = {}
        self.writes: list[str] = []
        self.away = False
        self.definitions: dict[str, Object] = {}
        self._refusals: dict[tuple[str, str], BellwetherError] = {}
        self._version = 0
        self._owned: dict[tuple[Key, str], Object] = {}

    # What tests do.

    def put(self, resource: Resource, body: Object) -> Object:
        """Put an object, as if another client had made it."""
        metadata = {"uid": f"uid-{body['metadata']['name']}", "generation": 1, **body["metadata"]}
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **body, "metadata": metadata}
        return self._keep(self._key(resource, metadata.get("namespace", "default"), metadata["name"]), whole)

    def serve_commands(self, monkeypatch: pytest.MonkeyPatch, namespace: str = "default") -> None:
        """Let the command line connect to this API; its context has that namespace."""
        monkeypatch.setattr(kubernetes_target, "check", lambda *_: None)
        monkeypatch.setattr(kubeconfig, "api_access", lambda *_: ApiAccess(None, namespace))
        monkeypatch.setattr(api_client, "from_configuration", lambda *_: self)

    def refuse(self, verb: str, resource: Resource, error: BellwetherError | None) -> None:
        """Calls of that verb on that kind raise the error, until it is None."""
        if error is None:
            self._refusals.pop((verb, resource.plural), None)
        else:
            self._refusals[verb, resource.plural] = error

    def all(self, resource: Resource) -> list[Object]:
        """Every object of a kind, by name."""
        return [
            copy.deepcopy(o) for (plural, _, _), o in sorted(self.objects.copy().items()) if plural == resource.plural
        ]

    # What a KubernetesClient does.

    def with_timeout(self, timeout_seconds: float) -> KubernetesClient:  # noqa: ARG002 - the client's signature
        """The same server: it is never slow."""
        return self

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """One object. NotFound when it is not there."""
        self._meet("get", resource)
        return copy.deepcopy(self._find(resource, namespace, name))

    def list_version(
        self,
        resource: Resource,
        namespace: str | None,
        labels: Mapping[str, str] | None = None,
        largest: int | None = None,
        keep: Callable[[Object], Object] = lambda one: one,
    ) -> tuple[list[Object], str]:
        found = self.list(resource, namespace, labels)
        return [keep(one) for one in found if largest is None or len(json.dumps(one)) <= largest], ""

    def list(self, resource: Resource, namespace: str | None, labels: Mapping[str, str] | None = None) -> list[Object]:
        """All with these labels; an empty value means any."""
        self._meet("list", resource)
        wanted = (labels or {}).items()
        return [
            o
            for o in self.all(resource)
            if namespace in (None, o["metadata"].get("namespace", "default"))
            and all(
                key in has and value in ("", has[key])
                for has in [o["metadata"].get("labels") or {}]
                for key, value in wanted
            )
        ]

    def schemas(self, *_: str) -> dict[str, Object]:
        """Those of ``definitions``."""
        return self.definitions

    def served(self, group: str, version: str) -> frozenset[str]:  # noqa: ARG002 - the client's signature
        """The kinds of ours, but for those whose list is not found."""
        self._meet("served", POLICIES)
        return frozenset(
            kind.plural for kind in KINDS if not isinstance(self._refusals.get(("list", kind.plural)), NotFound)
        )

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Create. Conflict when the name is taken."""
        self._meet("create", resource)
        name = body["metadata"]["name"]
        if self._key(resource, namespace, name) in self.objects:
            raise Conflict(f"{resource.plural} {namespace}/{name} exists")
        self._wrote("create", resource, name)
        return self.put(resource, {**body, "metadata": {**body["metadata"], "namespace": namespace}})

    def replace(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Write a whole object, checked by its resourceVersion."""
        self._meet("replace", resource)
        name = body["metadata"]["name"]
        standing = self._find(resource, namespace, name)
        self._check(standing, body["metadata"])
        self._wrote("replace", resource, name)
        kept = {k: standing["metadata"][k] for k in ("uid", "generation", "namespace") if k in standing["metadata"]}
        return self._keep(
            self._key(resource, namespace, name), {**body, "metadata": {**kept, **body["metadata"]}}, standing
        )

    def merge(self, resource: Resource, namespace: str, name: str, patch: Object, sub: str = "") -> Object:
        """A JSON merge patch."""
        self._meet("merge", resource)
        standing = self._find(resource, namespace, name)
        self._check(standing, patch.get("metadata") or {})
        self._wrote("merge", resource, f"{name}/{sub}" if sub else name)
        return self._keep(self._key(resource, namespace, name), _merged(standing, patch), standing)

    def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        manager: str,
        sub: str = "",
        force: bool = True,  # noqa: ARG002 - the client's signature
    ) -> Object:
        """Server-side apply: fields that the manager applied before and no longer names go. Status wants its object."""
        self._meet("apply", resource)
        key = self._key(resource, namespace, name)
        if key not in self.objects:
            if sub:
                raise NotFound(f"{resource.plural} {namespace}/{name} not found")
            self.put(resource, {"metadata": {"name": name, "namespace": namespace}})
        standing = self.objects[key]
        owned = self._owned.get((key, f"{manager}/{sub}"), {})
        self._owned[key, f"{manager}/{sub}"] = copy.deepcopy(body)
        self._wrote("apply", resource, f"{name}/{sub}" if sub else name)
        return self._keep(key, _merged(_without(standing, owned, body), body, by_key=True), standing)

    def delete(self, resource: Resource, namespace: str, name: str, resource_version: str | None = None) -> None:
        """Delete, or mark for deletion while a finalizer is set."""
        self._meet("delete", resource)
        standing = self._find(resource, namespace, name)
        if resource_version is not None:
            self._check(standing, {"resourceVersion": resource_version})
        self._wrote("delete", resource, name)
        marked = {**standing, "metadata": {**standing["metadata"], "deletionTimestamp": DELETED_AT}}
        self._keep(self._key(resource, namespace, name), marked, standing)

    def _key(self, resource: Resource, namespace: str, name: str) -> Key:
        return resource.plural, namespace, name

    def _find(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self.objects.get(self._key(resource, namespace, name))
        if found is None:
            raise NotFound(f"{resource.plural} {namespace}/{name} not found")
        return found

    def _meet(self, verb: str, resource: Resource) -> None:
        if self.away:
            raise Transient("Kubernetes API: not reachable")
        error = self._refusals.get((verb, resource.plural))
        if error is not None:
            raise error

    def _check(self, standing: Object, metadata: Object) -> None:
        wanted = metadata.get("resourceVersion")
        if wanted is not None and wanted != standing["metadata"]["resourceVersion"]:
            raise Conflict(f"{standing['metadata']['name']} has another resourceVersion")

    def _wrote(self, verb: str, resource: Resource, name: str) -> None:
        self.writes.append(f"{verb} {resource.plural} {name}")

    def _keep(self, key: Key, body: Object, before: Object | None = None) -> Object:
        self._version += 1
        metadata = {**body["metadata"], "resourceVersion": str(self._version)}
        if before is not None and before.get("spec") != body.get("spec"):
            metadata["generation"] = int(metadata.get("generation") or 1) + 1
        whole = copy.deepcopy({**body, "metadata": metadata})
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.objects.pop(key, None)
        else:
            self.objects[key] = whole
        return copy.deepcopy(whole)


def _merged(standing: Object, patch: Object, *, by_key: bool = False) -> Object:
    """The object after a patch; ``by_key`` merges the entries of list-maps, as server-side apply does."""
    merged = dict(standing)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            inner = merged.get(key)
            merged[key] = _merged(inner if isinstance(inner, dict) else {}, value, by_key=by_key)
        elif by_key and key in LIST_MAPS:
            entries = {_key_of(key, one): one for one in merged.get(key) or []}
            merged[key] = list({**entries, **{_key_of(key, one): copy.deepcopy(one) for one in value}}.values())
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def _without(standing: Object, owned: Object, named: Object) -> Object:
    """The object without the fields that were owned and are no longer named."""
    left: Object = {}
    for key, value in standing.items():
        if key in LIST_MAPS and key in owned:
            gone = {_key_of(key, one) for one in owned[key]} - {_key_of(key, one) for one in named.get(key) or []}
            left[key] = [one for one in value if _key_of(key, one) not in gone]
            continue
        if key in owned and key not in named:
            continue
        both = isinstance(value, dict) and isinstance(owned.get(key), dict) and isinstance(named.get(key), dict)
        left[key] = _without(value, owned[key], named[key]) if both else value
    return left


def _key_of(field: str, entry: Object) -> tuple[object, ...]:
    return tuple(entry.get(name) for name in LIST_MAPS[field])

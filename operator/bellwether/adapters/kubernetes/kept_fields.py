"""Trim objects of our kinds to what is used of them, and read from that who wrote a field.

In: an object as the API has it, of up to 1.5 MB. Out: spec and status, which the CRDs limit, and of the metadata what
identifies it, our own annotations, and the managed fields of these and of the spec. A manager is a program, not a
person: the audit log of the API server contains the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource
from bellwether.adapters.kubernetes.object_lists import LARGEST_OBJECT
from bellwether.adapters.kubernetes.object_names import GROUP

_HEAD = (
    *("namespace", "name", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "finalizers"),
)


def kept(body: Object) -> Object:
    """The object without other annotations, labels and owners."""
    metadata = body["metadata"]
    head = {key: metadata[key] for key in _HEAD if key in metadata}
    head["annotations"] = _prefixed(metadata.get("annotations"), f"{GROUP}/")
    head["managedFields"] = [one for one in map(_manager, metadata.get("managedFields") or ()) if one["fieldsV1"]]
    return {**{key: body[key] for key in ("apiVersion", "kind", "spec", "status") if key in body}, "metadata": head}


def kept_list(api: KubernetesClient, resource: Resource, namespace: str) -> list[Object]:
    """The objects of a namespace, trimmed; larger ones than ours can be are left out and logged.

    Raises Transient or Terminal.
    """
    return api.list_version(resource, namespace, None, LARGEST_OBJECT, kept)[0]


def owner_of(found: Object, *path: str) -> str:
    """The field manager that last wrote a field, or fields below it: ``field manager kubectl-patch``."""
    latest, name = "", ""
    for entry in found["metadata"].get("managedFields") or ():
        if isinstance(entry, Mapping) and _owns(entry.get("fieldsV1"), path):
            time = str(entry.get("time") or "")
            if time >= latest:
                latest, name = time, str(entry.get("manager") or "")
    return f"field manager {name}" if name else ""


def _prefixed(entries: Any, prefix: str) -> Object:
    found = entries.items() if isinstance(entries, Mapping) else ()
    return {key: value for key, value in found if key.startswith(prefix)}


def _manager(entry: Any) -> Object:
    """One of the managed fields, with those of the spec and of our annotations."""
    fields = entry.get("fieldsV1") or {}
    own = _prefixed((fields.get("f:metadata") or {}).get("f:annotations"), f"f:{GROUP}/")
    found = {"f:spec": fields.get("f:spec"), "f:metadata": {"f:annotations": own} if own else None}
    return {
        "manager": entry.get("manager"),
        "time": entry.get("time"),
        "fieldsV1": {key: value for key, value in found.items() if value},
    }


def _owns(fields: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(fields, Mapping) or f"f:{step}" not in fields:
            return False
        fields = fields[f"f:{step}"]
    return True

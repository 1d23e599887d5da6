"""List which objects of a kind there are, by name, however many and however large others make them."""

from __future__ import annotations

from bellwether.adapters.kubernetes.api_client import KubernetesClient, Object, Resource

LARGEST_OBJECT = 256 << 10
"""Bytes of an object of ours; the longest lists that the CRDs allow have less."""


def names_of(api: KubernetesClient, resource: Resource, namespace: str | None) -> frozenset[tuple[str, str]]:
    """Namespaces and names of all objects of at most ``LARGEST_OBJECT`` bytes; nothing else of them is held.

    Raises Transient or Terminal.
    """

    def name_alone(body: Object) -> Object:
        return {key: body["metadata"][key] for key in ("namespace", "name")}

    found, _ = api.list_version(resource, namespace, None, LARGEST_OBJECT, name_alone)
    return frozenset((one["namespace"], one["name"]) for one in found)

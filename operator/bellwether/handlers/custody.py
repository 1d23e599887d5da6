"""Custody of a policy's object and of its undo record: the finalizer, the export, the end.

The finalizer is ours and not kopf's, so that a process that stands by cannot let a policy go whose orders another one
is still restoring (decision 0005). Called by ``loops`` and ``partings``.
"""

from __future__ import annotations

from typing import Any

import structlog

from bellwether.adapters.kubernetes import names
from bellwether.adapters.kubernetes.client import CONFIG_MAPS, POLICIES, Conflict, KubernetesClient, NotFound
from bellwether.adapters.kubernetes.records import ConfigMapRecords
from bellwether.ports import Terminal

FINALIZER = "bellwether.dev/restore"
ABANDON = "bellwether.dev/abandon"

log = structlog.get_logger(__name__)


class Custody:
    """Keeps policies from vanishing before their displaced orders are restored or exported."""

    def __init__(self, api: KubernetesClient) -> None:
        self._api = api

    def adopt(self, body: dict[str, Any]) -> None:
        """Put our finalizer on the policy unless it is there. Raises Transient when somebody else was quicker."""
        finalizers = list(body["metadata"].get("finalizers") or [])
        if FINALIZER not in finalizers:
            try:
                self._set_finalizers(body, [*finalizers, FINALIZER])
            except Conflict:
                fresh = self._api.get(POLICIES, body["metadata"]["namespace"], body["metadata"]["name"])
                standing = list(fresh["metadata"].get("finalizers") or [])
                if FINALIZER not in standing:
                    self._set_finalizers(fresh, [*standing, FINALIZER])

    def release(self, body: dict[str, Any]) -> None:
        """Take our finalizer away, which lets the policy go."""
        metadata = body["metadata"]
        try:
            fresh = self._api.get(POLICIES, metadata["namespace"], metadata["name"])
            left = [f for f in fresh["metadata"].get("finalizers") or [] if f != FINALIZER]
            self._set_finalizers(fresh, left)
        except NotFound:
            return

    def close_record(self, body: dict[str, Any]) -> str | None:
        """Remove the undo record; what it still held is exported first. Returns where to find it, if anything was held.

        A record that cannot be read or exported (too large for one object, its namespace is ending) is left where it
        is, without finalizers. Raises Transient; the record then stands as it was.
        """
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        records = ConfigMapRecords(self._api, namespace, name)
        exported = None
        try:
            record = records.read()
            if record is not None and not record.restored:
                exported = f"{names.undo_record(name)}-export-{str(metadata.get('uid', ''))[:8] or 'unknown'}"
                self._export(namespace, exported, name, records.export())
            records.delete(force=True)
        except Terminal as error:
            log.warning("the undo record is left as it is", why=str(error))
            records.let_go()
            exported = names.undo_record(name)
        return exported

    def _export(self, namespace: str, export: str, policy: str, document: bytes) -> None:
        body = {
            "apiVersion": CONFIG_MAPS.api_version,
            "kind": CONFIG_MAPS.kind,
            "metadata": {"name": export, "namespace": namespace, "annotations": {"bellwether.dev/policy": policy}},
            "data": {"record.json": document.decode()},
        }
        try:
            self._api.create(CONFIG_MAPS, namespace, body)
        except Conflict:
            log.info("the undo record was exported before", configmap=export)

    def _set_finalizers(self, body: dict[str, Any], finalizers: list[str]) -> None:
        metadata = body["metadata"]
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        self._api.merge(POLICIES, metadata["namespace"], metadata["name"], patch)

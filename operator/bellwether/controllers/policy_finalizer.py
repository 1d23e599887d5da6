"""Finalizer handling: add it, export or delete the undo record, then release the object.

The finalizer is ours and not kopf's, so that a standby process cannot let a policy go whose orders another one
is still restoring (decision 0005). An undo record that cannot be restored is exported before it is removed: to a
ConfigMap in its namespace or in another one, or to the log. Called by ``policy_controller`` and ``policy_deletion``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, KubernetesClient
from bellwether.adapters.kubernetes.api_errors import Conflict, NamespaceEnding, NotFound
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.adapters.kubernetes.objects.undo_record_store import ConfigMapRecords
from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, lost_orders, settled_entry
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient

FINALIZER = "bellwether.dev/restore"
ABANDON = "bellwether.dev/abandon"
DOCUMENT = "record.json"
POLICY_ANNOTATION = "bellwether.dev/policy"
_MOST_EXPORTS = 20

log = structlog.get_logger(__name__)


HandOver = Callable[[str, str, bytes], str]
"""Takes a namespace, a policy and its document; returns where it wrote it. Raises Terminal."""


class BaselineExports:
    """``refuge`` is a namespace for documents whose own is ending; ``hand_over`` takes them where neither can.

    With ``at_hand`` the document goes to ``hand_over`` at once, and no object is made.
    """

    def __init__(
        self,
        api: KubernetesClient,
        refuge: str | None = None,
        hand_over: HandOver | None = None,
        *,
        at_hand: bool = False,
    ) -> None:
        self._api = api
        self._refuge = refuge
        self._hand_over = hand_over
        self._at_hand = at_hand

    def keep(self, namespace: str, name: str, policy: str, document: bytes) -> str:
        """Write the document and return where. Raises Transient, Terminal, or NamespaceEnding."""
        if self._at_hand and self._hand_over is not None:
            return self._hand_over(namespace, policy, document)
        try:
            return self._store(namespace, name, policy, document)
        except NamespaceEnding:
            if self._refuge not in (None, namespace):
                try:
                    return self._store(str(self._refuge), f"{name}.{namespace}", f"{namespace}/{policy}", document)
                except Terminal as error:
                    log.warning("undo_record_not_exported", namespace=str(self._refuge), error=str(error))
            if self._hand_over is None:
                raise
            return self._hand_over(namespace, policy, document)
        except Terminal:
            if self._hand_over is None:
                raise
            return self._hand_over(namespace, policy, document)

    def _store(self, namespace: str, name: str, policy: str, document: bytes) -> str:
        """A new ConfigMap of that name, or of the next where another one has it; the same one is kept once."""
        for number in range(1, _MOST_EXPORTS + 1):
            numbered = name if number == 1 else f"{name}-{number}"
            body = {
                "metadata": {"name": numbered, "namespace": namespace, "annotations": {POLICY_ANNOTATION: policy}},
                "data": {DOCUMENT: document.decode()},
            }
            try:
                self._api.create(CONFIG_MAPS, namespace, body)
            except Conflict:
                existing = self._api.find(CONFIG_MAPS, namespace, numbered)
                if ((existing or {}).get("data") or {}).get(DOCUMENT) != document.decode():
                    continue
                log.info("undo_record_already_exported", configmap=f"{namespace}/{numbered}")
            return f"{namespace}/{numbered}"
        raise Terminal(
            f"{_MOST_EXPORTS} exports of {namespace}/{name} exist already: delete those that are no longer needed"
        )


class PolicyFinalizer:
    """Keeps policies from vanishing before their displaced orders are restored or exported.

    ``lease_namespace`` is the namespace of the quarantine orders; None where the process gives none.
    """

    def __init__(
        self, api: KubernetesClient, exports: BaselineExports | None = None, lease_namespace: str | None = None
    ) -> None:
        self._api = api
        self._exports = exports or BaselineExports(api)
        self._lease_namespace = lease_namespace

    def adopt(self, body: dict[str, Any]) -> None:
        """Add our finalizer to the policy unless it is there. Raises Transient on a write conflict."""
        finalizers = list(body["metadata"].get("finalizers") or [])
        if FINALIZER not in finalizers:
            try:
                self._set_finalizers(body, [*finalizers, FINALIZER])
            except Conflict:
                fresh = self._api.get(POLICIES, body["metadata"]["namespace"], body["metadata"]["name"])
                existing = list(fresh["metadata"].get("finalizers") or [])
                if FINALIZER not in existing:
                    self._set_finalizers(fresh, [*existing, FINALIZER])

    def release(self, body: dict[str, Any]) -> None:
        """Take our finalizer away, which lets the policy go."""
        metadata = body["metadata"]
        try:
            fresh = self._api.get(POLICIES, metadata["namespace"], metadata["name"])
            left = [f for f in fresh["metadata"].get("finalizers") or [] if f != FINALIZER]
            self._set_finalizers(fresh, left)
        except NotFound:
            return

    def close_record(self, body: dict[str, Any], lose: bool = False) -> str | None:
        """Remove the undo record; what it still held is exported first. Returns where to find it, if anything was held.

        A record that cannot be read or exported (too large for one object) is left where it is, without finalizers; in
        a namespace that is being deleted it keeps them, unless a person accepts its loss (``lose``). Raises Transient
        or Terminal; the record is then unchanged.
        """
        metadata = body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        records = ConfigMapRecords(self._api, namespace, name)
        exported = None
        try:
            record = records.read()
            if record is not None and (record.has_outstanding or not record.restored):
                export = object_names.export(name, str(metadata.get("uid", "")))
                exported = self._exports.keep(namespace, export, name, records.export())
            records.delete(force=True)
        except NamespaceEnding as error:
            if not lose:
                text = f"its undo record would be lost: bellwether uninstall -n {namespace} --export-to DIRECTORY"
                raise Transient(f"{error}, and there is no other to export to; {text}") from error
            log.warning(
                "undo_record_discarded",
                reason="its namespace is being deleted and the policy has the annotation to abandon it",
            )
            records.delete(force=True)
        except Terminal as error:
            if records.ending():
                raise Transient(f"the undo record cannot be exported and is being deleted: {error}") from error
            log.warning("undo_record_kept", error=str(error))
            records.let_go()
            exported = f"{namespace}/{object_names.undo_record(name)}"
        return exported

    def remove_quarantine_orders(self, body: dict[str, Any]) -> None:
        """Remove the policy's quarantine orders, which ends a hold. Raises Transient.

        What the API rejects is left: an order that is not renewed expires.
        """
        if self._lease_namespace is None:
            return
        who = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
        try:
            LeaseOrders(self._api, self._lease_namespace, who).remove()
        except Terminal as error:
            log.warning("quarantine_orders_not_removed", error=str(error))

    def note(self, body: dict[str, Any], clock: Clock, text: str) -> None:
        """Put it into the policy's audit trail that orders were left as they are. Never raises."""
        metadata, status = body["metadata"], body.get("status") or {}
        cluster_id, epoch = str(status.get("clusterId", "")), int(status.get("epoch") or 0)
        entry = AuditEntry(clock.now(), cluster_id, epoch, text, outcome=AuditOutcome())
        ConfigMapAuditLog(self._api, metadata["namespace"], metadata["name"], clock).conclude(entry)

    def note_settled(self, body: dict[str, Any], clock: Clock) -> None:
        """End the orders in the policy's audit trail, where its record ended with none outstanding. Never raises."""
        metadata, cluster_id = body["metadata"], str((body.get("status") or {}).get("clusterId", ""))
        trail = ConfigMapAuditLog(self._api, metadata["namespace"], metadata["name"], clock)
        with suppress(BellwetherError):
            entries = trail.read()
            if lost_orders(entries, cluster_id, clock.now()):
                trail.conclude(settled_entry(cluster_id, entries[-1].epoch, max(clock.now(), entries[-1].at)))

    def _set_finalizers(self, body: dict[str, Any], finalizers: list[str]) -> None:
        metadata = body["metadata"]
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        self._api.merge(POLICIES, metadata["namespace"], metadata["name"], patch)

"""Export an undo record that cannot be restored: to a ConfigMap in its namespace or in another one, or to the log.

In: a record as one document. Out: where it was written. Called by ``finalizer``, before the record is removed.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, Conflict, KubernetesClient, NamespaceEnding
from bellwether.ports.errors import Terminal

DOCUMENT = "record.json"
POLICY_ANNOTATION = "bellwether.dev/policy"
_MOST = 20

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
                    elsewhere = object_names.legal(f"{name}-of-{namespace}", 253)
                    return self._store(str(self._refuge), elsewhere, f"{namespace}/{policy}", document)
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
        for number in range(1, _MOST + 1):
            numbered = name if number == 1 else f"{name}-{number}"
            body = {
                "apiVersion": CONFIG_MAPS.api_version,
                "kind": CONFIG_MAPS.kind,
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
        raise Terminal(f"{_MOST} exports of {namespace}/{name} exist already: delete those that are no longer needed")

"""``bellwether uninstall``: before Bellwether is taken away, put every order back or export what cannot be put back.

In: the policies of some namespaces, and the operator that still runs. Out: policies without finalizers, no undo record
that nobody would look after, and a line on each. Run by the chart before it is deleted, and by a person where a
namespace hangs in Terminating because the operator went with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, KubernetesClient, NotFound, Object, connect
from bellwether.adapters.kubernetes.objects.undo_record_store import FINALIZER as RECORD_FINALIZER
from bellwether.adapters.kubernetes.objects.undo_record_store import PART_LABEL
from bellwether.controllers.deletion.baseline_export import POLICY_ANNOTATION, BaselineExports
from bellwether.controllers.deletion.finalizer import FINALIZER, PolicyFinalizer
from bellwether.controllers.deletion.uninstall_request import UNINSTALL, UninstallRequest
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.telemetry import logs

_POLL_SECONDS = 1.0
# What the operator still does when its time is over: one request to Kafka, the export, the status.
_LAST_SECONDS = 15.0
_HEADER = "bellwether-undo-"

Named = tuple[str, str]


def uninstall(
    namespaces: tuple[str, ...], mode: str, timeout_seconds: int, export_to: Path | None, by_hand: bool
) -> None:
    """Prepare all policies for Bellwether's removal."""
    logs.configure("auto", "warning")
    try:
        api = connect()
        work = _Uninstall(api, SystemClock(), namespaces, export_to)
        if not by_hand:
            work.ask(mode == "restore", timeout_seconds)
        troubles = work.finish()
    except BellwetherError as error:
        raise click.ClickException(str(error)) from error
    if troubles:
        raise click.ClickException("not everything could be brought to its end:\n  " + "\n  ".join(troubles))


@dataclass
class _Uninstall:
    """One run of the verb."""

    api: KubernetesClient
    clock: Clock
    namespaces: tuple[str, ...]
    export_to: Path | None
    told: set[Named] = field(default_factory=set)

    def ask(self, restore: bool, timeout_seconds: int) -> None:
        """Ask the operator, and wait until it has done its part or its time is over. Raises Transient, Terminal."""
        until = self.clock.now() + timedelta(seconds=timeout_seconds)
        value = str(UninstallRequest(restore, until))
        for body in self._policies():
            patch = {"metadata": {"annotations": {UNINSTALL: value}}}
            try:
                self.api.merge(POLICIES, *_named(body), patch)
            except NotFound:
                continue
        last = self.clock.monotonic() + timeout_seconds + _LAST_SECONDS
        while self.clock.monotonic() < last:
            try:
                if not self._held():
                    return
            except Transient:
                pass  # the next look tells
            self.clock.sleep(_POLL_SECONDS)

    def finish(self) -> list[str]:
        """Do from here what is left, say of each policy how it ended; returns what could not be done."""
        finalizer = PolicyFinalizer(
            self.api, BaselineExports(self.api, hand_over=self._hand_over, at_hand=self.export_to is not None)
        )
        troubles = []
        for named, body in self._held().items():
            try:
                exported = finalizer.close_record(body)
                finalizer.release(body)
            except (Transient, Terminal) as error:
                troubles.append(f"{'/'.join(named)}: {error}")
                continue
            self.told.add(named)
            left = f"left as it is, {exported}" if exported else "nothing was displaced any more"
            click.echo(f"{'/'.join(named)}: no operator finished it in time; {left}")
        for body in self._policies():
            if _named(body) not in self.told and not any(t.startswith("/".join(_named(body))) for t in troubles):
                click.echo(f"{'/'.join(_named(body))}: {self._outcome(body)}")
        return troubles

    def _held(self) -> dict[Named, Object]:
        """What still waits for an operator: policies, and undo records whose policy is gone, by namespace and name."""
        known = {_named(body): body for body in self._policies()}
        held = {named: body for named, body in known.items() if FINALIZER in _finalizers(body)}
        headers = {(namespace, object_names.undo_record(name)): (namespace, name) for namespace, name in known}
        for namespace, header in self._records():
            named = headers.get((namespace, header), (namespace, header.removeprefix(_HEADER)))
            held.setdefault(named, known.get(named) or _gone(*named))
        return held

    def _policies(self) -> Iterator[Object]:
        for namespace in self.namespaces or (None,):
            try:
                yield from self.api.list(POLICIES, namespace)
            except NotFound:
                continue  # no such kind: whatever policies there were are gone

    def _records(self) -> set[Named]:
        """Undo records with a part that would keep its namespace from ending, by namespace and header's name."""
        return {
            (str(found["metadata"]["namespace"]), str(found["metadata"]["name"]).partition(".")[0])
            for namespace in self.namespaces or (None,)
            for part in ("header", "shard")
            for found in self.api.list(CONFIG_MAPS, namespace, {PART_LABEL: part})
            if RECORD_FINALIZER in _finalizers(found)
        }

    def _outcome(self, body: Object) -> str:
        """What became of a policy that the operator finished."""
        namespace, name = _named(body)
        kept = [
            m["metadata"]["name"]
            for m in self.api.list(CONFIG_MAPS, namespace)
            if m["metadata"]["name"].startswith(f"{object_names.undo_record(name)}-export-")
            and (m["metadata"].get("annotations") or {}).get(POLICY_ANNOTATION) == name
        ]
        if kept:
            return f"what could not be put back is in ConfigMap {', '.join(kept)} (bellwether undo-record import)"
        return "every order is as it was before Bellwether moved it"

    def _hand_over(self, namespace: str, policy: str, document: bytes) -> str:
        """Give a person a record that can be kept nowhere else."""
        target = self.export_to
        if target is None or str(target) == "-":
            click.echo(document.decode().rstrip("\n"))
            return "printed on standard output"
        try:
            target.mkdir(parents=True, exist_ok=True)
            path = target / f"{namespace}-{policy}-record.json"
            number = 1
            while path.exists() and path.read_bytes() != document:
                number += 1
                path = target / f"{namespace}-{policy}-record-{number}.json"
            path.write_bytes(document)
        except OSError as error:
            raise Terminal(f"--export-to {target}: {error.strerror}; name a directory that can be written") from error
        return f"written to {path}"


def _named(body: Object) -> Named:
    return str(body["metadata"]["namespace"]), str(body["metadata"]["name"])


def _finalizers(body: Object) -> list[Any]:
    return list(body["metadata"].get("finalizers") or [])


def _gone(namespace: str, policy: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": policy, "uid": "gone"}}

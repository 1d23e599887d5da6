"""``bellwether uninstall``: restore or export all replica orders before Bellwether is removed.

In: the policies of some namespaces, and the running operator. Out: policies and undo records without finalizers, and
one line per policy. The chart runs it in a pre-delete hook. Run it manually if a namespace stays in Terminating because
its operator was deleted with it.
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
from bellwether.adapters.kubernetes.api_client import CONFIG_MAPS, POLICIES, KubernetesClient, Object
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.cli.kubernetes_target import Target, clusterwide, connect
from bellwether.cli.process_options import namespaces_option
from bellwether.ports.clock import Clock
from bellwether.ports.errors import Terminal, Transient

_POLL_SECONDS = 1.0

# After the time limit the operator still finishes: one Kafka request, the export, the status.
_LAST_SECONDS = 15.0
_HEADER = "bellwether-undo-"
Named = tuple[str, str]


@click.command()
@namespaces_option("Only policies in this namespace")
@clusterwide
@click.option(
    "--mode",
    type=click.Choice(["restore", "export"]),
    default="restore",
    show_default=True,
    help="restore: restore replica orders, and export those of brokers that are still sick. export: change no"
    " order, and export all.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.IntRange(0, 86400),
    default=120,
    show_default=True,
    help="Time limit of the operator's part, in seconds; then the command exports what is left.",
)
@click.option(
    "--export-to",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Directory for exported undo records, or - for standard output.  [default: ConfigMaps]",
)
@click.option(
    "--without-operator", is_flag=True, help="Do not wait for an operator: export at once and remove the finalizers."
)
def uninstall(
    target: Target,
    namespaces: tuple[str, ...],
    mode: str,
    timeout_seconds: int,
    export_to: Path | None,
    without_operator: bool,
) -> None:
    """Restore or export all replica orders before removal.

    Run it before Bellwether is removed. It requests the restoration from the operator, and exports what the operator
    has not finished in time. Afterwards no policy and no undo record has a finalizer of Bellwether. The policies are
    not deleted. The command can be repeated at any time. What policies have displaced: kubectl get lp -A -o wide.
    """
    from bellwether.telemetry import logs

    logs.configure("auto", "warning")
    api, _ = connect(target)
    work = _Uninstall(api, SystemClock(), namespaces, export_to)
    if not without_operator:
        work.request(mode == "restore", timeout_seconds)
    troubles = work.finish()
    if troubles:
        raise click.ClickException("some policies could not be finished:\n  " + "\n  ".join(troubles))


@dataclass
class _Uninstall:
    """One run of the command."""

    api: KubernetesClient
    clock: Clock
    namespaces: tuple[str, ...]
    export_to: Path | None
    finished: set[Named] = field(default_factory=set)

    def request(self, restore: bool, timeout_seconds: int) -> None:
        """Request the uninstall and wait until the operator is done or timed out. Raises Transient, Terminal."""
        from bellwether.controllers.policy_deletion import UNINSTALL, UninstallRequest

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
                pass  # retried in the next round
            self.clock.sleep(_POLL_SECONDS)

    def finish(self) -> list[str]:
        """Finish the remaining policies and report the result of each; returns the failures."""
        from bellwether.controllers.policy_finalizer import BaselineExports, PolicyFinalizer

        finalizer = PolicyFinalizer(
            self.api, BaselineExports(self.api, hand_over=self._export_record, at_hand=self.export_to is not None)
        )
        troubles = []
        for named, body in self._held().items():
            try:
                exported = finalizer.close_record(body)
                finalizer.release(body)
            except (Transient, Terminal) as error:
                troubles.append(f"{'/'.join(named)}: {error}")
                continue
            self.finished.add(named)
            left = f"replica orders unchanged, {exported}" if exported else "no partition was displaced"
            click.echo(f"{'/'.join(named)}: not finished by an operator in time; {left}")
        for body in self._policies():
            if _named(body) not in self.finished and not any(t.startswith("/".join(_named(body))) for t in troubles):
                click.echo(f"{'/'.join(_named(body))}: {self._outcome(body)}")
        return troubles

    def _held(self) -> dict[Named, Object]:
        """Policies and orphaned undo records that still have a finalizer, by namespace and name."""
        from bellwether.controllers.policy_finalizer import FINALIZER

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
                continue  # the CRD is gone, and all policies with it

    def _records(self) -> set[Named]:
        """Undo records that have a finalizer, by namespace and name of the header."""
        from bellwether.adapters.kubernetes.objects.undo_record_store import FINALIZER, PART_LABEL

        return {
            (str(found["metadata"]["namespace"]), str(found["metadata"]["name"]).partition(".")[0])
            for namespace in self.namespaces or (None,)
            for part in ("header", "shard")
            for found in self.api.list(CONFIG_MAPS, namespace, {PART_LABEL: part})
            if FINALIZER in _finalizers(found)
        }

    def _outcome(self, body: Object) -> str:
        """Result of a policy that the operator has finished."""
        from bellwether.controllers.policy_finalizer import POLICY_ANNOTATION

        namespace, name = _named(body)
        kept = [
            m["metadata"]["name"]
            for m in self.api.list(CONFIG_MAPS, namespace)
            if m["metadata"]["name"].startswith(object_names.export(name).removesuffix("unknown"))
            and (m["metadata"].get("annotations") or {}).get(POLICY_ANNOTATION) == name
        ]
        if kept:
            return (
                f"baselines that were not restored are in ConfigMap {', '.join(kept)} (bellwether undo-record import)"
            )
        return "all replica orders are restored"

    def _export_record(self, namespace: str, policy: str, document: bytes) -> str:
        """Write a record to ``--export-to``, or to standard output."""
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
            raise Terminal(f"--export-to {target}: {error.strerror}; use a writable directory") from error
        return f"written to {path}"


def _named(body: Object) -> Named:
    return str(body["metadata"]["namespace"]), str(body["metadata"]["name"])


def _finalizers(body: Object) -> list[Any]:
    return list(body["metadata"].get("finalizers") or [])


def _gone(namespace: str, policy: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": policy, "uid": "gone"}}

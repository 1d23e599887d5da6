"""Former operator processes: which of them may still send a reorder to Kafka that they had prepared (invariant 7).

In: the senders that an undo record names. Out: those that are not proven to have ended. A pod proves it by what its
kubelet reports of the container, a node or a machine by another boot id, a process of this machine by its absence. A
pod or a node that is gone proves nothing: it may have been deleted by force, with its machine paused.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from bellwether.adapters.kubernetes.api_client import NODES, PODS, KubernetesClient, Object
from bellwether.core.listing import few
from bellwether.core.model.undo_record import Sender
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError

LOOK_SECONDS = 10.0
_UNKNOWN = "-"


class SenderProofs:
    """``ports.kubernetes.FormerSenders`` for one policy of the process ``own``. Used by one thread."""

    def __init__(self, api: KubernetesClient, clock: Clock, own: Sender) -> None:
        self._api = api
        self._clock = clock
        self._own = own
        self._looked_at = float("-inf")
        self._ended: set[Sender] = set()
        self._running: tuple[Sender, ...] = ()
        self._unread = ""
        self._boots_seen = False

    @property
    def problem(self) -> str:
        """Who may still send, and what would prove that it cannot; empty without one."""
        if not self._running:
            return ""
        named = [f"{one.name} on {one.node}" if one.node else one.name for one in self._running]
        proof = "its process is gone from this machine, or its machine has booted again"
        if not all(" " in one.uid for one in self._running):
            boot = ", or its node has booted again" if self._boots_seen else ""
            proof = f"the kubelet reports its container as terminated{boot}"
        return (
            f"a former operator process may be paused before a request to Kafka: {few(named, 3)}. Its orders are undone"
            f" when they arrive, until it is proven to have ended: {proof}{self._unread and f'; {self._unread}'}. If it"
            f" can never run again, record that: bellwether undo-record sender-ended {self._running[0].name}"
        )

    def running(self, senders: Sequence[Sender]) -> tuple[Sender, ...]:
        """Those that are not proven to have ended, by reads of the API every ``LOOK_SECONDS``."""
        now = self._clock.monotonic()
        if senders and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at, self._unread, self._boots_seen = now, "", False
            self._ended.update(one for one in senders if one not in self._ended and self._has_ended(one))
        self._running = tuple(one for one in senders if one not in self._ended)
        return self._running

    def _has_ended(self, sender: Sender) -> bool:
        if " " in sender.uid:  # a process outside of pods
            if sender.boot_id == self._own.boot_id:
                return _is_over(sender.uid)
            same = [(one.name, one.uid.partition(" ")[0]) for one in (sender, self._own)]
            return same[0] == same[1] and "" not in (sender.boot_id, self._own.boot_id) and same[0][1] != _UNKNOWN
        try:
            namespace, _, name = sender.name.partition("/")
            pod = self._api.find(PODS, namespace, name)
            if pod is not None and any(at > sender.since for at in _ends(pod, sender)):
                return True
            node = self._api.find(NODES, "", sender.node) if sender.node else None
        except BellwetherError as error:
            self._unread = str(error)
            return False
        boot_id = ((node or {}).get("status") or {}).get("nodeInfo", {}).get("bootID")
        self._boots_seen |= bool(boot_id)
        return bool(boot_id and sender.boot_id) and boot_id != sender.boot_id


def this_process(environment: Mapping[str, str], now: datetime) -> Sender:
    """This process, as its pod's environment names it, or else as a process of this machine."""
    boot_id, pod = _read("/proc/sys/kernel/random/boot_id"), environment.get("POD_NAME", "")
    if pod and (uid := environment.get("POD_UID", "")):
        name = f"{environment.get('POD_NAMESPACE', 'default')}/{pod}"
        return Sender(name, uid, environment.get("CONTAINER_NAME", ""), environment.get("NODE_NAME", ""), boot_id, now)
    space, process = _pid_namespace(), os.getpid()
    machine = _read("/etc/machine-id") or _UNKNOWN  # a host name alone is not unique
    return Sender(socket.gethostname(), f"{machine} {space} {process} {_started(process)}", "", "", boot_id, now)


def _is_over(uid: str) -> bool:
    """Whether a process of this machine is gone; those of other PID namespaces cannot be seen."""
    space, number, started = uid.split(" ")[-3:]
    return space == _pid_namespace() and number.isdecimal() and _started(int(number)) != started


def _started(process: int) -> str:
    """When a process was started, in ticks since the boot; empty for none."""
    fields = _read(f"/proc/{process}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return _UNKNOWN


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _ends(pod: Object, sender: Sender) -> Iterator[datetime]:
    """When the kubelet saw the sender's container end, the last times; of another pod of that name, never."""
    if pod["metadata"].get("uid") != sender.uid:
        return
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        for state in (status.get("state"), status.get("lastState")):
            finished = ((state or {}).get("terminated") or {}).get("finishedAt")
            if status.get("name") == sender.container and finished:
                yield datetime.fromisoformat(finished)

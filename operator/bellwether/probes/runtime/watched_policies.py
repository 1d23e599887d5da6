"""Serve every policy of a selection, each on threads of its own, so that one cluster's trouble delays no other.

In: the selection, and what to run for a policy. Out: a run for each policy that exists; it is stopped when the policy
is deleted, and begun again when it has failed. A process for one named policy is the case of a set with one member.
Called by the probers and the sampler.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from bellwether.adapters.kubernetes.api_client import POLICIES, KubernetesClient
from bellwether.adapters.kubernetes.object_lists import names_of
from bellwether.destinations import Destinations
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.telemetry.heartbeat import STUCK_SECONDS, Heartbeat

Named = tuple[str, str]
"""Namespace and name of a policy."""

LIST_SECONDS = 10.0
AGAIN_SECONDS = 10.0
"""Pause before a failed run is begun again."""

PATIENCE_SECONDS = 900.0
"""How long a policy may be stuck while others are served, before a restart of the process interrupts all of them."""

_TICK_SECONDS = 0.2
_END_SECONDS = 20.0


@dataclass(frozen=True)
class Selection:
    """Which policies a process serves: the one named, or all of ``namespaces``, or of every namespace.

    ``shard`` k/n: only those whose name falls into part k of n. ``labelled_secrets`` and
    ``destinations``: which Secrets they may name, and where they may connect.
    """

    destinations: Destinations
    policy: str | None = None
    namespaces: tuple[str, ...] = ()
    everywhere: bool = False
    shard: tuple[int, int] = (1, 1)
    labelled_secrets: bool = False


class PolicyRun(Protocol):
    """The work for one policy."""

    def run(self) -> None:
        """Work until its stop event is set."""

    def problems(self, bound_seconds: float) -> list[str]:
        """Failures that only a restart fixes: threads that are stuck for longer than this. Does not block."""


Begin = Callable[[str, str, threading.Event], PolicyRun]
"""Makes the run of a policy, given by its namespace and name, that ends when the event is set."""


class PolicyList:
    """Policies of a selection, read from the API. A namespace that cannot be read keeps those that are known."""

    def __init__(self, api: KubernetesClient, default_namespace: str, selection: Selection) -> None:
        self._api = api
        self._selection = selection
        self._scopes: tuple[str | None, ...] = selection.namespaces or (default_namespace,)
        if selection.everywhere:
            self._scopes = (None,)
        self._known: dict[str | None, frozenset[Named]] = {}
        self._failed: set[str | None] = set()
        self._log = structlog.get_logger(__name__)

    def unread(self) -> list[str]:
        """Which policies have not been read yet."""
        if self._selection.policy is not None:
            return []
        missing = [scope for scope in self._scopes if scope not in self._known]
        return [f"the policies of namespace {scope or '(all)'} have not been read yet" for scope in missing]

    def read(self) -> frozenset[Named]:
        """The policies to serve now. Does not raise."""
        if self._selection.policy is not None:
            return frozenset({(str(self._scopes[0]), self._selection.policy)})
        for scope in self._scopes:
            try:
                found = names_of(self._api, POLICIES, scope)
            except (Transient, Terminal) as error:
                if scope not in self._failed:
                    self._failed.add(scope)
                    self._log.warning("policies_not_read", namespace=scope or "all", error=str(error))
                continue
            if scope in self._failed:
                self._failed.discard(scope)
                self._log.info("policies_read_again", namespace=scope or "all")
            self._known[scope] = frozenset(filter(self._ours, found))
        return frozenset[Named]().union(*self._known.values())

    def _ours(self, key: Named) -> bool:
        part, parts = self._selection.shard
        digest = hashlib.sha256("/".join(key).encode()).digest()
        return int.from_bytes(digest[:8]) % parts == part - 1


@dataclass
class _Member:
    """A policy that is served, with the thread that runs it."""

    stop: threading.Event
    run: PolicyRun
    thread: threading.Thread
    failed: bool = field(default=False)


class WatchedPolicies:
    """Runs for the policies of ``listed``."""

    def __init__(self, listed: Callable[[], frozenset[Named]], begin: Begin, clock: Clock) -> None:
        self._listed = listed
        self._begin = begin
        self._clock = clock
        self._members: dict[Named, _Member] = {}
        self._again: dict[Named, float] = {}
        self._lock = threading.Lock()
        self._log = structlog.get_logger(__name__)
        self._loop = Heartbeat("the loop that follows the policies", clock.monotonic, begun=False)

    def problems(self, bound_seconds: float = STUCK_SECONDS) -> list[str]:
        """Failures that only a restart of the process fixes. Does not block.

        A restart interrupts all policies: one that is stuck counts only when all are, or after ``PATIENCE_SECONDS``.
        """
        own = self._loop.unhealthy_reason(bound_seconds)
        with self._lock:
            runs = [member.run for member in self._members.values()]
        stuck = [run.problems(bound_seconds) for run in runs]
        if not all(stuck):
            stuck = [run.problems(max(bound_seconds, PATIENCE_SECONDS)) for run in runs]
        return [*([own] if own else []), *(one for said in stuck for one in said)]

    def run(self, stop: threading.Event) -> None:
        """Serve until ``stop``, then end all runs."""
        wanted: frozenset[Named] = frozenset()
        due = self._clock.monotonic()
        while not stop.is_set():
            self._loop.beat()
            if self._clock.monotonic() >= due:
                wanted = self._listed()
                due = self._clock.monotonic() + LIST_SECONDS
            self._settle(wanted)
            stop.wait(_TICK_SECONDS)
        with self._lock:
            members = list(self._members.values())
        for member in members:
            member.stop.set()
        end = self._clock.monotonic() + _END_SECONDS
        for member in members:
            member.thread.join(max(0.0, end - self._clock.monotonic()))

    def _settle(self, wanted: frozenset[Named]) -> None:
        now = self._clock.monotonic()
        for key, member in list(self._members.items()):
            if not member.thread.is_alive():
                with self._lock:
                    del self._members[key]
                if member.failed:
                    self._again[key] = now + AGAIN_SECONDS
            elif key not in wanted and not member.stop.is_set():
                self._log.info("policy_left", policy="/".join(key))
                member.stop.set()
        for key in self._again.keys() - wanted:
            del self._again[key]
        for key in sorted(wanted - self._members.keys()):
            if now >= self._again.get(key, now):
                self._start(key)

    def _start(self, key: Named) -> None:
        stop = threading.Event()
        member = _Member(stop, self._begin(*key, stop), threading.Thread())

        def work() -> None:
            try:
                member.run.run()
            except BellwetherError as error:
                member.failed = True
                self._log.warning("policy_run_failed", policy="/".join(key), error=str(error))
            except Exception as error:
                member.failed = True
                self._log.exception("policy_run_failed", policy="/".join(key), error=str(error))

        member.thread = threading.Thread(target=work, name=f"policy {'/'.join(key)}", daemon=True)
        with self._lock:
            self._members[key] = member
        self._log.info("policy_served", policy="/".join(key))
        member.thread.start()

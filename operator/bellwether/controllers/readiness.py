"""Readiness of the operator: the API server answers, both kinds are served, and the watches have listed.

In: a client, the watched namespaces, and which policies the watches know. Out: the problems, for ``/readyz``. A thread
reads the API every few seconds, so that a readiness request does not wait for it. A standby process is
as ready as the leading one.

kopf asks once, at its start, which kinds are served, and ends when one is served no more: the process waits for both
before it starts kopf. The API server calls a definition Established a moment before discovery lists its kind, so
discovery is asked, by the addresses that kopf asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import structlog

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, KINDS, POLICIES, KubernetesClient
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.object_lists import names_of
from bellwether.api.v1alpha1.base_model import GROUP, VERSION
from bellwether.api.v1alpha1.schema import crd_manifests
from bellwether.core.listing import few
from bellwether.ports.clock import Clock
from bellwether.ports.errors import BellwetherError, Terminal, Transient
from bellwether.telemetry.heartbeat import Heartbeat

ASK_SECONDS = 3.0
DELIVERED_SECONDS = 30.0
"""How long the watches may take to deliver the first policy, where there is one."""

FIELDS_SECONDS = 10.0
"""How often the fields of definitions that are older than this version are compared."""

WAIT_SECONDS = 2.0
SETTLE_SECONDS = 3.0
"""After definitions that came late: another API server may list them a moment later."""

REMEDY = "install those of the chart (crds.install), or kubectl apply -f crds/"

log = structlog.get_logger(__name__)

Named = tuple[str, str]


def missing_definitions(api: KubernetesClient) -> list[str]:
    """The names of our definitions whose kinds discovery does not list. Raises Transient or Terminal."""
    served = api.served(GROUP, VERSION)
    return [f"{one.plural}.{GROUP}" for one in KINDS if one.plural not in served]


def missing_fields(api: KubernetesClient) -> list[str]:
    """Fields of this version that the served definitions do not have, so that the API server prunes them.

    Raises Transient or Terminal.
    """
    served = api.schemas(GROUP, VERSION)
    known = [(kind, served[kind.name]) for kind in crd_manifests.KINDS if kind.name in served]
    return [f"{kind.plural}{path}" for kind, schema in known for path in _absent(kind.schema(), schema)]


def _absent(ours: Mapping[str, Any], served: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Paths of fields that a served schema does not have; that of metadata is the API server's."""
    there = served.get("properties") or {}
    for name, field in (ours.get("properties") or {}).items():
        if name not in there:
            yield f"{path}.{name}"
        elif path or name != "metadata":
            yield from _absent(field, there[name], f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(ours.get(part), Mapping) and isinstance(served.get(part), Mapping):
            yield from _absent(ours[part], served[part], f"{path}[]")


def await_definitions(api: KubernetesClient, sleep: Callable[[float], None]) -> None:
    """Return once discovery lists all kinds, or where this account may not ask. What is missing is logged once."""
    reported: list[str] = []
    while True:
        try:
            missing = missing_definitions(api)
        except Transient:  # readiness reports it
            sleep(WAIT_SECONDS)
            continue
        except Terminal as error:
            log.warning("definitions_not_checked", error=str(error))
            return
        if not missing:
            break
        if missing != reported:
            log.error("definitions_missing", missing=missing, remedy=REMEDY)
            reported = missing
        sleep(WAIT_SECONDS)
    if reported:
        log.info("definitions_served")
        sleep(SETTLE_SECONDS)


class Readiness(threading.Thread):
    """See the module. ``known`` gives the policies that the watches know, by namespace and name; ``attend`` is called
    after each check.
    """

    def __init__(
        self,
        api: KubernetesClient,
        namespaces: Sequence[str],
        known: Callable[[], Collection[Named]],
        clock: Clock,
        attend: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="readiness", daemon=True)
        self._api = api
        self._namespaces: Sequence[str | None] = tuple(namespaces) or (None,)
        self._known = known
        self._clock = clock
        self._attend = attend
        self._stop_requested = threading.Event()
        self._problem: str | None = "the first list of policies has not been received yet"
        self._listed = False
        self._since: float | None = None
        self._missing: str | None = None
        self._fields_at = float("-inf")
        self._lost: str | None = None
        self._heartbeat = Heartbeat("the readiness thread", clock.monotonic)

    def stuck(self) -> list[str]:
        """Reports what only a restart cures: the checking thread is dead or stuck, the watches cannot go on."""
        found = self._heartbeat.unhealthy_reason() if self.ident is not None else None
        return [one for one in (found, self._lost) if one is not None]

    def problems(self) -> list[str]:
        """What keeps the operator from its work."""
        return [] if self._problem is None else [self._problem]

    def run(self) -> None:
        """Check until stopped."""
        while not self._stop_requested.is_set():
            self._heartbeat.beat()
            self.ask()
            try:
                self._attend()
            except Exception:
                log.exception("policies_not_attended")
            self._stop_requested.wait(ASK_SECONDS)

    def end(self) -> None:
        """Ask no more."""
        self._stop_requested.set()

    def ask(self) -> None:
        """Check the API once; log a change once."""
        found = self._look() or self._fields()
        if found != self._problem:
            if found is None:
                log.info("operator_ready")
            else:
                log.warning("operator_not_ready", reason=found)
        self._problem = found

    def _look(self) -> str | None:
        try:
            missing = missing_definitions(self._api)
            if missing:
                text = f"custom resource definitions are missing: {', '.join(missing)}: {REMEDY}"
                self._lost = f"the watches have ended: {text}" if self._listed else None
                return text
            if self._listed:
                self._lost = None
                return None
            there = {name for namespace in self._namespaces for name in names_of(self._api, POLICIES, namespace)}
            names_of(self._api, BROKER_HEALTHS, self._namespaces[0])
        except NotFound as error:
            return str(error)  # listed, and not served yet or no longer
        except Transient as error:
            return f"the Kubernetes API does not answer: {error}"
        except BellwetherError as error:
            return str(error)
        return self._undelivered(there)

    def _fields(self) -> str | None:
        """Which fields the served definitions lack; looked at until they have all."""
        now = self._clock.monotonic()
        if now < self._fields_at:
            return self._missing
        self._fields_at, self._missing = now + FIELDS_SECONDS, None
        try:
            missing = missing_fields(self._api)
        except BellwetherError as error:
            log.warning("definitions_not_compared", error=str(error))
            return None
        if missing:
            text = f"the installed CRDs are older than this version and have no field {few(missing, 3)}"
            self._missing = f"{text}: the API server drops what policies say there: {REMEDY}"
        else:
            self._fields_at = float("inf")
        return self._missing

    def _undelivered(self, there: set[Named]) -> str | None:
        """Which policies the watches have not delivered yet. Once they have listed, kopf renews them."""
        known = set(self._known())
        late = sorted(there - known)
        if not late:
            self._listed, self._lost = True, None
            return None
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        named = ", ".join("/".join(one) for one in late[:3])
        if not known and now - self._since >= DELIVERED_SECONDS:
            self._lost = f"the watches deliver no policy, and the API has {named}"
        return f"{len(late)} policies in the API are not delivered by the watch yet: {named}"

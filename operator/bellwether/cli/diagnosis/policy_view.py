"""What the custom resources and Leases say of one policy, read at one moment. Shown by ``bellwether status``.

In: the Kubernetes API. Out: ``PolicyView``. Leases give the age of reports; where they may not be read, it is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, Object
from bellwether.adapters.kubernetes.objects.leader_rebalances import with_rebalances
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.signal_entries import SignalEntry
from bellwether.api.v1alpha1.status.status_conditions import Condition, condition
from bellwether.cli.diagnosis.remedies import (
    MissingSource,
    missing_sources,
    named_vantages,
    override_remedy,
    remedy,
    start_sources,
)
from bellwether.cli.leadership import broker_lookup
from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.ports.errors import BellwetherError
from bellwether.ports.rebalance import RunState

STALE_SECONDS = 45.0
"""Age from which a prober's reports are called stale: that of the alert BellwetherProberDown."""

LEASE_SECONDS = 30.0
"""Age of the operator's Lease from which no operator is at work: a standby takes over long before."""

_FINE = frozenset(
    {
        Reason.UP_TO_DATE,
        Reason.SIGNALS_PASSING,
        Reason.LEADERS_MOVING,
        Reason.NOT_BLOCKING_ACKS,
        Reason.STABILIZING,
        Reason.QUARANTINE_ENDED,
    }
)
"""Reasons that call for no action."""

WAITS_NAMED = 5
"""How many messages of drains and quarantines a remedy begins with."""

_UNFINISHED = (RunState.FAILED, RunState.STALE, RunState.PROPOSED)


@dataclass(frozen=True, slots=True)
class Prober:
    """One source of signals: of how many brokers, and when it renewed its Lease (None: unknown)."""

    type: str
    source: str
    brokers: int
    renewed: datetime | None

    def stale(self, now: datetime) -> bool:
        """Whether its reports are known to be stale."""
        return self.renewed is not None and (now - self.renewed).total_seconds() > STALE_SECONDS


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: its reason, what it is about, and what to do."""

    reason: str
    about: tuple[str, ...]
    remedy: str


@dataclass(frozen=True)
class PolicyView:
    """One policy, its brokers by id, and its probers. ``renewed``: the operator's Lease; None if it is unknown.

    ``idled_by``: who set that the policy does not act, and when that field manager last wrote; None if that is unknown.
    """

    policy: LeadershipPolicy
    brokers: tuple[BrokerHealth, ...]
    probers: tuple[Prober, ...]
    renewed: datetime | None
    now: datetime
    idled_by: tuple[str, datetime] | None = None

    @property
    def unattended(self) -> bool:
        """Whether the operator's Lease is known to have expired, so that everything else is as old."""
        return self.renewed is not None and (self.now - self.renewed).total_seconds() > LEASE_SECONDS

    @property
    def ready(self) -> Condition | None:
        """The condition Ready; None before the first reconcile."""
        return condition(self.policy.status.conditions, "Ready")

    @property
    def reason_since(self) -> datetime | None:
        """Since when the reason of Ready holds, where it is that of a broker's verdict; None if that is unknown.

        The condition itself has the time of its status, which the reason may outlive or change under.
        """
        verdicts = [v for health in self.brokers if (v := health.status.verdict) is not None]
        return min(
            (v.since for v in verdicts if self.ready is not None and v.reason == self.ready.reason), default=None
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong, the worst first, each reason once."""
        found: dict[str, dict[str, None]] = {}
        for reason, about in self._problems():
            if reason not in _FINE:
                found.setdefault(reason, {})[about] = None
        return tuple(Problem(reason, tuple(about), self._remedy(reason, about)) for reason, about in found.items())

    def _remedy(self, reason: str, about: Collection[str]) -> str:
        """The remedy of the reason, after what a drain or a quarantine waits for; for sources that do not report,
        which ones to start; for overrides, whose.
        """
        if reason == Reason.OVERRIDE_DEMOTED:
            return override_remedy([h for h in self.brokers if _name(h) in about]) or remedy(reason)
        if reason != Reason.NO_EVIDENCE:
            waits = list(dict.fromkeys(m for h in self.brokers if _name(h) in about for m in _waits_for(h, reason)))
            return "; ".join((*waits[:WAITS_NAMED], remedy(reason)))
        vantages = named_vantages(self.policy)
        by_broker = {_name(health): missing_sources(health, vantages) for health in self.brokers}
        stale = {f"{p.type} from {p.source}": [MissingSource(p.type, p.source)] for p in self.probers}
        known = {name: sources for name, sources in (by_broker | stale).items() if name in about and sources}
        start = start_sources(chain.from_iterable(known.values()))
        if (unusable := condition(self.policy.status.conditions, "SourcesUsable")) is not None:
            start = "; ".join(filter(None, (unusable.message, start)))
            known["SignalSources"] = []
        explained = {*known, "policy"} if any(name in by_broker for name in known) else {*known}
        return start if start and explained >= {*about} else "; ".join(filter(None, (start, remedy(reason))))

    def _problems(self) -> Iterable[tuple[str, str]]:
        status = self.policy.status
        if self.ready is not None:
            yield self.ready.reason, "policy"
        if (unusable := condition(status.conditions, "SourcesUsable")) is not None:
            yield unusable.reason, "SignalSources"
        if condition(status.conditions, "OrdersSettled") is not None:
            yield str(Reason.SENDER_MAY_RUN), "policy"
        for health in self.brokers:
            yield from _of_broker(health)
        for blocked in status.blocked_by_reason:
            yield blocked.reason, f"{blocked.count} partitions"
        for prober in self.probers:
            if prober.stale(self.now):
                yield str(Reason.NO_EVIDENCE), f"{prober.type} from {prober.source}"
        used, unused = self.policy.rebalance, self.policy.rebalances.unused
        if used is not None and (used.status.state in _UNFINISHED or used.status.reason == Reason.PLAN_EXPIRED):
            yield used.status.reason, f"LeaderRebalance {used.metadata.name}"
        for name in unused:
            yield str(Reason.REBALANCE_UNUSED), f"LeaderRebalance {name}"


def _name(health: BrokerHealth) -> str:
    return f"broker {health.spec.broker_id}"


def _of_broker(health: BrokerHealth) -> Iterable[tuple[str, str]]:
    status, name = health.status, _name(health)
    if status.verdict is not None and status.verdict.state is not HealthState.HEALTHY:
        yield status.verdict.reason, name
    for type_, wrong in (("Demoted", None), ("HoldsBackISR", "True"), ("Drained", "False"), ("Quarantined", None)):
        found = condition(status.conditions, type_)
        if found is not None and wrong in (None, str(found.status)):
            yield found.reason, name


def _waits_for(health: BrokerHealth, reason: str) -> Iterator[str]:
    """Messages of its drain and its quarantine, where these wait for that reason: no other text of status has them."""
    for type_ in ("Drained", "Quarantined"):
        found = condition(health.status.conditions, type_)
        if found is not None and (str(found.status), found.reason) == ("False", reason):
            yield found.message


def policy_view(api: KubernetesClient, body: Object, now: datetime) -> PolicyView:
    """Read what belongs to a policy that was read already. Raises what the client raises."""
    policy = LeadershipPolicy.read(body)
    with suppress(BellwetherError):  # they may not be read, and the rest is shown
        policy = with_rebalances(api, policy)
    namespace, name = policy.metadata.namespace, policy.metadata.name
    healths = sorted(
        (BrokerHealth.read(body) for body in broker_lookup.healths(api, namespace, name)),
        key=lambda health: health.spec.broker_id,
    )
    leases = prober_leases(api, namespace, name)
    return PolicyView(policy, tuple(healths), probers(healths, leases), _operator(api, policy), now, _idled_by(body))


def _idled_by(body: Object) -> tuple[str, datetime] | None:
    spec = body.get("spec") or {}
    if not spec.get("suspend") and spec.get("mode") == "Enforce":
        return None
    field = "f:suspend" if spec.get("suspend") else "f:mode"
    for entry in body["metadata"].get("managedFields") or ():
        owned = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if field in owned and (moment := lease_time(entry, "time")) is not None:
            return str(entry.get("manager")), moment
    return None


def prober_leases(api: KubernetesClient, namespace: str, policy: str) -> dict[str, Object]:
    """Leases of a policy's probers, by name; none if they may not be read."""
    own = {object_names.PROBER_LABEL: "true", object_names.POLICY_LABEL: object_names.legal(policy)}
    try:
        return {str(lease["metadata"]["name"]): lease for lease in api.list(LEASES, namespace, own)}
    except BellwetherError:
        return {}


def probers(healths: Iterable[BrokerHealth], leases: Mapping[str, Object]) -> tuple[Prober, ...]:
    """Sources of the brokers' signals, by type and source. ``leases`` are those of probers, by name."""
    entries: dict[tuple[str, str], list[SignalEntry]] = {}
    for health in healths:
        for entry in health.status.signals:
            entries.setdefault((entry.type, entry.source), []).append(entry)
    return tuple(
        Prober(type_, source, len(of_source), _last(renewed(entry, leases) for entry in of_source))
        for (type_, source), of_source in sorted(entries.items())
    )


def _last(moments: Iterable[datetime | None]) -> datetime | None:
    """The latest: an entry that an earlier prober of the source left does not make the source's reports older."""
    return max((moment for moment in moments if moment is not None), default=None)


def renewed(entry: SignalEntry, leases: Mapping[str, Object]) -> datetime | None:
    """When the prober that wrote an entry last renewed its Lease; None if that is unknown.

    The time stays when a prober ends and releases its Lease. If another one has it, the writer's last renewal was
    before the Lease was acquired.
    """
    spec = (leases.get(entry.lease_name) or {}).get("spec") or {}
    own = (spec.get("holderIdentity") or entry.prober_uid) == entry.prober_uid
    return lease_time(spec, "renewTime" if own else "acquireTime")


def _operator(api: KubernetesClient, policy: LeadershipPolicy) -> datetime | None:
    namespace = policy.status.operator.rpartition("/")[0] or policy.metadata.namespace
    if not policy.status.cluster_id:
        return None
    try:
        lease = api.find(LEASES, namespace, object_names.cluster_lease(policy.status.cluster_id))
    except BellwetherError:
        return None
    return lease_time((lease or {}).get("spec") or {})


def lease_time(source: Object, field: str = "renewTime") -> datetime | None:
    """A time of a Lease's spec, or of another object; None where it is missing or no time."""
    try:
        return datetime.fromisoformat(str(source[field]))
    except (KeyError, ValueError):
        return None

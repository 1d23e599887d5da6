"""Sources of signals that do not report, and how to start them: the remedy of ``NoEvidence`` where they are known.

In: BrokerHealth objects, and the vantages that the policy names. Out: text. Called by ``status`` and ``explain``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.detection.findings import NOT_REPORTED
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import ON_BROKER_HOST
from bellwether.core.signals import SignalType

SOURCES_NAMED = 5
VANTAGES = "spec.detection.externalReachability.vantages"
_DEPLOYMENTS = (
    "kubectl get deploy -A -l app.kubernetes.io/part-of=bellwether lists the probers; scale one without replicas to 1,"
    " and read the log of one that is not ready"
)
_SIDECARS = "kubectl get pods -n NAMESPACE shows whether the containers of the broker's pod are ready"


class MissingSource(NamedTuple):
    """A source of one type of signal that does not report. ``new``: it has no report at all, the policy names it."""

    type: str
    source: str
    new: bool = False


def missing_sources(health: BrokerHealth, vantages: Iterable[str]) -> list[MissingSource]:
    """Sources without which the broker cannot be judged; none if it can be, or if they are not known.

    ``vantages`` are those that the policy names, of which one may never have reported.
    """
    verdict = health.status.verdict
    if verdict is None or verdict.reason != Reason.NO_EVIDENCE:
        return []
    found = [MissingSource(e.type, e.source) for e in verdict.evidence if NOT_REPORTED in e.ignored_reason]
    reported = {e.source for e in verdict.evidence if e.type == SignalType.EXTERNAL_REACHABILITY}
    return found + [
        MissingSource(SignalType.EXTERNAL_REACHABILITY, v, new=True) for v in sorted({*vantages} - reported)
    ]


def named_vantages(policy: LeadershipPolicy) -> tuple[str, ...]:
    """Vantages that a policy names; none if reachability is not judged."""
    reachability = policy.spec.detection.external_reachability.to_core()
    return reachability.vantages if reachability.enabled else ()


def start_sources(missing: Iterable[MissingSource]) -> str:
    """What to start, by name, and where to look; empty for none."""
    types: dict[str, list[str]] = {}
    found = dict.fromkeys(missing)
    for one in found:
        types.setdefault(one.source, []).append(one.type)
    deployed = {s: t for s, t in types.items() if not any(one in ON_BROKER_HOST for one in t)}
    sidecars = {s: t for s, t in types.items() if s not in deployed}
    said = [(deployed, "start the prober of", _DEPLOYMENTS), (sidecars, "start the sidecar of", _SIDECARS)]
    texts = [f"{verb} {_named(sources)}: {look}" for sources, verb, look in said if sources]
    if new := sorted(one.source for one in found if one.new):
        texts.append(f"if no prober is to have the name {' or '.join(new)}, correct {VANTAGES}")
    return "; ".join(texts)


def _named(sources: dict[str, list[str]]) -> str:
    texts = [f"{source} ({', '.join(types)})" for source, types in list(sources.items())[:SOURCES_NAMED]]
    return ", ".join(texts) + (f" and {len(sources) - len(texts)} more" if len(sources) > len(texts) else "")

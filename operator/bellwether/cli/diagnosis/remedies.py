"""What to do about a reason, and where it is explained: the one table of remedies, for every command that names one.

``docs/draw_remedies.py`` makes the table from ``docs/reasons.md``. Where more is known, the remedy says it: which
sources to start, and whose override to end. In: reasons and BrokerHealth objects. Out: text with placeholders, for
``typed``. What helps partitions at risk is in ``core.doctor``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from bellwether import documentation
from bellwether.cli.output import clock
from bellwether.core.detection.findings import NOT_REPORTED
from bellwether.core.detection.health_states import HealthState
from bellwether.core.listing import counted, few
from bellwether.core.reasons import Reason
from bellwether.core.signals import ON_BROKER_HOST, SignalType

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy


@cache
def _table() -> Mapping[str, str]:
    text = resources.files("bellwether.cli.diagnosis").joinpath("remedies.json").read_text(encoding="utf-8")
    table: Mapping[str, str] = json.loads(text)
    return table


def remedy(reason: str) -> str:
    """What to do; empty for a reason that this version does not know."""
    return _table().get(reason, "")


def typed(text: str, namespace: str, policy: str, broker: str = "") -> str:
    """A remedy whose commands can be typed: with the policy's name and namespace, and the broker's id if known."""
    text = re.sub(r"(?<= )NAME( -n NAMESPACE)?\b", lambda _: f"{policy} -n {namespace}", text)
    text = re.sub(r"(?<=-n )NAMESPACE\b", namespace, text)
    return re.sub(r"(?<= )BROKER\b", broker, text) if broker.isdecimal() else text


def runbook(reason: str) -> str:
    """Address of what the documentation says about a reason."""
    return documentation.page(f"reasons.md#{reason}" if reason in _table() else "reasons.md")


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


def _named(sources: Mapping[str, Sequence[str]]) -> str:
    return few([f"{source} ({', '.join(types)})" for source, types in sources.items()], SOURCES_NAMED)


OVERRIDES_NAMED = 5
"""How many brokers the text names; the others are counted."""


def override_remedy(healths: Sequence[BrokerHealth]) -> str:
    """Remedy for brokers with an override; empty if none of them has one."""
    overridden = [health for health in healths if health.spec.override is not None]
    texts = [_override(health) for health in overridden[:OVERRIDES_NAMED]]
    if len(healths) > 1:
        texts = [f"broker {health.spec.broker_id} is {text}" for health, text in zip(overridden, texts, strict=False)]
    if (more := len(overridden) - OVERRIDES_NAMED) > 0:
        texts.append(f"and {counted(more, 'more broker')}")
    return "; ".join(texts)


def _override(health: BrokerHealth) -> str:
    override, verdict, broker = health.spec.override, health.status.verdict, health.spec.broker_id
    if override is None:
        return ""
    by = f" by {override.by}" if override.by else ""
    until = f" until {clock(override.until)}" if override.until is not None else " without an end"
    text = f"demoted{by}{until}: {override.reason}"
    state = verdict.state if verdict is not None else HealthState.UNKNOWN
    command = f"`bellwether release {broker} --policy NAME -n NAMESPACE`"
    if state is HealthState.HEALTHY:
        return f"{text}; it is healthy: {command} lets it lead"
    if state is HealthState.UNKNOWN:
        return f"{text}; its health is not known: {command} lets it lead nevertheless"
    reason = f" ({verdict.reason})" if verdict is not None else ""
    return f"{text}; it is {state}{reason}: after {command} it stays demoted until it is healthy"

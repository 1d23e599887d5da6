"""Render a reconcile's report as the status of LeadershipPolicy and BrokerHealth. Pure: values in, plain objects out.

Reasons and messages come from the decisions; here they only get the API's field names. A condition keeps its
transition time while its status is unchanged, so the same input makes the same bytes (invariant 8).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from bellwether.adapters.kubernetes.api_client import Object
from bellwether.api.v1alpha1 import broker_health
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.status import policy_status as policystatus
from bellwether.api.v1alpha1.status import status_conditions
from bellwether.api.v1alpha1.status.rebalance_status import LeaderRebalanceStatus
from bellwether.core.condition import Condition
from bellwether.core.detection.health_states import HealthState
from bellwether.core.doctor.risks import RISK_DESCRIPTIONS as RISKS
from bellwether.core.reasons import DESCRIPTIONS, Reason
from bellwether.core.reporting.broker_report import BrokerReport
from bellwether.core.reporting.report import Report

MESSAGE_LIMIT = status_conditions.MESSAGE_LIMIT


def policy_status(
    report: Report,
    generation: int,
    before: Mapping[str, status_conditions.Condition],
    last_election: Object | None,
    namespace: str = "",
    operator: str = "",
) -> Object:
    """The whole status of a policy after a reconcile. ``before`` are its current conditions, by type.

    ``namespace`` is the policy's. ``operator`` is the pod that leads.
    """
    counts = {str(standing).lower(): n for standing, n in report.states.items()}
    demoted = sum(1 for b in report.brokers if b.demoted is not None)
    restoring = sum(1 for b in report.brokers if b.restoration is not None)
    elections = sum(1 for m in report.plan.moves if m.elect)
    ready = report.condition("Ready")
    status = policystatus.LeadershipPolicyStatus.of(
        report,
        observed_generation=generation,
        conditions=rendered((connected(report.cluster_id), *report.conditions), generation, before, report.now),
        cluster=_called(report, namespace),
        mode=policystatus.Mode.of(report.mode, suspend=report.suspended),
        operator=operator,
        brokers=policystatus.BrokerCounts(**counts, demoted=demoted, restoring=restoring or None),
        plan=policystatus.PlanSummary(
            digest=report.plan.digest if report.plan.moves else "",
            moves=len(report.plan.moves),
            elections=elections,
            blocked=len(report.held),
        ),
        blocked_partitions=policystatus.BlockedPartitions(
            total=len(report.held), sample=tuple(map(policystatus.BlockedPartition.of, report.held_sample))
        ),
        partitions_at_risk=_risks(report),
        affected_topics=_affected(report),
        blocked_by_reason=tuple(
            policystatus.BlockedReason(reason=str(reason), count=n, message=DESCRIPTIONS[reason])
            for reason, n in report.blocked_by_reason.items()
        ),
        move_cost=policystatus.MoveCostStatus.of(report.elections) if report.elections else None,
        harm_episodes=policystatus.HarmEpisodes.of(report.harm_history),
        would_demote=tuple(_would_demote(report)),
        message=_clip(ready.message),
        last_election=None,
    ).body()
    if last_election is not None:
        status["lastElection"] = last_election
    return status


STALLED = frozenset({Reason.INVALID_POLICY, Reason.CLUSTER_CHANGED, Reason.CLUSTER_CLAIMED})
"""Reasons that last until the policy is edited: condition ``Stalled``, as kstatus, Argo CD and Flux know it."""

_REPLACED = frozenset({"Ready", "Connected", "Stalled"})
"""Conditions that a status without a full report writes again or removes; it keeps all others."""


def trouble_status(
    reason: Reason,
    message: str,
    generation: int,
    before: Mapping[str, status_conditions.Condition],
    now: datetime,
    standing: Object,
    mode: policystatus.Mode | None = None,
) -> Object:
    """A policy's status when it could not be reconciled: ``Ready`` and ``Connected`` say why, the rest stays.

    ``mode`` is that of the spec; None if it is invalid.
    """
    unreachable = reason in (Reason.CLUSTER_UNREACHABLE, Reason.CREDENTIALS_UNUSABLE)
    said = [
        Condition("Ready", False, reason, message),
        Condition("Connected", False if unreachable else None, reason, message),
    ]
    if reason in STALLED:
        said.append(Condition("Stalled", True, reason, message))
    kept = [c for c in before.values() if c.type not in _REPLACED]
    new = rendered(said, generation, before, now)
    return {
        **standing,
        **({"mode": str(mode)} if mode is not None else {}),
        "observedGeneration": generation,
        "conditions": sorted((c.body() for c in (*new, *kept)), key=lambda c: str(c["type"])),
        "message": _clip(message),
    }


def outdated_status(
    report: Report, why: str, generation: int, before: Mapping[str, status_conditions.Condition]
) -> Object:
    """A policy's status in fields that the oldest CRD has, with the reason why the others cannot be written."""
    said = Condition("Ready", False, Reason.CRD_OUTDATED, why)
    kept = [c for c in before.values() if c.type not in _REPLACED]
    new = rendered((said, connected(report.cluster_id)), generation, before, report.now)
    return {
        "observedGeneration": generation,
        "conditions": sorted((c.body() for c in (*new, *kept)), key=lambda c: str(c["type"])),
        "clusterId": report.cluster_id,
        "epoch": report.epoch,
        "message": _clip(why),
    }


def rebalance_status(used: LeaderRebalance, now: LeaderRebalanceStatus, moment: datetime) -> Object:
    """The status of the LeaderRebalance that a policy uses, with the times of its present conditions."""
    generation, before = used.metadata.generation, {c.type: c for c in used.status.conditions}
    conditions = rendered(now.said(), generation, before, moment)
    return now.model_copy(update={"observed_generation": generation, "conditions": conditions}).body()


def unused_rebalance(
    body: Mapping[str, Any], why: str, moment: datetime, reason: Reason = Reason.REBALANCE_UNUSED
) -> Object:
    """The status of a LeaderRebalance that no policy uses now: ``Ready`` says why, its plan stays.

    For another ``reason``, one of its policy, the conditions of its plan stay, too.
    """
    standing, generation = body.get("status") or {}, int(body["metadata"].get("generation") or 0)
    try:
        before = {c.type: c for c in LeaderRebalanceStatus.model_validate(standing).conditions}
    except ValidationError:  # of another version
        standing, before = {}, {}
    said = rendered((Condition("Ready", False, reason, why),), generation, before, moment)
    kept = [] if reason is Reason.REBALANCE_UNUSED else [c for c in before.values() if c.type != "Ready"]
    conditions = sorted((c.body() for c in (*said, *kept)), key=lambda c: str(c["type"]))
    return {**standing, "observedGeneration": generation, "conditions": conditions}


def broker_status(
    report: BrokerReport, generation: int | None, before: Mapping[str, status_conditions.Condition], now: datetime
) -> Object:
    """The operator's part of one broker's status; ``signals`` are the probers' and are not in it.

    ``generation`` is None while the object has not been seen yet.
    """
    verdict, flaps = report.verdict, report.flaps
    away = None if verdict.away == now else verdict.away
    status = broker_health.BrokerHealthStatus.of(
        report,
        observed_generation=generation,
        signals=(),
        verdict=broker_health.BrokerVerdict.of(verdict, good_seconds=_good_seconds(report), explained_at=away),
        pod=report.pod or None,
        flapping=None
        if flaps is None
        else broker_health.Flapping.of(flaps, stabilization_seconds=report.stabilization_seconds),
        demoted_log_dirs=[
            broker_health.DemotedLogDir.of(one) for one in report.log_dirs[: broker_health.LOG_DIRS_SHOWN] if one.acts
        ],
        broken_links=[
            broker_health.BrokenLink.of(one)
            for one in report.links[: broker_health.LINKS_SHOWN]
            if one.since is not None
        ],
        conditions=rendered(report.conditions, generation, before, now),
    ).body()
    status.pop("signals", None)
    return status


def _good_seconds(report: BrokerReport) -> int | None:
    """In few steps, as each one is a write; rounded down, so that a take-over never counts too much."""
    if report.verdict.state is HealthState.HEALTHY:
        return None
    step = max(1, report.stabilization_seconds // 10)
    return int(report.verdict.known_good.seconds // step * step) or None


def connected(cluster_id: str) -> Condition:
    """The condition that the pinned cluster answers."""
    return Condition("Connected", True, Reason.UP_TO_DATE, f"Kafka cluster {cluster_id} answers")


def rendered(
    said: Iterable[Condition], generation: int | None, before: Mapping[str, status_conditions.Condition], now: datetime
) -> tuple[status_conditions.Condition, ...]:
    """Conditions with their times, in order of type."""
    rendered = []
    for condition in sorted(said, key=lambda c: c.type):
        status = status_conditions.ConditionStatus("Unknown" if condition.status is None else str(condition.status))
        standing = before.get(condition.type)
        since = standing.last_transition_time if standing is not None and standing.status is status else now
        rendered.append(
            status_conditions.Condition(
                type=condition.type,
                status=status,
                observed_generation=generation,
                last_transition_time=since.replace(microsecond=0),
                reason=str(condition.reason),
                message=_clip(condition.message),
            )
        )
    return tuple(rendered)


def _called(report: Report, namespace: str) -> str:
    """Name of the cluster for people."""
    strimzi = report.strimzi
    if strimzi is None:
        return report.cluster_id
    return strimzi.name if strimzi.namespace == namespace else f"{strimzi.namespace}/{strimzi.name}"


def _risks(report: Report) -> policystatus.PartitionsAtRisk:
    at_risk = report.risk_summary.at_risk
    return policystatus.PartitionsAtRisk(
        total=len(at_risk),
        classes=tuple(
            policystatus.RiskCount(risk=str(risk), count=count, message=RISKS[risk])
            for risk, count in report.risk_summary.counts.items()
        ),
        sample=tuple(map(policystatus.RiskyPartition.of, at_risk[: policystatus.SAMPLE_LIMIT])),
    )


def _affected(report: Report) -> policystatus.AffectedTopics | None:
    topics = report.affected_topics
    if not topics:
        return None
    worst = tuple(map(policystatus.AffectedTopic.of, topics[: policystatus.TOPIC_LIMIT]))
    return policystatus.AffectedTopics(total=len(topics), worst=worst)


def _would_demote(report: Report) -> Iterable[policystatus.WouldDemote]:
    for broker in report.would_demote[: policystatus.BROKER_LIMIT]:
        demoted = report.plan.decisions.demoted[broker]
        verdict = next(b.verdict for b in report.brokers if b.broker == broker)
        since = verdict.since if verdict.state is HealthState.SICK else None  # it is not demoted, so not since a moment
        yield policystatus.WouldDemote(
            broker_id=broker, reason=str(demoted.reason), message=_clip(demoted.message), since=since
        )


def _clip(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else f"{text[: MESSAGE_LIMIT - 1]}…"

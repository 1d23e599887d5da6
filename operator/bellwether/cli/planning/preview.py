"""Plan of a policy as its operator would make it now, and nothing moved.

In: verdicts, overrides and the undo record from the Kubernetes API, metadata from the policy's Kafka cluster. Out: a
``Preview`` with the decisions and the plan. Verdicts are those that the operator last reported, so that the preview
agrees with it; a broker without one is judged Unknown. What is missing is named in ``notes``: the measured loads, which
only the operator reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.api.v1alpha1.broker_health import BrokerHealth, reported_flaps, reported_hosts, reported_verdicts
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.status.policy_status import HarmEpisodes
from bellwether.cli.kubernetes_target import Target, connect_policy
from bellwether.cli.leadership import broker_lookup
from bellwether.cli.planning.open_policy import open_policy
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.broker_identity import KnownHosts
from bellwether.core.model.undo_record import UndoRecord
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.settings.policy import Mode, Policy
from bellwether.core.signals import Override
from bellwether.gather import Memory, gather
from bellwether.ports.world import World


@dataclass(frozen=True)
class Preview:
    """Context, decisions and plan of one reconcile that moves nothing."""

    policy: LeadershipPolicy
    context: Context
    decisions: Decisions
    plan: Plan
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Namespace and name of the policy."""
        return f"{self.policy.metadata.namespace}/{self.policy.metadata.name}"

    def with_overrides(self, changed: Mapping[int, Override | None]) -> Preview:
        """The same, if these brokers had these overrides; None: no override."""
        snapshot = self.context.snapshot
        kept = [override for override in snapshot.overrides if override.broker not in changed]
        added = [override for override in changed.values() if override is not None]
        context = self.context.with_snapshot(overrides=tuple(sorted([*kept, *added], key=lambda o: o.broker)))
        return _planned(self.policy, context, self.notes)


@dataclass(frozen=True)
class PolicyInputs:
    """What a preview is made of: the policy, its objects, and connections to its Kafka cluster."""

    policy: LeadershipPolicy
    healths: tuple[BrokerHealth, ...]
    record: UndoRecord | None
    world: World
    audit_log: ConfigMapAuditLog
    """The policy's, for a command that moves leaders itself."""
    notes: tuple[str, ...] = ()

    def preview(self) -> Preview:
        """Read the cluster and plan. Raises what reading raises, and WrongCluster."""
        policy = self.policy.policy()
        status = self.policy.status
        memory = Memory(
            self.record or UndoRecord(self.world.clusters.read().cluster_id),
            reported_verdicts(self.healths),
            flaps=reported_flaps(self.healths),
            elections=status.move_cost.elections if status.move_cost is not None else (),
            harm_history=HarmEpisodes.to_core(status.harm_episodes),
            hosts=KnownHosts(reported_hosts(self.healths)),
        )
        snapshot, _, _ = gather(self.world, replace(policy, mode=Mode.OBSERVE), memory)
        judged = judge(snapshot, policy, memory.verdicts)
        verdicts = {broker: memory.verdicts.get(broker, verdict) for broker, verdict in judged.items()}
        return _planned(self.policy, Context(snapshot, verdicts, policy), self.notes)


def _planned(policy: LeadershipPolicy, context: Context, notes: tuple[str, ...]) -> Preview:
    decisions = decide(context)
    return Preview(policy, context, decisions, build_plan(context, decisions), notes)


@contextmanager
def policy_inputs(target: Target) -> Iterator[PolicyInputs]:
    """Read a policy and its objects, and connect to its Kafka cluster. Raises Terminal, Transient or Unauthenticated.

    The files that Secrets are written to exist as long as the context.
    """
    api, namespace, name = connect_policy(target)
    body = broker_lookup.find_policy(api, namespace, name)
    policy, problem = LeadershipPolicy.read(body), broker_lookup.trouble(body)
    clock = SystemClock()
    with open_policy(api, policy, namespace, clock) as opened:
        notes = tuple(_notes(policy.policy(), problem, opened.pods_problem))
        audit_log = ConfigMapAuditLog(api, namespace, name, clock)
        yield PolicyInputs(policy, opened.healths, opened.record, opened.world, audit_log, notes)


def _notes(policy: Policy, problem: str | None, pods: str) -> Iterator[str]:
    if problem is not None:
        yield f"verdicts may be outdated: {problem}"
    if pods:
        yield f"restarts of pods are not known: {pods}"
    if policy.demotion.capacity.max_load is not None:
        yield "limits of brokers by load are not applied: only the operator reads the loads"

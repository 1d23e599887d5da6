"""Plan of a policy as its operator would make it now, and nothing moved.

In: the memory of the policy's operator, ports to its Kafka cluster. Out: a ``Preview`` with the decisions and the plan.
Verdicts are those that the operator last reported, so that the preview agrees with it; a broker without one is judged
Unknown. What is missing is named in ``notes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.demotion.decisions import Decisions, decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.planning.plan import Plan, build_plan
from bellwether.core.settings.policy import Mode
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


def preview(world: World, policy: LeadershipPolicy, memory: Memory, notes: tuple[str, ...] = ()) -> Preview:
    """Read the cluster and plan. Raises what reading raises, and WrongCluster."""
    settings = policy.policy()
    snapshot, _, _ = gather(world, replace(settings, mode=Mode.OBSERVE), memory)
    judged = judge(snapshot, settings, memory.verdicts)
    verdicts = {broker: memory.verdicts.get(broker, verdict) for broker, verdict in judged.items()}
    return _planned(policy, Context(snapshot, verdicts, settings), notes)


def _planned(policy: LeadershipPolicy, context: Context, notes: tuple[str, ...]) -> Preview:
    decisions = decide(context)
    return Preview(policy, context, decisions, build_plan(context, decisions), notes)

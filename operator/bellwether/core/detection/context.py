"""Context of a reconcile once its brokers are judged: snapshot, verdicts and policy, with what several steps derive.

Built by ``reconcile`` after ``judge``. Every later step of the core takes it instead of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bellwether.core.detection.health_states import SHOULD_NOT_LEAD, HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster
from bellwether.core.model.rack_ranking import RackRankings
from bellwether.core.model.refusals import Refusal
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.reasons import Reason
from bellwether.core.settings.policy import Policy


@dataclass(frozen=True)
class Context:
    """What the decisions of one reconcile rest on. ``verdicts`` holds one verdict per broker id."""

    snapshot: Snapshot
    verdicts: Mapping[int, Verdict]
    policy: Policy

    @cached_property
    def rankings(self) -> RackRankings | None:
        """The policy's preferred racks on this cluster; None where it has none."""
        return RackRankings(self.policy.placement, self.snapshot.cluster) if self.policy.placement is not None else None

    @cached_property
    def managed(self) -> Cluster:
        """The cluster with the partitions that the policy may move: those in its scope, and those of the undo record.

        A partition that is displaced when its topic leaves the scope is managed until its own order is restored.
        """
        cluster = self.snapshot.cluster
        inside = cluster.within(self.policy.scope)
        if inside is cluster:
            return cluster
        entries = self.snapshot.record.entries
        left = [cluster.by_key[key] for key in entries if key in cluster.by_key and key not in inside.by_key]
        return replace(inside, partitions=(*inside.partitions, *left)) if left else inside

    @cached_property
    def not_healthy(self) -> frozenset[int]:
        """Brokers whose verdict is not Healthy."""
        return frozenset(b for b, v in self.verdicts.items() if v.state is not HealthState.HEALTHY)

    @cached_property
    def sick_or_down(self) -> frozenset[int]:
        """Brokers that should not lead."""
        return frozenset(b for b, v in self.verdicts.items() if v.state in SHOULD_NOT_LEAD)

    @cached_property
    def deferral(self) -> Refusal | None:
        """What promotion, elections, rebalancing and re-assertion wait for: an external operation (invariant 10), or a
        disk with slow syncs, of which each moved leader waits for one.
        """
        slow = sorted(b for b, v in self.verdicts.items() if v.reason is Reason.SYNCS_SLOW)
        if self.snapshot.external_operation is not None or not slow:
            return self.snapshot.external_operation
        names = ", ".join(map(str, slow[:3]))
        text = f"each moved leader waits for a sync, and those of broker {names} are slow; continues when they are fast"
        return Refusal(Reason.SYNCS_SLOW, text)

    @property
    def has_health_evidence(self) -> bool:
        """Whether any prober judges brokers: there are signals, stale ones included, or any broker is Healthy."""
        return bool(self.snapshot.signals) or any(v.state is HealthState.HEALTHY for v in self.verdicts.values())

    def with_rankings(self, rankings: RackRankings | None) -> Context:
        """The context with the rankings of an earlier one, where they are those of this placement and cluster."""
        placement = self.policy.placement
        if rankings is None or placement is None or not rankings.fits(placement, self.snapshot.cluster):
            return self
        changed = replace(self)
        vars(changed)["rankings"] = rankings
        return changed

    def with_snapshot(self, **changes: object) -> Context:
        """The context with some fields of the snapshot changed; the cluster, and so the rankings, stay the same."""
        changed = replace(self, snapshot=replace(self.snapshot, **changes))  # type: ignore[arg-type]
        vars(changed)["rankings"] = self.rankings  # which topics have which ranking is cached in it
        return changed

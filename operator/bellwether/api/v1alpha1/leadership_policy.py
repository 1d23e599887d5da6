"""LeadershipPolicy: the configuration of Bellwether for one Kafka cluster, and its status.

Read by the controllers, the probers and the CLI, which convert it to ``core.settings.policy.Policy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PrivateAttr

from bellwether.api.v1alpha1.base_model import Model, Object, Rule, integer
from bellwether.api.v1alpha1.core_models import SettingsModel
from bellwether.api.v1alpha1.leader_rebalance import ChosenRebalance, LeaderRebalance, choose_rebalance
from bellwether.api.v1alpha1.signal_source import ChosenSources, choose
from bellwether.api.v1alpha1.spec.detection_spec import Detection
from bellwether.api.v1alpha1.spec.kafka_spec import Kafka
from bellwether.api.v1alpha1.spec.maintenance_spec import Maintenance
from bellwether.api.v1alpha1.spec.placement_spec import Capacity, Placement, Scope
from bellwether.api.v1alpha1.status.policy_status import LeadershipPolicyStatus
from bellwether.core.settings import policy as core_policy
from bellwether.core.settings.placement import EVERY_TOPIC
from bellwether.core.settings.policy import UNBOUNDED

_DEFAULTS = core_policy.Policy(name="")
_CAP = "^([1-9]|[1-4][0-9])%$"


def _cap_holds(demotion: Demotion) -> bool:
    cap = demotion.max_brokers
    return 1 <= cap <= 1000 if isinstance(cap, int) else re.fullmatch(_CAP, cap) is not None


class Demotion(SettingsModel[core_policy.Demotion]):
    """When a sick broker is demoted, and how many brokers signals may demote at once."""

    max_brokers: Annotated[int, Field(strict=True)] | str = Field(
        default=_DEFAULTS.demotion.max_brokers, json_schema_extra={"maxLength": 3}
    )
    """Maximum number of live brokers that signals demote at once: a number, or a percentage of all brokers such as 20%,
    rounded down, at least 1. If more brokers are sick, the most severe are demoted. Brokers that are down, and
    overrides, do not count. One rack may exceed it, if all other live brokers are healthy, and one broker whose clients
    lose far more.
    """
    capacity: Capacity | None = None

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"type(self.maxBrokers) == string ? self.maxBrokers.matches('{_CAP}')"
            " : self.maxBrokers >= 1 && self.maxBrokers <= 1000",
            message="must be a number from 1 to 1000, or a percentage from 1% to 49%, such as 20%",
            holds=_cap_holds,
            field="maxBrokers",
        ),
    )

    def to_core(self) -> core_policy.Demotion:
        """Convert to the settings of the core."""
        return replace(super().to_core(), capacity=self.capacity.to_core() if self.capacity is not None else UNBOUNDED)


Step = Annotated[int, Field(ge=1, le=100, strict=True)]


def _rise(waves: Waves) -> bool:
    steps = waves.steps
    return all(before < after for before, after in pairwise(steps)) and steps[-1:] == (100,)


class Waves(SettingsModel[core_policy.PromotionWaves]):
    """Steps in which a promoted broker gets its leaders back, to avoid a load peak of clients and a cold cache."""

    steps: tuple[Step, ...] = Field(default=_DEFAULTS.promotion.waves.steps, min_length=1, max_length=20)
    """Percentage of its leaders that the broker may lead after each step, in ascending order and ending with 100. [100]
    restores all leaders at once.
    """
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.steps.isSorted() && self.steps.all(s, self.steps.exists_one(t, t == s))"
            " && self.steps[self.steps.size() - 1] == 100",
            message="must be in ascending order and end with 100, such as [10, 50, 100]",
            holds=_rise,
            field="steps",
        ),
    )


class Promotion(SettingsModel[core_policy.Promotion]):
    """When and in which steps a demoted broker gets its leaders back."""

    waves: Waves = Field(default_factory=Waves)


class Election(SettingsModel[core_policy.Election]):
    """Batch sizes of reassignments and elections, and the interval of the periodic preferred leader election."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.intervalSeconds == 0 || self.intervalSeconds >= 5",
            message="must be 0 (disabled) or at least 5",
            holds=lambda election: election.interval_seconds == 0 or election.interval_seconds >= 5,
            field="intervalSeconds",
        ),
    )


class Quarantine(SettingsModel[core_policy.Quarantine]):
    """Whether and for how long a broker with a slow disk that delays acks=all may be held in a controlled shutdown."""


class LeadershipPolicySpec(Model):
    """Desired configuration of leader placement for one Kafka cluster."""

    kafka: Kafka
    mode: core_policy.Mode
    """Observe only reports what would be done; Enforce moves leaders. Required, so that it is a deliberate choice."""
    suspend: bool = Field(default=_DEFAULTS.suspend, strict=True)
    """Suspends the policy: nothing is moved or restored while it is true."""
    deletion_policy: core_policy.DeletionPolicy = _DEFAULTS.deletion_policy
    """What happens to changed replica orders when the policy is deleted. Restore restores the baselines of healthy
    brokers; Abandon leaves all orders as they are.
    """
    deletion_timeout_seconds: int = integer(_DEFAULTS.deletion_timeout_seconds, 1, 86400)
    """Maximum seconds that the deletion may take to restore baselines. After that the undo record is exported and the
    policy is removed. Orders that may arrive late are waited for longer, up to an hour.
    """
    detection: Detection = Field(default_factory=Detection)
    demotion: Demotion = Field(default_factory=Demotion)
    promotion: Promotion = Field(default_factory=Promotion)
    election: Election = Field(default_factory=Election)
    quarantine: Quarantine = Field(default_factory=Quarantine)
    scope: Scope | None = None
    placement: Placement | None = None
    maintenance: Maintenance | None = None

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.maintenance) || !has(self.maintenance.pods) || has(self.kafka.strimzi)"
            " || has(self.maintenance.pods.selector)",
            message="is required: set the labels of the broker pods, such as app=kafka, or set spec.kafka.strimzi,"
            " whose pods are known",
            holds=lambda spec: spec.pods_known(),
            field="maintenance.pods.selector",
        ),
        Rule(
            cel="!has(self.detection) || !has(self.detection.externalReachability)"
            " || !has(self.detection.externalReachability.bootstrapServers) || !has(self.kafka.strimzi)"
            " || has(self.kafka.sasl) || has(self.kafka.userSecretName)"
            " || (has(self.kafka.tls) && has(self.kafka.tls.certificateSecretName))",
            message="are those of the Strimzi cluster, whose KafkaUser is used: remove them, or set credentials in"
            " spec.kafka too",
            holds=lambda spec: (
                spec.kafka.strimzi is None
                or spec.kafka.brings_credentials
                or not spec.detection.external_reachability.bootstrap_servers
            ),
            field="detection.externalReachability.bootstrapServers",
        ),
    )
    moved: ClassVar[Mapping[str, str]] = {
        "rebalance": "has become a LeaderRebalance: write {apiVersion: bellwether.dev/v1alpha1, kind: LeaderRebalance,"
        " metadata: {name: NAME}, spec: {policy: THIS POLICY, THESE FIELDS}} in this namespace"
    }

    def limits_loads(self) -> bool:
        """Whether the load of a broker is limited."""
        capacity = self.demotion.capacity
        return capacity is not None and capacity.max_bytes_per_second is not None

    def pods_known(self) -> bool:
        """Whether the broker pods can be found, if they are to be watched."""
        pods = self.maintenance.pods if self.maintenance is not None else None
        return pods is None or pods.selector is not None or self.kafka.strimzi is not None


class LeadershipPolicy(Object):
    """Configures Bellwether for one Kafka cluster: it moves partition leadership away from sick brokers and restores it
    when they are healthy.
    """

    longest_name: ClassVar[int] = 63  # it is a label value on objects of the policy

    kind: Literal["LeadershipPolicy"] = "LeadershipPolicy"
    spec: LeadershipPolicySpec
    status: LeadershipPolicyStatus = Field(default_factory=LeadershipPolicyStatus)

    _sources: ChosenSources = PrivateAttr(default_factory=ChosenSources)
    _rebalances: ChosenRebalance = PrivateAttr(default_factory=ChosenRebalance)

    @property
    def sources(self) -> ChosenSources:
        """The SignalSources that the policy uses; none before ``with_sources``."""
        return self._sources

    def with_sources(self, bodies: Iterable[Mapping[str, Any]]) -> Self:
        """The same policy with those SignalSources of its namespace that it names."""
        copy = self.model_copy()
        copy._sources = choose(self.spec.detection.signal_sources, bodies)
        return copy

    @property
    def rebalances(self) -> ChosenRebalance:
        """The LeaderRebalance that the policy uses, and those that it does not; none before ``with_rebalances``."""
        return self._rebalances

    @property
    def rebalance(self) -> LeaderRebalance | None:
        """The LeaderRebalance that the policy uses."""
        return self._rebalances.used

    def with_rebalances(self, bodies: Iterable[Mapping[str, Any]]) -> Self:
        """The same policy with the one of the LeaderRebalances of its namespace that it uses."""
        copy = self.model_copy()
        placed = self.spec.placement is not None
        copy._rebalances = choose_rebalance(self.metadata.name, bodies, placed=placed)
        return copy

    def policy(self) -> core_policy.Policy:
        """The policy as a value of the core, with its sources and rebalance. ``spec.kafka`` is not part of it."""
        spec = self.spec
        scope = spec.scope.to_core() if spec.scope is not None else EVERY_TOPIC
        return core_policy.Policy(
            name=self.metadata.name,
            namespace=self.metadata.namespace,
            mode=spec.mode,
            suspend=spec.suspend,
            deletion_policy=spec.deletion_policy,
            deletion_timeout_seconds=spec.deletion_timeout_seconds,
            detection=spec.detection.to_core(
                tuple(rule for one in self._sources.used for rule in one.rules),
                tuple(plugin for one in self._sources.used for plugin in one.plugins),
            ),
            demotion=spec.demotion.to_core(),
            promotion=spec.promotion.to_core(),
            election=spec.election.to_core(),
            rebalance=self.rebalance.spec.to_core() if self.rebalance is not None else None,
            placement=replace(spec.placement.to_core(), scope=scope) if spec.placement is not None else None,
            scope=scope,
            quarantine=spec.quarantine.to_core(),
        )

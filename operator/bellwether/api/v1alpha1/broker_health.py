"""BrokerHealth: the signals and the verdict of one broker, and a person's override.

Probers write their own entries of ``status.signals`` by server-side apply, the operator the rest of the status, people
``spec.override``. Read by the controllers, the probers and the CLI.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Model, Object, Reported, Rule, as_map
from bellwether.api.v1alpha1.spec.quarantine_spec import QuarantineStatus
from bellwether.api.v1alpha1.status.policy_status import BrokerId, Count, Message, ReasonName
from bellwether.api.v1alpha1.status.signal_entries import SIGNAL_LIMIT, Signals
from bellwether.api.v1alpha1.status.status_conditions import Conditions
from bellwether.core import signals
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.flap_damping import FlapCounter
from bellwether.core.reasons import Reason

OVERRIDE_REASON_LIMIT = 512


class PolicyRef(Model):
    """The policy that a broker's cluster belongs to, in the same namespace."""

    name: str = Field(min_length=1, max_length=63, description="Name of the LeadershipPolicy, in the same namespace.")


class Override(Model):
    """A person's word on the broker. It beats signals and cap, and not suspend or Observe."""

    state: signals.OverrideState = Field(
        description="Demoted keeps the broker from leading, Promoted lets it lead, whatever its signals say."
    )
    reason: str = Field(
        min_length=1,
        max_length=OVERRIDE_REASON_LIMIT,
        description="Why, for whoever comes next; kept in conditions and events.",
    )
    until: AwareDatetime | None = Field(
        default=None, description="When the override ends by itself, RFC 3339. Absent: when it is taken away."
    )
    by: str = Field(default="", max_length=256, description="Who asks.")
    purpose: signals.Purpose | None = Field(
        default=None,
        description="Maintenance drains the broker so that it may be stopped: held where partitions would have no"
        " leader; its signals demote nobody meanwhile; it leads again once it is well.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.purpose) || self.state == 'Demoted'",
            message="must be Demoted with purpose Maintenance: a broker that is worked on leads nothing",
            holds=lambda said: said.purpose is None or said.state is signals.OverrideState.DEMOTED,
            field="state",
        ),
        Rule(
            cel="!has(self.purpose) || has(self.until)",
            message="is needed with purpose Maintenance: say when it ends at the latest",
            holds=lambda said: said.purpose is None or said.until is not None,
            field="until",
        ),
    )


class BrokerHealthSpec(Model):
    """Which broker, and a person's word on it."""

    policy_ref: PolicyRef = Field(description="The policy that made this object.")
    broker_id: BrokerId = Field(strict=True, description="The broker's id in its Kafka cluster.")
    override: Override | None = Field(default=None, description="A person's word on the broker.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.brokerId == oldSelf.brokerId",
            message="is immutable: an object is about one broker; the operator makes one for every broker",
            field="brokerId",
        ),
        Rule(
            cel="self.policyRef == oldSelf.policyRef",
            message="is immutable: the operator makes one object for every broker of a policy",
            field="policyRef",
        ),
    )


class EvidenceItem(Reported):
    """One source's word, as it was judged."""

    type: str = Field(max_length=63, description="Kind of evidence.")
    source: str = Field(max_length=63, description="Where it comes from.")
    reading: signals.Reading = Field(description="What the source says.")
    since: AwareDatetime | None = Field(default=None, description="Since when the source has said so.")
    message: Message = Field(default="", description="What was seen, and what it was compared with.")
    ignored_reason: str = Field(default="", max_length=256, description="Why it did not count; absent when it did.")


class Flapping(Reported):
    """How often signals demoted the broker in short succession."""

    demotions: Count = Field(description="Demotions, each within promotion.flapWindowSeconds of the one before.")
    last: AwareDatetime = Field(description="When the last one ended; when it began, while it lasts.")
    stabilization_seconds: Count = Field(description="How long the broker must stay well before it is promoted.")

    def to_core(self) -> FlapCounter:
        """The counter for the next turn to carry on from."""
        return FlapCounter(self.demotions, self.last)


class Restoration(Reported):
    """How far the broker's way back has come: it gets its leaders in waves."""

    wave: Count = Field(description="The step of promotion.waves that it has come to; 0 before the first one.")
    waves: Count = Field(description="How many steps there are.")
    share_percent: Count = Field(description="The share of its leaders that it may lead by now.")
    pending_partitions: Count = Field(description="Partitions that it gets back with a later wave.")
    since: AwareDatetime = Field(description="When its return began.")
    wave_started_at: AwareDatetime = Field(description="When the step began that it has come to.")
    blocked_by: Message = Field(default="", description="What the next step waits for.")


class BrokerVerdict(Reported):
    """What the signals of the broker add up to. A judgement and not an action: a Sick broker may lead."""

    state: HealthState = Field(description="The verdict.")
    reason: ReasonName = Field(description="Why, in one word.")
    message: Message = Field(default="", description="Why, in one sentence.")
    since: AwareDatetime = Field(description="Since when state and reason have been so.")
    evidence: tuple[EvidenceItem, ...] = Field(
        default=(),
        max_length=SIGNAL_LIMIT,
        description="What was judged: each source's word, and why it did not count where it did not.",
        json_schema_extra=as_map("type", "source"),
    )
    change: Message = Field(default="", description="What would make the verdict another one.")
    restarted_at: AwareDatetime | None = Field(
        default=None,
        description="When the broker came up, until it was reachable once or startupGraceSeconds are over.",
    )
    resumed_at: AwareDatetime | None = Field(
        default=None,
        description="When its maintenance was seen to be over, until startupGraceSeconds after that: what has failed"
        " ever since before counts only then.",
    )

    def to_core(self, broker: int) -> Verdict | None:
        """The verdict for the next turn to carry on from; None for a reason that this version does not know."""
        if self.reason not in set(Reason):
            return None
        return Verdict(
            broker,
            self.state,
            Reason(self.reason),
            self.message,
            self.since,
            restarted=self.restarted_at,
            resumed=self.resumed_at,
        )


class BrokerHealthStatus(Reported):
    """What is known of the broker."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="metadata.generation of the object that this status is about."
    )
    signals: Signals = Field(
        default=(),
        description="The last word of every source; each prober owns its own entries by server-side apply.",
    )
    verdict: BrokerVerdict | None = Field(default=None, description="What the signals add up to.")
    leaders: Count | None = Field(default=None, description="Partitions that the broker leads.")
    preferred_leaders: Count | None = Field(
        default=None, description="Partitions whose replica order has the broker first."
    )
    replicas: Count | None = Field(default=None, description="Partitions that have a replica on the broker.")
    registered: bool | None = Field(default=None, description="Whether the controller knows the broker.")
    rack: str | None = Field(default=None, max_length=256, description="The broker's rack.")
    pod: str | None = Field(
        default=None, max_length=253, description="Name of the broker's pod, where Strimzi runs the cluster."
    )
    flapping: Flapping | None = Field(
        default=None, description="Absent unless signals demoted the broker lately (promotion.flapWindowSeconds)."
    )
    restoration: Restoration | None = Field(
        default=None, description="Absent unless the broker gets its leaders back in waves (promotion.waves)."
    )
    quarantine: QuarantineStatus | None = Field(
        default=None,
        description="The order to pause the broker that stands, or that ended lately; the agent beside it obeys.",
    )
    conditions: Conditions = Field(
        default=(),
        description="Healthy: whether the broker is well. Demoted: whether it is kept from leading. HoldsBackISR: it"
        " follows slowly, and acks=all waits for it, whatever it leads. Drained: whether it may be stopped, while it is"
        " in maintenance. Overridden: False while an override stands that has ended."
        " Quarantined: it is paused, was lately, or would be but for the reason.",
    )


def _broker_of(name: str) -> int | None:
    _, dash, digits = name.rpartition("-")
    return int(digits) if dash and re.fullmatch("[0-9]{1,10}", digits) else None


class BrokerHealth(Object):
    """The health of one broker. Made by the operator; spec.override is for people."""

    kind: Literal["BrokerHealth"] = "BrokerHealth"
    spec: BrokerHealthSpec
    status: BrokerHealthStatus = Field(default_factory=BrokerHealthStatus)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            # endsWith('-' + string(brokerId)) would say the same, and exceed the API server's cost limit.
            cel="self.metadata.name.matches('^.*-[0-9]{1,10}$')"
            " && int(self.metadata.name.substring(self.metadata.name.lastIndexOf('-') + 1)) == self.spec.brokerId",
            message="metadata.name must end in '-' and spec.brokerId, as in main-0: the operator makes these objects",
            holds=lambda health: _broker_of(health.metadata.name) == health.spec.broker_id,
        ),
    )

    def override_(self) -> signals.Override | None:
        """The person's word on the broker, ended or not: ``signals.Override.active`` tells."""
        said = self.spec.override
        if said is None:
            return None
        reason = f"{said.reason} ({said.by})" if said.by else said.reason
        return signals.Override(self.spec.broker_id, said.state, reason, said.until, purpose=said.purpose)

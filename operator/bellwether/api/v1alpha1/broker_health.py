"""BrokerHealth: the signals and the verdict of one broker, and its override.

Probers write their own entries of ``status.signals`` by server-side apply, the operator writes the rest of the status,
people write ``spec.override``. Read by the controllers, the probers and the CLI.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from bellwether.api.v1alpha1.base_model import Model, Object, Rule, as_map
from bellwether.api.v1alpha1.core_models import Of, StatusModel
from bellwether.api.v1alpha1.status.signal_entries import LOG_DIR_LIMIT, SIGNAL_LIMIT, Signals
from bellwether.api.v1alpha1.status.status_conditions import BrokerId, Conditions, Count, Message, ReasonName
from bellwether.core import signals
from bellwether.core.demotion.restoration import RestorationProgress
from bellwether.core.detection import findings
from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict, passing_since
from bellwether.core.model.broker_identity import HOST_LIMIT
from bellwether.core.model.history.flap_damping import FlapCounter
from bellwether.core.model.history.known_good import KnownGood
from bellwether.core.reasons import Reason
from bellwether.core.reporting.broker_report import BrokerReport, LinkReport, LogDirReport

OVERRIDE_REASON_LIMIT = 512
LOG_DIRS_SHOWN = 64
LINKS_SHOWN = 16


class PolicyRef(Model):
    """The policy that this object belongs to."""

    name: str = Field(min_length=1, max_length=63)
    """Name of the LeadershipPolicy, in the same namespace."""


def _dated(given: object) -> object:
    """The API server takes no number of seconds for a time, as pydantic does. Raises ValueError."""
    if isinstance(given, float | int) or (isinstance(given, str) and given.replace(".", "").isdecimal()):
        raise ValueError("must be a time as in 2030-01-01T00:00:00Z")
    return given


class Override(Model):
    """A manual decision on the broker. It takes precedence over signals and maxBrokers, but not over suspend or
    Observe. If unset, signals decide.
    """

    state: signals.OverrideState
    """Demoted keeps the broker from leading, Promoted lets it lead, regardless of its signals."""
    reason: str = Field(min_length=1, max_length=OVERRIDE_REASON_LIMIT)
    """Reason for the override, shown in conditions and events."""
    until: Annotated[AwareDatetime | None, BeforeValidator(_dated)] = None
    """Time when the override ends (RFC 3339). If unset, it is in force until it is removed."""
    by: str = Field(default="", max_length=256)
    """Name of the person or system that set the override."""
    purpose: signals.Purpose | None = None
    """Maintenance drains the broker so that it can be stopped; what no other broker can lead stays. Once it leads
    nothing, its signals demote no broker; afterwards its leaders are restored once it is healthy.
    """
    accept_unavailable_writes: bool = Field(default=False, strict=True)
    """Set the condition Drained even if partitions have fewer ISR members than min.insync.replicas without the broker,
    so that Kafka refuses acks=all writes to them once it stops. Requires purpose Maintenance.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.purpose) || self.state == 'Demoted'",
            message="must be Demoted if purpose is Maintenance",
            holds=lambda o: o.purpose is None or o.state is signals.OverrideState.DEMOTED,
            field="state",
        ),
        Rule(
            cel="!has(self.purpose) || has(self.until)",
            message="is required if purpose is Maintenance: set the time when the maintenance ends at the latest",
            holds=lambda o: o.purpose is None or o.until is not None,
            field="until",
        ),
        Rule(
            cel="!has(self.acceptUnavailableWrites) || !self.acceptUnavailableWrites || has(self.purpose)",
            message="requires purpose Maintenance: another override does not wait for min.insync.replicas",
            holds=lambda o: o.purpose is not None or not o.accept_unavailable_writes,
            field="acceptUnavailableWrites",
        ),
    )

    def to_core(self, broker: int, by: str = "") -> signals.Override:
        """Convert to a value of the core, with the name of who set it, if that is known."""
        return signals.Override(
            broker,
            self.state,
            f"{self.reason} ({self.by})" if self.by else self.reason,
            self.until,
            by,
            self.purpose,
            accept_unavailable_writes=self.accept_unavailable_writes,
        )


class BrokerHealthSpec(Model):
    """The broker, and an optional override."""

    policy_ref: PolicyRef
    broker_id: BrokerId = Field(strict=True)
    """Node id of the broker in its Kafka cluster."""
    override: Override | None = None

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.brokerId == oldSelf.brokerId",
            message="is immutable: the operator creates one object for each broker",
            field="brokerId",
        ),
        Rule(
            cel="self.policyRef == oldSelf.policyRef",
            message="is immutable: the operator creates one object for each broker of a policy",
            field="policyRef",
        ),
    )


class EvidenceItem(StatusModel[findings.EvidenceItem]):
    """One signal as it was judged."""

    type: str = Field(max_length=63)
    """Type of the signal."""
    source: str = Field(max_length=63)
    """Source of the signal, for example a vantage or a rule."""
    reading: signals.Reading
    """Reading that the source reported."""
    since: AwareDatetime | None = None
    """Time since which the source has reported this reading."""
    message: Message = ""
    """Observation, and what it was compared with."""
    ignored_reason: Annotated[str, Of("ignored_because")] = Field(default="", max_length=256)
    """Why the signal was ignored. Unset if it was used."""


class Flapping(StatusModel[FlapCounter]):
    """Repeated demotions by signals. Unset if none is in the last hour."""

    demotions: Count
    """Number of demotions, each within an hour of the previous promotion."""
    last: Annotated[AwareDatetime, Of("at")]
    """Time when the last demotion ended, or began if the broker is demoted."""
    stabilization_seconds: Count
    """Seconds for which the broker must be healthy before it is promoted."""


class Restoration(StatusModel[RestorationProgress]):
    """Progress of restoring the broker's leaders in waves. Unset if none is in progress (promotion.waves)."""

    wave: Annotated[Count, Of("number")]
    """Current step of promotion.waves; 0 before the first one."""
    waves: Count
    """Number of steps."""
    share_percent: Annotated[Count, Of("returning.share")]
    """Percentage of its leaders that the broker may lead in this step."""
    pending_partitions: Annotated[Count, Of("withheld")]
    """Partitions that are restored in later steps."""
    since: Annotated[AwareDatetime, Of("returning.since")]
    """Time when the restoration began."""
    wave_started_at: Annotated[AwareDatetime, Of("returning.waved_at")]
    """Time when the current step began."""
    blocked_by: Annotated[Message, Of("wait.message")] = ""
    """What blocks the next step. Unset if nothing does."""


class DemotedLogDir(StatusModel[LogDirReport]):
    """A log directory of a broker that is not demoted as a whole."""

    directory: Annotated[str, Of("demoted.path")] = Field(max_length=LOG_DIR_LIMIT)
    """Path of the log directory."""
    partitions: Count
    """Partitions whose replica on the broker lies in the directory."""
    reason: Annotated[ReasonName, Of("demoted.reason")]
    """Reason for the demotion, in CamelCase."""
    message: Annotated[Message, Of("demoted.message")] = ""
    """Explanation of the demotion, in one sentence."""
    since: Annotated[AwareDatetime, Of("demoted.since")]
    """Time since which the directory is demoted."""


class BrokenLink(StatusModel[LinkReport]):
    """Another broker that the broker does not reach, so that others lead what both have."""

    broker: Annotated[Count, Of("peer")]
    """The other broker."""
    partitions: Count
    """Partitions with a replica on both that neither leads because of it."""
    since: AwareDatetime
    """Time since which others lead them."""


class BrokerVerdict(StatusModel[Verdict]):
    """Judgement of the broker from its signals. It is not an action: a Sick broker can still lead."""

    state: HealthState
    """Health state of the broker."""
    reason: ReasonName
    """Reason for the state, in CamelCase."""
    message: Message = ""
    """Explanation of the state, in one sentence."""
    since: AwareDatetime
    """Time since which state and reason have been the same."""
    evidence: Annotated[tuple[EvidenceItem, ...], Of("facts")] = Field(
        default=(), max_length=SIGNAL_LIMIT, json_schema_extra=as_map("type", "source")
    )
    """Signals that were judged, and why some were ignored."""
    change: Message = ""
    """What would change the verdict."""
    restarted_at: Annotated[AwareDatetime | None, Of("restarted")] = None
    """Time of the last restart, until the broker has been reachable once or startupGraceSeconds have passed."""
    resumed_at: Annotated[AwareDatetime | None, Of("resumed")] = None
    """Time when the end of maintenance was observed, for startupGraceSeconds. Signals that have failed since before
    then are not counted in that time.
    """
    good_seconds: Count | None = None
    """Seconds for which a demoted broker is known to be healthy, in tenths of what it needs. Time in which nothing was
    known does not count.
    """
    known_state: Annotated[HealthState | None, Of("last_known")] = None
    """State when there was evidence last. Unset unless the state is Unknown."""
    explained_at: Annotated[AwareDatetime | None, Of("away")] = None
    """Time when Kafka last explained that the broker does not answer: fenced, not registered, or in controlled
    shutdown. Unset while it does.
    """

    def verdict(self, broker: int) -> Verdict | None:
        """The verdict that the next reconcile continues from; None if its reason is unknown."""
        if self.reason not in set(Reason):
            return None
        found = self.to_core(broker=broker, reason=Reason(self.reason))
        return replace(found, known_good=KnownGood(float(self.good_seconds or 0), passing=passing_since(found.facts)))


class BrokerHealthStatus(StatusModel[BrokerReport]):
    """Observed state of the broker."""

    observed_generation: int | None = Field(default=None, ge=0)
    """metadata.generation that this status is based on."""
    signals: Signals = ()
    """Last signal of each source. Each prober owns its own entries by server-side apply."""
    verdict: BrokerVerdict | None = None
    leaders: Count | None = None
    """Number of partitions that the broker leads."""
    preferred_leaders: Count | None = None
    """Number of partitions whose preferred leader is the broker."""
    replicas: Count | None = None
    """Number of partitions with a replica on the broker."""
    registered: bool | None = None
    """Whether the broker is registered with the Kafka controller."""
    rack: str | None = Field(default=None, max_length=256)
    """Rack of the broker (broker.rack)."""
    pod: str | None = Field(default=None, max_length=253)
    """Name of the broker's pod, if Strimzi runs the cluster."""
    advertised_hosts: Annotated[tuple[Annotated[str, Field(max_length=253)], ...], Of("hosts")] = Field(
        default=(), max_length=HOST_LIMIT
    )
    """Host names and addresses that the broker advertises, as far as they can be read. Series, alerts and pods are
    matched to the broker by them.
    """
    flapping: Flapping | None = None
    restoration: Restoration | None = None
    demoted_log_dirs: tuple[DemotedLogDir, ...] = Field(
        default=(), max_length=LOG_DIRS_SHOWN, json_schema_extra=as_map("directory")
    )
    """Log directories whose replicas are kept from leading, while the broker leads what lies in the others."""
    broken_links: tuple[BrokenLink, ...] = Field(default=(), max_length=LINKS_SHOWN, json_schema_extra=as_map("broker"))
    """Brokers that the broker does not reach, nor they it. A third replica leads what both have."""
    conditions: Conditions = ()
    """Healthy: the broker is healthy. Demoted: the broker is kept from leading. HoldsBackISR: it replicates slowly and
    delays acks=all. Drained: it is in maintenance and can be stopped. Overridden: False once the override has ended.
    Quarantined: the broker is held; if False, the reason says what blocks or ended the hold.
    """


def _broker_of(name: str) -> int | None:
    _, dash, digits = name.rpartition("-")
    return int(digits) if dash and re.fullmatch("[0-9]{1,10}", digits) else None


class BrokerHealth(Object):
    """Health of one broker. The operator creates it; set spec.override to override its signals."""

    kind: Literal["BrokerHealth"] = "BrokerHealth"
    spec: BrokerHealthSpec
    status: BrokerHealthStatus = Field(default_factory=BrokerHealthStatus)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            # endsWith('-' + string(brokerId)) is equivalent, but exceeds the API server's cost limit.
            cel="self.metadata.name.matches('^.*-[0-9]{1,10}$')"
            " && int(self.metadata.name.substring(self.metadata.name.lastIndexOf('-') + 1)) == self.spec.brokerId",
            message="metadata.name must end in '-' and spec.brokerId, such as main-0: the operator creates these"
            " objects",
            holds=lambda health: _broker_of(health.metadata.name) == health.spec.broker_id,
        ),
    )

    def override_(self) -> signals.Override | None:
        """The override, whether or not it has ended; check ``signals.Override.active``."""
        override = self.spec.override
        return override.to_core(self.spec.broker_id) if override is not None else None

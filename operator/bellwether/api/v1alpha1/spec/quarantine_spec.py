"""Quarantine: ``spec.quarantine`` of a LeadershipPolicy, and the order in ``status.quarantine`` of a BrokerHealth.

The operator writes the order, the quarantine agent next to the broker carries it out.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

from bellwether.api.v1alpha1.base_model import Model, Reported, integer
from bellwether.api.v1alpha1.status.policy_status import Count, Message, ReasonName
from bellwether.core.model.quarantine_order import EXPIRES_AFTER_SECONDS, RENEW_SECONDS, QuarantineOrder
from bellwether.core.settings import policy as core_policy

_DEFAULTS = core_policy.Quarantine()


class Quarantine(Model):
    """Whether and for how long the process of a demoted broker that still delays acks=all may be paused."""

    mode: core_policy.QuarantineMode = Field(
        default=_DEFAULTS.mode,
        description="Enabled lets the quarantine agent pause the process of such a broker, one broker at a time, so"
        " that it leaves the ISR. It requires the quarantine agent and the storage prober next to every"
        " broker. Off pauses no broker.",
    )
    after_seconds: int = integer(
        _DEFAULTS.after_seconds,
        0,
        3600,
        "Seconds for which a broker must have been demoted before it is paused.",
    )
    limit_seconds: int = integer(
        _DEFAULTS.limit_seconds,
        30,
        86400,
        "Maximum duration of a pause, in seconds. After a pause that ended early, the next one starts"
        " no sooner than this.",
    )
    spare_isr_members: int = integer(
        _DEFAULTS.spare_isr_members,
        0,
        10,
        "Number of live ISR members beyond min.insync.replicas that every partition of the broker must"
        " keep without it.",
    )

    def to_core(self) -> core_policy.Quarantine:
        """Convert to the settings of the core."""
        return core_policy.Quarantine(**dict(self))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


Moment = Annotated[AwareDatetime, AfterValidator(_whole)]


class QuarantineStatus(Reported):
    """An order to pause the broker. It is valid while the operator renews it; the quarantine agent measures that with
    its own clock.
    """

    epoch: Count = Field(
        description="Epoch of the undo record when the order was given. An order with a lower epoch is ignored."
    )
    number: Count = Field(description="Number of the order, unique within the epoch.")
    since: Moment = Field(description="Time when the order was given.")
    until: Moment = Field(description="Time when the order ends at the latest.")
    renewed_at: Moment = Field(
        description=f"Time of the last renewal, every {RENEW_SECONDS:.0f} s. The quarantine agent resumes the broker"
        f" if it sees no renewal for {EXPIRES_AFTER_SECONDS:.0f} s."
    )
    paused_at: Moment | None = Field(default=None, description="Time when the broker was first observed to be paused.")
    ended_at: Moment | None = Field(default=None, description="Time when the order ended. Unset while it is active.")
    reason: ReasonName = Field(description="Reason for the order or, once it has ended, for its end, in CamelCase.")
    message: Message = Field(default="", description="Explanation of the reason, in one sentence.")

    @classmethod
    def of(cls, order: QuarantineOrder) -> QuarantineStatus:
        """Convert an order of the core."""
        return cls(
            epoch=order.epoch,
            number=order.number,
            since=order.since,
            until=order.until,
            renewed_at=order.renewed_at,
            paused_at=order.paused_at,
            ended_at=order.ended_at,
            reason=str(order.reason),
            message=order.message,
        )

    def to_core(self, broker: int) -> QuarantineOrder:
        """Convert to the order that the next reconcile continues from."""
        return QuarantineOrder(
            broker=broker,
            epoch=self.epoch,
            number=self.number,
            since=self.since,
            until=self.until,
            renewed_at=self.renewed_at,
            reason=self.reason,
            message=self.message,
            paused_at=self.paused_at,
            ended_at=self.ended_at,
        )

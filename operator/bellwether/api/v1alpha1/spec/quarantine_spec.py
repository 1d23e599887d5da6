"""Quarantine: ``spec.quarantine`` of a policy, and the order in ``status.quarantine`` of a BrokerHealth.

``Quarantine`` is ``spec.quarantine`` of a LeadershipPolicy, ``QuarantineStatus`` is ``status.quarantine`` of a
BrokerHealth: written by the operator, obeyed by the quarantine agent beside the broker.
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
    """Whether a demoted broker that still holds acks=all back may have its process paused."""

    mode: core_policy.QuarantineMode = Field(
        default=_DEFAULTS.mode,
        description="Enabled: the quarantine agent of such a broker pauses it, so that it leaves the ISR, one broker"
        " at a time. Needs `bellwether quarantine-agent` and `bellwether probe storage` in every broker pod.",
    )
    after_seconds: int = integer(
        _DEFAULTS.after_seconds,
        0,
        3600,
        "How long a broker must have been demoted: time for the demotion to help.",
    )
    limit_seconds: int = integer(
        _DEFAULTS.limit_seconds,
        30,
        86400,
        "The longest pause. A broker that is still slow then is left running for as long again.",
    )
    spare_isr_members: int = integer(
        _DEFAULTS.spare_isr_members,
        0,
        10,
        "Every partition of the broker must keep min.insync.replicas live ISR members without it, and so many more.",
    )

    def to_core(self) -> core_policy.Quarantine:
        """The same as a value of the core."""
        return core_policy.Quarantine(**dict(self))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)


Moment = Annotated[AwareDatetime, AfterValidator(_whole)]


class QuarantineStatus(Reported):
    """An order to pause the broker. It holds while it is renewed; whoever obeys it counts on a clock of its own."""

    epoch: Count = Field(description="Epoch of the undo record under which it was given; a lower one's is not obeyed.")
    number: Count = Field(description="Tells it from every other order.")
    since: Moment = Field(description="When it was given.")
    until: Moment = Field(description="When it ends at the latest.")
    renewed_at: Moment = Field(
        description=f"When it was last renewed, every {RENEW_SECONDS:.0f} s. The agent releases the broker when it has"
        f" seen no other value for {EXPIRES_AFTER_SECONDS:.0f} s."
    )
    paused_at: Moment | None = Field(default=None, description="When the broker was first seen to be paused.")
    ended_at: Moment | None = Field(default=None, description="When it ended. Absent while it stands.")
    reason: ReasonName = Field(description="Why it stands, or why it ended, in one word.")
    message: Message = Field(default="", description="The same in one sentence.")

    @classmethod
    def of(cls, order: QuarantineOrder) -> QuarantineStatus:
        """The order as it is written."""
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
        """The order for the next turn to carry on from."""
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

"""What a policy says of its brokers, for ``bellwether doctor``: unhealthy, idle, kept from leading, and slow ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bellwether.core.doctor.remediation import Remediation
from bellwether.core.reasons import Reason

_UNREACHABLE = "no reads, no writes"
CLIENT_IMPACT: Mapping[str, str] = {
    Reason.EXTERNALLY_UNREACHABLE: f"{_UNREACHABLE} through the external listener",
    Reason.FREEZING: f"{_UNREACHABLE} while it freezes",
    Reason.NOT_FENCED_IN_TIME: _UNREACHABLE,
    Reason.UNREACHABLE: _UNREACHABLE,
    Reason.STORAGE_SLOW: "writes fail or are slow",
    Reason.READS_SLOW: "reads fail or are slow",
}
"""What clients lose, by the reason of the leader's verdict."""

ANY_IMPACT = "requests fail or are slow"
"""What clients lose for every other reason."""


@dataclass(frozen=True, slots=True)
class UnhealthyBroker:
    """A broker that a policy judges Sick or Down.

    ``state`` and ``reason`` are those of the verdict, ``message`` its evidence; ``kept`` is why the policy does not
    demote the broker, empty if it does. ``by_hand`` demotes it beyond the cap; None where that is not the question.
    """

    broker: int
    state: str
    reason: str
    message: str
    kept: str = ""
    remediations: tuple[Remediation, ...] = ()
    by_hand: Remediation | None = None

    @property
    def clients(self) -> str:
        """What clients lose while it leads."""
        return f"{CLIENT_IMPACT.get(self.reason, ANY_IMPACT)}: {self.message}"


@dataclass(frozen=True, slots=True)
class IdleBroker:
    """A healthy broker that a person keeps from leading, and what lets it lead again."""

    broker: int
    remediation: Remediation


@dataclass(frozen=True, slots=True)
class SlowBroker:
    """A slow broker for which ``acks=all`` waits (``HoldsBackISR``): the reason, and why it is not held."""

    broker: int
    reason: str
    not_held: str
    remediations: tuple[Remediation, ...] = ()


@dataclass(frozen=True, slots=True)
class QuarantineCheck:
    """Whether a policy enables quarantine, and what is missing for it, each with the remedy."""

    enabled: bool
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedBrokers:
    """Brokers of one policy. ``demoted``: all that are kept from leading, for whatever reason."""

    unhealthy: tuple[UnhealthyBroker, ...] = ()
    demoted: frozenset[int] = field(default_factory=frozenset)
    idle: tuple[IdleBroker, ...] = ()
    slow: tuple[SlowBroker, ...] = ()

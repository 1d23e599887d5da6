"""Requeue delay: seconds until the next reconcile when nothing changes. Pure: report in, seconds out.

The one rule for the operator, for forecasts, simulations and replays, and for offline runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.history.flap_damping import FlapCounter, stabilization
from bellwether.core.model.history.known_good import MOST_BETWEEN_READS
from bellwether.core.model.quarantine_order import RENEW_SECONDS
from bellwether.core.model.undo_record import EntryState, UndoRecord
from bellwether.core.reasons import Reason
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Policy

SOONEST_SECONDS = 0.05
_AILING = (HealthState.SICK, HealthState.SUSPECT, HealthState.DOWN)


@dataclass(frozen=True, slots=True)
class Requeue:
    """How often a loop looks, in seconds: at its inbox, at metadata while something is displaced, and otherwise."""

    inbox_seconds: float = 1.0
    busy_seconds: float = 5.0
    idle_seconds: float = 60.0
    held_seconds: float = 1.0
    """While a broker is held or ordered to be held: the operator must see any further loss at once."""
    retry_seconds: float = 5.0
    lease_retry_seconds: float = 1.0
    longest_retry_seconds: float = 30.0
    jitter: Callable[[float], float] = float
    """Applied to the wait after a failed reconcile, so that many policies do not come back together."""
    busy_share: float = 0.25
    """Maximum share of time spent reading metadata: after a long reconcile the next one starts later."""

    def retry(self, reason: Reason, times: int) -> float:
        """Seconds to wait after this many consecutive failed reconciles.

        Where a person must act, ever longer: who is refused again and again might be locked out.
        """
        if reason is Reason.CLUSTER_CLAIMED:
            return self.lease_retry_seconds
        if reason not in (Reason.CREDENTIALS_UNUSABLE, Reason.ACL_MISSING):
            return self.retry_seconds
        return min(self.retry_seconds * float(2 ** min(times - 1, 10)), self.longest_retry_seconds)

    def after(self, report: Report, policy: Policy, record: UndoRecord, took_seconds: float = 0.0) -> float:
        """Seconds to wait after a successful reconcile of this duration with this record."""
        if report.result.changed:
            return 0.0
        if report.result.stopped is not None:
            return self.jitter(self.retry_seconds)
        wave = report.progress.again_seconds if report.progress is not None else None
        waves = [wave] if wave is not None else []
        if report.election is not None:
            waves.append(report.election.again_seconds)
        return min([self._until_metadata(report, record, took_seconds), *waves, *timer_delays(report, policy)])

    def _until_metadata(self, report: Report, record: UndoRecord, took_seconds: float) -> float:
        """When metadata is read again: on a large cluster this is most of the duration of a reconcile."""
        held = any(b.hold is not None or b.verdict.state in _AILING for b in report.brokers)
        progress = report.progress
        going_on = progress is not None and progress.waits is not None
        if not held and not going_on and at_rest(report, record):
            return self.idle_seconds
        rest = took_seconds * (1 - self.busy_share) / self.busy_share
        if any(b.quarantine_order is not None and b.quarantine_order.active for b in report.brokers):
            return min(max(self.held_seconds, rest), RENEW_SECONDS)
        return min(max(self.busy_seconds, rest), self.idle_seconds)


def at_rest(report: Report, record: UndoRecord) -> bool:
    """Whether nothing is displaced but for the sake of preferred racks, and nothing is on its way or outstanding."""
    if record.empty:
        return True
    steady = (
        not (record.demoted or record.returning or record.log_dirs or record.links)
        and report.settled
        and not report.held
    )
    return (
        steady
        and not report.leaders_out_of_place
        and all(e.state is EntryState.DISPLACED and not e.outstanding for e in record.entries.values())
    )


def timer_delays(report: Report, policy: Policy) -> list[float]:
    """Seconds until each running timer expires: dwell, stabilization (of brokers, log directories and links), and the
    pause between two waves.
    """
    found = (requeue_after(b.verdict, dwell_left=b.dwell_left, flaps=b.flaps, policy=policy) for b in report.brokers)
    waves = (
        b.restoration.wait.again_seconds
        for b in report.brokers
        if b.restoration is not None and b.restoration.wait is not None
    )
    decided = report.plan.decisions
    known = (*decided.log_dirs.known_good.values(), *decided.links.known_good.values())
    parts = (min(max(one.missing, SOONEST_SECONDS), MOST_BETWEEN_READS) for one in known if one.missing)
    return [seconds for seconds in (*found, *waves, *parts) if seconds is not None]


def requeue_after(
    verdict: Verdict, *, dwell_left: float | None, flaps: FlapCounter | None, policy: Policy
) -> float | None:
    """Seconds until a broker has been sick, or healthy, for long enough; None if neither timer runs."""
    if dwell_left is not None:
        left = dwell_left
    elif verdict.state is HealthState.RECOVERING:
        # Read again while the time since this reconcile counts in full.
        left = min(stabilization(flaps, policy) - verdict.known_good.seconds, MOST_BETWEEN_READS)
    else:
        return None
    return max(SOONEST_SECONDS, left)

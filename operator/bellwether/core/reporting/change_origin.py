"""Who or what demoted or promoted a broker, as the audit log names it: signals, an override with its person, its end.

In: the snapshot, and the broker's demotion, override and verdict. Out: text. Pure.
"""

from __future__ import annotations

from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.snapshot import Snapshot
from bellwether.core.model.undo_record import Cause, DemotedBroker
from bellwether.core.reasons import Reason
from bellwether.core.signals import Override


def requested_by(demoted: DemotedBroker, override: Override | None) -> str:
    """Who or what demoted a broker."""
    if demoted.cause is Cause.SIGNALS:
        return "signals"
    who = override.by if override is not None else ""
    if demoted.cause is Cause.MAINTENANCE:
        asked = demoted.reason != Reason.RESTARTING
        return f"maintenance{f' by {who}' if who else ''}" if asked else "its pod's restart"
    return f"{'override' if demoted.cause is Cause.OVERRIDE else 'command'}{f' by {who}' if who else ''}"


def promoted_by(
    broker: int, was: DemotedBroker | None, snapshot: Snapshot, verdict: Verdict | None, occasion: str
) -> tuple[str, str, str]:
    """Who or what promotes a broker, with reason and message. ``was``: its demotion."""
    override = snapshot.override_of(broker)
    if occasion:
        return occasion, str(verdict.reason) if verdict is not None else "", verdict.message if verdict else ""
    if override is not None:
        return f"override{f' by {override.by}' if override.by else ''}", f"Override{override.state}", override.reason
    if verdict is None:
        return "cluster", str(Reason.BROKER_DOWN), "no replica list names the broker any more"
    return _end_of(was, snapshot), str(verdict.reason), verdict.message


def _end_of(was: DemotedBroker | None, snapshot: Snapshot) -> str:
    """What ended a demotion. The API server does not say in the object who removed an override."""
    if was is not None and was.cause is Cause.MAINTENANCE:
        return "the end of its maintenance"
    if was is not None and was.cause is Cause.OVERRIDE:
        end = "end" if any(o.broker == was.broker for o in snapshot.overrides) else "removal"
        return f"the {end} of its override{f' ({was.message})' if was.by_person else ''}"
    return "signals"

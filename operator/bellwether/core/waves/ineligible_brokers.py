"""Which brokers must not get leaders by a plan, and which partitions are away from their baseline only for racks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from bellwether.core.detection.health_states import HealthState
from bellwether.core.detection.verdicts import Verdict
from bellwether.core.model.cluster import Cluster, Partition
from bellwether.core.model.rack_ranking import RackRanking
from bellwether.core.model.undo_record import EntryState, UndoEntry, UndoRecord
from bellwether.core.reasons import Reason


class IneligibleReason(StrEnum):
    """Why a broker may lead nothing more, where its health state does not say it."""

    NOT_REGISTERED = "NotRegistered"
    LISTENER_MISSING = "ListenerMissing"
    FENCED = "Fenced"
    DEMOTED = "Demoted"


def ineligible_brokers(
    cluster: Cluster,
    record: UndoRecord,
    verdicts: Mapping[int, Verdict],
    *,
    probed: bool = False,
    maintenance: Collection[int] = (),
) -> dict[int, str]:
    """Brokers that must not get leaders, with the reason.

    Brokers that are not registered, fenced, demoted or in maintenance, and those not known to be healthy. Where no
    prober runs, which neither ``probed`` nor a healthy broker contradicts, Unknown makes only a broker ineligible that
    was not healthy when there was evidence last.
    """
    judged = probed or any(v.state is HealthState.HEALTHY for v in verdicts.values())
    well = {HealthState.HEALTHY} | (set() if judged else {None})
    found: dict[int, str] = {
        b: str(v.state) for b, v in verdicts.items() if (v.state if judged else v.known_state) not in well
    }
    found |= dict.fromkeys(maintenance, str(Reason.IN_MAINTENANCE))
    found |= dict.fromkeys(record.demoted, str(IneligibleReason.DEMOTED))
    found |= dict.fromkeys((b.id for b in cluster.brokers.values() if b.fenced), str(IneligibleReason.FENCED))
    found |= dict.fromkeys(cluster.named - set(cluster.brokers), str(IneligibleReason.NOT_REGISTERED))
    found |= dict.fromkeys(cluster.unlisted, str(IneligibleReason.LISTENER_MISSING))
    return {b: why for b, why in sorted(found.items()) if b in cluster.named}


def stands_for_racks(partition: Partition, entry: UndoEntry, ranking: RackRanking) -> bool:
    """Whether a partition is permanently away from its baseline because of preferred racks."""
    return (
        entry.state is EntryState.DISPLACED
        and set(entry.baseline) == set(partition.replicas)
        and ranking.rests(partition, entry.baseline)
    )

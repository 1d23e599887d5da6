"""Cases of ``partitions.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

OURS = (of_policy(),)


def held(reason: str) -> str:
    return series("partition_moves_blocked", reason=reason, instance="operator-a")


def at_risk(risk: str) -> str:
    return series("partitions_at_risk", risk=risk, instance="operator-a")


def trouble(reason: str) -> str:
    return series("policy_error", reason=reason, instance="operator-a")


def away(displaced: str, for_racks: str = "0x140") -> dict[str, str]:
    """Partitions whose order is not their baseline, and those of them that the racks keep so."""
    return {series("partitions_displaced"): displaced, series("partitions_displaced_for_racks"): for_racks}


CASES = (
    Case(
        "BellwetherPartitionsWithoutLeader",
        "for two minutes",
        "2m",
        {series("partitions_leaderless"): "0x2 7x20"},
        OURS,
    ),
    Case(
        "BellwetherPartitionsWithoutLeader",
        "a broker died, and Kafka has elected within half a minute",
        "3m",
        {series("partitions_leaderless"): "0x2 7x2 0x20"},
    ),
    Case(
        "BellwetherPartitionsRejectWrites",
        "fewer in sync than min.insync.replicas for three minutes",
        "3m",
        {at_risk("UnderMinIsr"): "0x2 3x20", at_risk("AtMinIsr"): "0x30"},
        OURS,
    ),
    Case(
        "BellwetherPartitionsRejectWrites",
        "a broker restarts: none to spare, and for a minute too few",
        "6m",
        {at_risk("UnderMinIsr"): "0x2 3x4 0x30", at_risk("AtMinIsr"): "0x2 40x20 0x20"},
    ),
    Case(
        "BellwetherPartitionsAtRisk",
        "no replica to spare for ten minutes",
        "11m",
        {at_risk("AtMinIsr"): "0x2 60x60", at_risk("UnderReplicated"): "0x60"},
        OURS,
    ),
    Case(
        "BellwetherPartitionsAtRisk",
        "a rolling restart: each broker is back after some minutes",
        "21m",
        {at_risk("AtMinIsr"): "60x30 0x4 60x30 0x60", at_risk("UnderReplicated"): "9x120"},
    ),
    Case(
        "BellwetherPartitionMovesBlocked",
        "the only replica is on the demoted broker",
        "11m",
        {held("OnlyReplica"): "2x60", held("NoHealthyIsrMember"): "1x60"},
        OURS,
    ),
    Case(
        "BellwetherPartitionMovesBlocked",
        "held while replicas are being moved, or until a restarted broker is back in the ISR",
        "11m",
        {held("Reassigning"): "5x60", held("NoHealthyIsrMember"): "9x8 stale"},
    ),
    Case(
        "BellwetherReplicaListsNameRemovedBroker",
        "replica lists name a broker that is not registered, and no broker is at fault",
        "16m",
        {at_risk("RemovedBroker"): "4x60", at_risk("UnderReplicated"): "0x60"},
        OURS,
    ),
    Case(
        "BellwetherReplicaListsNameRemovedBroker",
        "a broker is replaced, and its partitions are reassigned",
        "21m",
        {at_risk("RemovedBroker"): "4x20 0x60"},
    ),
    Case("BellwetherReplicaOrderContested", "another tool reorders", "11m", {held("OrderOverwritten"): "40x60"}, OURS),
    Case("BellwetherReplicaOrderContested", "a person did it once", "11m", {held("OrderOverwritten"): "40x4 stale"}),
    Case(
        "BellwetherReplicaSetConflict",
        "one set changed",
        "2m",
        {series("replica_set_conflicts_total", instance="operator-a"): "0x4 1x20"},
        OURS,
    ),
    Case(
        "BellwetherReplicaSetConflict",
        "an operator with one behind it is replaced by another that begins at 0",
        "5m",
        {
            series("replica_set_conflicts_total", instance="operator-a"): "1x8 stale",
            series("replica_set_conflicts_total", instance="operator-b"): "_x8 0x20",
        },
    ),
    Case(
        "BellwetherExecutionsAborted",
        "Kafka refuses again and again",
        "8m",
        {series("executions_aborted_total", reason="RequestRefused"): "0+1x40"},
        (of_policy(reason="RequestRefused"),),
    ),
    Case(
        "BellwetherExecutionsAborted",
        "one request was lost while a broker restarted",
        "8m",
        {series("executions_aborted_total", reason="NoAnswer"): "0x4 1x40"},
    ),
    Case("BellwetherUndoRecordUnavailable", "for two minutes", "2m", {trouble("RecordUnavailable"): "1x20"}, OURS),
    Case(
        "BellwetherUndoRecordUnavailable",
        "once, as another writer was first",
        "2m",
        {trouble("RecordUnavailable"): "1x1 stale"},
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "no one is demoted and orders stay displaced",
        "31m",
        {**away("40x140"), series("broker_demoted", broker="1"): "0x140"},
        OURS,
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "a broker is demoted",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "0x140",
            series("broker_demoted", broker="2"): "1x140",
        },
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "a dead broker's leaders wait for it to come back",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "0x140",
            series("broker_restoration_ratio", broker="1"): "0x140",
        },
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "a broker is stuck in its restoration",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "0x140",
            series("broker_restoration_ratio", broker="1"): "0.1x140",
        },
        OURS,
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "it was promoted, and wave after wave puts the orders back",
        "31m",
        {**away("40-1x40 0x100"), series("broker_demoted", broker="1"): "0x140"},
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "they are away for the sake of preferred racks",
        "31m",
        {**away("40x140", for_racks="40x140"), series("broker_demoted", broker="1"): "0x140"},
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "most are away for the racks' sake, and a few for no good reason",
        "31m",
        {**away("40x140", for_racks="37x140"), series("broker_demoted", broker="1"): "0x140"},
        OURS,
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "each wave is watched for hours before the next one",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "0x140",
            series("broker_restoration_ratio", broker="1"): "0.1x140",
            series("broker_restoration_blocked", broker="1", reason="RestoringInWaves"): "1x140",
        },
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "the next wave waits for a broker that is out of sync",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "0x140",
            series("broker_restoration_ratio", broker="1"): "0.1x140",
            series("broker_restoration_blocked", broker="1", reason="RestoringInWaves"): "1x2 stale",
            series("broker_restoration_blocked", broker="1", reason="PreferredNotInIsr"): "_x3 1x140",
        },
        OURS,
    ),
    Case(
        "BellwetherReplicaOrdersNotRestored",
        "a broker is stopped for maintenance, drained",
        "31m",
        {
            **away("40x140"),
            series("broker_demoted", broker="1"): "1x140",
            series("broker_verdict", broker="1", verdict="Down"): "1x140",
        },
    ),
)

"""All reasons with their descriptions: the one table that conditions, events, metrics, the CLI and the docs use.

A reason is chosen where the decision is made, and is passed on unchanged. Cases that call for the same action have the
same reason; the message names the case.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Reason names, as used in conditions and metrics."""

    # Verdicts on a broker
    SIGNALS_PASSING = "SignalsPassing"
    STABILIZING = "Stabilizing"
    EXTERNALLY_UNREACHABLE = "ExternallyUnreachable"
    STORAGE_SLOW = "StorageSlow"
    READS_SLOW = "ReadsSlow"
    CANARY_FAILING = "CanaryFailing"
    NOT_FENCED_IN_TIME = "NotFencedInTime"
    UNREACHABLE = "Unreachable"
    UNCONFIRMED = "Unconfirmed"
    VANTAGES_DISAGREE = "VantagesDisagree"
    VANTAGE_CONFLICT = "VantageConflict"
    BROKER_STARTING = "BrokerStarting"
    SHUTTING_DOWN = "ShuttingDown"
    NO_CLIENT_CONNECTIONS = "NoClientConnections"
    CLUSTER_WIDE_SLOW = "ClusterWideSlow"
    REPLICATION_LAGGING = "ReplicationLagging"
    PROMETHEUS_RULE = "PrometheusRule"
    ALERT_FIRING = "AlertFiring"
    PLUGIN_FAILING = "PluginFailing"
    NO_EVIDENCE = "NoEvidence"
    NOT_REGISTERED = "NotRegistered"
    IN_MAINTENANCE = "InMaintenance"
    FENCED = "Fenced"
    # Why a broker is, or is not, demoted
    OVERRIDE_DEMOTED = "OverrideDemoted"
    DWELL_PENDING = "DwellPending"
    MANUAL_COMMAND = "ManualCommand"
    RESTARTING = "Restarting"
    MAINTENANCE_ENDED = "MaintenanceEnded"
    LAST_HEALTHY_BROKER = "LastHealthyBroker"
    NO_LEADER_LEFT = "NoLeaderLeft"
    OVERRIDE_EXPIRED = "OverrideExpired"
    PODS_UNKNOWN = "PodsUnknown"
    # Whether a broker may be stopped
    DRAINING = "Draining"
    LEADS_NOTHING = "LeadsNothing"
    NEEDED_FOR_MIN_ISR = "NeededForMinIsr"
    UNAVAILABLE_WRITES_ACCEPTED = "UnavailableWritesAccepted"
    CAP_REACHED = "CapReached"
    SYSTEMIC_CAUSE = "SystemicCause"
    PROMOTION_MANUAL = "PromotionManual"
    EXTERNAL_OPERATION = "ExternalOperation"
    LEADING_ALLOWED = "LeadingAllowed"
    RESTORING_IN_WAVES = "RestoringInWaves"
    OTHER_VERSION = "OtherVersion"
    # Why a partition is not moved now
    ONLY_REPLICA = "OnlyReplica"
    NO_HEALTHY_ISR_MEMBER = "NoHealthyIsrMember"
    ALL_REPLICAS_DEMOTED = "AllReplicasDemoted"
    CAPACITY_REACHED = "CapacityReached"
    LOADS_UNKNOWN = "LoadsUnknown"
    PREFERRED_NOT_IN_ISR = "PreferredNotInIsr"
    REASSIGNING = "Reassigning"
    ORDER_OVERWRITTEN = "OrderOverwritten"
    CHANGED_SINCE_PLAN = "ChangedSincePlan"
    NOT_APPLIED = "NotApplied"
    ELECTION_REFUSED = "ElectionRefused"
    SKIPPED_IN_WAVE = "SkippedInWave"
    # Whether acks=all waits for a broker, and whether it is quarantined
    NOT_BLOCKING_ACKS = "NotBlockingAcks"
    QUARANTINE_ORDERED = "QuarantineOrdered"
    PROCESS_PAUSED = "ProcessPaused"
    QUARANTINE_WITHDRAWN = "QuarantineWithdrawn"
    QUARANTINE_LIMIT = "QuarantineLimit"
    QUARANTINE_DELAYED = "QuarantineDelayed"
    DISK_RECOVERED = "DiskRecovered"
    NO_STORAGE_PROBE = "NoStorageProbe"
    AGENT_MISSING = "AgentMissing"
    AGENT_RELEASED = "AgentReleased"
    NO_FAULT_TOLERANCE = "NoFaultTolerance"
    ANOTHER_BROKER_UNHEALTHY = "AnotherBrokerUnhealthy"
    FAULT_TOLERANCE_UNKNOWN = "FaultToleranceUnknown"
    # Whether the racks that a policy prefers exist, and lead
    PLACEMENT_SATISFIED = "PlacementSatisfied"
    PLACEMENT_UNSUITABLE = "PlacementUnsuitable"
    OTHER_RACKS_LEAD = "OtherRacksLead"
    # Why an execution was aborted
    REPLICA_SET_CONFLICT = "ReplicaSetConflict"
    NO_ANSWER = "NoAnswer"
    REQUEST_REFUSED = "RequestRefused"
    # Progress of a rebalance
    NOTHING_PLANNED = "NothingPlanned"
    PLANNING = "Planning"
    PLAN_PROPOSED = "PlanProposed"
    OTHER_PLAN_APPROVED = "OtherPlanApproved"
    IMPROVEMENT_TOO_SMALL = "ImprovementTooSmall"
    JOB_FAILED = "JobFailed"
    PLAN_VERIFICATION_FAILED = "PlanVerificationFailed"
    STORE_UNAVAILABLE = "StoreUnavailable"
    APPLYING = "Applying"
    WAVE_PENDING = "WavePending"
    PLAN_OUTDATED = "PlanOutdated"
    PLAN_APPLIED = "PlanApplied"
    # Why a policy is, or is not, ready
    UP_TO_DATE = "UpToDate"
    LEADERS_MOVING = "LeadersMoving"
    MOVES_BLOCKED = "MovesBlocked"
    OBSERVE_MODE = "ObserveMode"
    SUSPENDED = "Suspended"
    NOT_LEADER = "NotLeader"
    CLUSTER_REACHABLE = "ClusterReachable"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CREDENTIALS_UNUSABLE = "CredentialsUnusable"
    ACL_MISSING = "AclMissing"
    STRIMZI_REFERENCE_INVALID = "StrimziReferenceInvalid"
    STRIMZI_NOT_SHARED = "StrimziNotShared"
    STRIMZI_NOT_READY = "StrimziNotReady"
    CLUSTER_CHANGED = "ClusterChanged"
    CLUSTER_CLAIMED = "ClusterClaimed"
    CLUSTER_EMPTY = "ClusterEmpty"
    INVALID_POLICY = "InvalidPolicy"
    RECORD_UNAVAILABLE = "RecordUnavailable"
    UNINSTALLING = "Uninstalling"
    CRD_OUTDATED = "CRDOutdated"


DESCRIPTIONS: dict[Reason, str] = {
    Reason.SIGNALS_PASSING: "Every signal of the broker passes.",
    Reason.STABILIZING: "Every signal passes again; the broker is promoted after the stabilization time.",
    Reason.EXTERNALLY_UNREACHABLE: "A quorum of vantages cannot reach the external listener; the internal one answers.",
    Reason.STORAGE_SLOW: "The write latency of the broker's log directory is above the threshold.",
    Reason.READS_SLOW: "Reads from the disk of the broker's log directory miss the fetch objective.",
    Reason.CANARY_FAILING: "Records produced to the broker and fetched from it fail or miss the objective.",
    Reason.NOT_FENCED_IN_TIME: (
        "The broker is unreachable and the controller has not fenced it within the session timeout."
    ),
    Reason.UNREACHABLE: "Neither listener answers; the controller fences the broker after its session timeout.",
    Reason.UNCONFIRMED: "The external listener fails and no vantage could probe the internal one.",
    Reason.VANTAGES_DISAGREE: "Some vantages cannot reach the broker, but fewer than the quorum.",
    Reason.VANTAGE_CONFLICT: "A quorum of vantages cannot reach the broker, and another vantage can.",
    Reason.BROKER_STARTING: "The broker has restarted; the load balancer has startupGraceSeconds to detect it.",
    Reason.SHUTTING_DOWN: "The broker is in controlled shutdown: it has already left every ISR.",
    Reason.NO_CLIENT_CONNECTIONS: "No external client is connected to this broker, while its peers have clients.",
    Reason.CLUSTER_WIDE_SLOW: "The disks of this broker and of its peers are slow: probably a shared cause.",
    Reason.REPLICATION_LAGGING: "Replication lags behind the leaders for longer than the threshold.",
    Reason.PROMETHEUS_RULE: "A Prometheus query of the policy reports the broker above its threshold.",
    Reason.ALERT_FIRING: "An alert that the policy names fires for the broker.",
    Reason.PLUGIN_FAILING: "A signal of a plugin fails for the broker.",
    Reason.NO_EVIDENCE: "Not enough sources report fresh signals; nothing is moved because of it.",
    Reason.NOT_REGISTERED: "The broker is not registered with the controller.",
    Reason.IN_MAINTENANCE: "The broker is in maintenance by an override: it is drained and its signals are ignored.",
    Reason.FENCED: "The controller has fenced the broker: it missed its heartbeats and leads nothing.",
    Reason.OVERRIDE_DEMOTED: "An override demotes the broker.",
    Reason.DWELL_PENDING: "The broker is Sick for less than spec.demotion.dwellSeconds; it is demoted after that time.",
    Reason.MANUAL_COMMAND: "The broker was demoted from the command line.",
    Reason.RESTARTING: "The broker's pod is terminating or not ready: it is drained and its signals are ignored.",
    Reason.MAINTENANCE_ENDED: "Maintenance has ended; the leaders are restored once the broker is healthy.",
    Reason.LAST_HEALTHY_BROKER: "No other broker is healthy and free to lead, so this one is not drained.",
    Reason.NO_LEADER_LEFT: "Partitions would have no leader if the broker stopped, so it is not drained.",
    Reason.OVERRIDE_EXPIRED: "The override has expired and has no effect; remove it.",
    Reason.PODS_UNKNOWN: "The brokers' pods cannot be read, so restarts are not detected.",
    Reason.DRAINING: "The broker still leads partitions, or is still first in some replica order.",
    Reason.LEADS_NOTHING: "The broker leads nothing and is first in no replica order: it may be stopped.",
    Reason.NEEDED_FOR_MIN_ISR: (
        "Partitions would have fewer ISR members than min.insync.replicas without the broker, so acks=all would fail."
    ),
    Reason.UNAVAILABLE_WRITES_ACCEPTED: (
        "The broker leads nothing; its override accepts that acks=all writes may fail once it stops."
    ),
    Reason.CAP_REACHED: "The maximum number of brokers that cannot lead is reached (spec.demotion.maxBrokers).",
    Reason.SYSTEMIC_CAUSE: "Half of the brokers or more cannot lead or are sick: probably a shared cause.",
    Reason.PROMOTION_MANUAL: "The broker is healthy again; spec.promotion.mode requires manual promotion.",
    Reason.EXTERNAL_OPERATION: "Strimzi is paused, or another tool is moving replicas; deferrable moves wait for it.",
    Reason.LEADING_ALLOWED: "The broker is free to lead.",
    Reason.RESTORING_IN_WAVES: "The broker's leaders are restored in waves.",
    Reason.OTHER_VERSION: "Another version of Bellwether stored a reason that this version does not know.",
    Reason.ONLY_REPLICA: "The demoted broker has the partition's only replica.",
    Reason.NO_HEALTHY_ISR_MEMBER: "No healthy, live member of the ISR can lead; the current leader stays.",
    Reason.ALL_REPLICAS_DEMOTED: "Every replica of the partition is on a demoted broker.",
    Reason.CAPACITY_REACHED: "Every other eligible replica is at the limit set by spec.demotion.capacity.",
    Reason.LOADS_UNKNOWN: "The loads of partitions are not measured yet, and the policy limits brokers by load.",
    Reason.PREFERRED_NOT_IN_ISR: "The preferred leader is not in the ISR, so Kafka would refuse the election.",
    Reason.REASSIGNING: "Replicas of the partition are being added or removed; the move waits for that.",
    Reason.ORDER_OVERWRITTEN: "Another tool keeps changing the replica order; retrying with backoff.",
    Reason.CHANGED_SINCE_PLAN: "The topic, its replicas or their order changed since they were last read.",
    Reason.NOT_APPLIED: "Kafka accepted the new order, but a later read does not show it yet.",
    Reason.ELECTION_REFUSED: "Kafka refused the leader election.",
    Reason.SKIPPED_IN_WAVE: "Skipped in its wave; it will be considered again by the next plan.",
    Reason.NOT_BLOCKING_ACKS: "Producers with acks=all do not wait for this broker.",
    Reason.QUARANTINE_ORDERED: "The quarantine agent has the order to pause the broker and has not confirmed it yet.",
    Reason.PROCESS_PAUSED: "The broker's process is paused, so that acks=all does not wait for its slow disk.",
    Reason.QUARANTINE_WITHDRAWN: "The quarantine is off, the broker may lead again, or it is about to be stopped.",
    Reason.QUARANTINE_LIMIT: "The quarantine ended at spec.quarantine.limitSeconds, and the disk is still slow.",
    Reason.QUARANTINE_DELAYED: "The quarantine waits for spec.quarantine.afterSeconds or for its cooldown to end.",
    Reason.DISK_RECOVERED: "The storage probe reports that the broker's disk is fast again.",
    Reason.NO_STORAGE_PROBE: "No storage probe reports on the broker's disk, so its recovery would not be detected.",
    Reason.AGENT_MISSING: "The broker's quarantine agent does not report, or cannot pause the broker.",
    Reason.AGENT_RELEASED: "The quarantine agent resumed the broker before the order ended.",
    Reason.NO_FAULT_TOLERANCE: "Pausing the broker could make partitions or the controller quorum unavailable.",
    Reason.ANOTHER_BROKER_UNHEALTHY: "Another broker is down, not healthy, paused, demoted or in maintenance.",
    Reason.FAULT_TOLERANCE_UNKNOWN: "The topics' min.insync.replicas or the controller quorum cannot be read.",
    Reason.PLACEMENT_SATISFIED: "The cluster matches spec.placement.",
    Reason.PLACEMENT_UNSUITABLE: "A rack or a rule of spec.placement does not match the brokers or topics.",
    Reason.OTHER_RACKS_LEAD: "Some partitions are led from a less preferred rack than one that has a replica of them.",
    Reason.REPLICA_SET_CONFLICT: "A replica set changed during a reorder; the execution was aborted.",
    Reason.NO_ANSWER: "A request to Kafka timed out; the next reconcile reads the result.",
    Reason.REQUEST_REFUSED: "Kafka refused the request.",
    Reason.NOTHING_PLANNED: "No rebalance plan has been requested yet.",
    Reason.PLANNING: "A job measures loads and computes a plan.",
    Reason.PLAN_PROPOSED: "A rebalance plan waits for approval.",
    Reason.OTHER_PLAN_APPROVED: "The approval annotation has the digest of another plan and has no effect.",
    Reason.IMPROVEMENT_TOO_SMALL: "The plan improves less than spec.rebalance.minimumImprovementPercent.",
    Reason.JOB_FAILED: "The planning job failed; the next one starts at the next scheduled time or request.",
    Reason.PLAN_VERIFICATION_FAILED: "The plan failed the verification of its orders, figures and certificate.",
    Reason.STORE_UNAVAILABLE: "The store of loads and plans cannot be read or written.",
    Reason.APPLYING: "The plan is approved; its orders become baselines, wave by wave.",
    Reason.WAVE_PENDING: "The next wave waits for the pause between waves or for the previous wave to complete.",
    Reason.PLAN_OUTDATED: "The plan no longer applies: it expired, was superseded, or the cluster changed too much.",
    Reason.PLAN_APPLIED: "The plan is applied, except for the partitions that were skipped.",
    Reason.UP_TO_DATE: "Every partition has the intended replica order and leader.",
    Reason.LEADERS_MOVING: "Leaders are being moved.",
    Reason.MOVES_BLOCKED: "Some moves are blocked; status.blockedByReason counts them by reason.",
    Reason.OBSERVE_MODE: "The policy is in Observe mode: it reports and changes nothing.",
    Reason.SUSPENDED: "The policy is suspended (spec.suspend): nothing is moved or restored.",
    Reason.NOT_LEADER: "Another operator process holds the Lease of this Kafka cluster.",
    Reason.CLUSTER_REACHABLE: "The Kafka cluster answers.",
    Reason.CLUSTER_UNREACHABLE: "No bootstrap server gave a usable answer.",
    Reason.CREDENTIALS_UNUSABLE: "A referenced Secret is missing or invalid, or Kafka rejected the credentials.",
    Reason.ACL_MISSING: "Kafka authenticated the user and refused a request; the message names the ACL to grant.",
    Reason.STRIMZI_REFERENCE_INVALID: (
        "The Kafka resource, listener or KafkaUser that the policy names is missing or unsuitable."
    ),
    Reason.STRIMZI_NOT_SHARED: "The Kafka resource is in another namespace and does not admit this policy's namespace.",
    Reason.STRIMZI_NOT_READY: "Strimzi has not published the listener's address or the user's Secret yet.",
    Reason.CLUSTER_CHANGED: "The bootstrap servers lead to another Kafka cluster than the policy is pinned to.",
    Reason.CLUSTER_CLAIMED: "Another policy already manages this Kafka cluster.",
    Reason.CLUSTER_EMPTY: "The Kafka cluster has no partitions yet.",
    Reason.INVALID_POLICY: "The policy is invalid; the message names the field and the remedy.",
    Reason.RECORD_UNAVAILABLE: "The undo record cannot be read or written, so nothing new starts.",
    Reason.UNINSTALLING: "Bellwether is being uninstalled: orders are restored or exported; reconciling has stopped.",
    Reason.CRD_OUTDATED: "The installed CRDs are older than the operator, so status is incomplete.",
}
"""Description of each reason, one sentence each."""


def reason_named(name: str) -> Reason:
    """The reason of that name; OTHER_VERSION for a stored name that this version does not know."""
    return Reason(name) if name in set(Reason) else Reason.OTHER_VERSION

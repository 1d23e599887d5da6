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
    SYNCS_SLOW = "SyncsSlow"
    STORAGE_SLOW = "StorageSlow"
    LOG_DIR_SLOW = "LogDirSlow"
    BROKEN_LINK = "BrokenLink"
    READS_SLOW = "ReadsSlow"
    CANARY_FAILING = "CanaryFailing"
    FREEZING = "Freezing"
    NOT_FENCED_IN_TIME = "NotFencedInTime"
    UNREACHABLE = "Unreachable"
    VANTAGES_DISAGREE = "VantagesDisagree"
    VANTAGE_CONFLICT = "VantageConflict"
    HARM_BELOW_COST = "HarmBelowCost"
    REPLICATION_LAGGING = "ReplicationLagging"
    CERTIFICATE_EXPIRING = "CertificateExpiring"
    SIGNAL_FAILING = "SignalFailing"
    NO_EVIDENCE = "NoEvidence"
    LISTENER_MISSING = "ListenerMissing"
    LOG_DIR_OFFLINE = "LogDirOffline"
    BROKER_DOWN = "BrokerDown"
    IN_MAINTENANCE = "InMaintenance"
    # Why a broker is, or is not, demoted
    OVERRIDE_DEMOTED = "OverrideDemoted"
    DWELL_PENDING = "DwellPending"
    MANUAL_COMMAND = "ManualCommand"
    RESTARTING = "Restarting"
    OVERRIDE_EXPIRED = "OverrideExpired"
    # Whether a broker may be stopped
    LEADS_NOTHING = "LeadsNothing"
    CAP_REACHED = "CapReached"
    SYSTEMIC_CAUSE = "SystemicCause"
    PROMOTION_MANUAL = "PromotionManual"
    EXTERNAL_OPERATION = "ExternalOperation"
    RESTORING_IN_WAVES = "RestoringInWaves"
    OTHER_VERSION = "OtherVersion"
    # Why a partition is not moved now
    ONLY_REPLICA = "OnlyReplica"
    NO_HEALTHY_ISR_MEMBER = "NoHealthyIsrMember"
    CAPACITY_REACHED = "CapacityReached"
    OUT_OF_SCOPE = "OutOfScope"
    PREFERRED_NOT_IN_ISR = "PreferredNotInIsr"
    REASSIGNING = "Reassigning"
    REMOVED_BROKER = "RemovedBroker"
    ORDER_OVERWRITTEN = "OrderOverwritten"
    CHANGED_SINCE_PLAN = "ChangedSincePlan"
    # Whether acks=all waits for a broker, and whether it is quarantined
    NO_RELIEF = "NoRelief"
    ACKS_CONTRADICTED = "AcksContradicted"
    NOT_BLOCKING_ACKS = "NotBlockingAcks"
    QUARANTINE_PENDING = "QuarantinePending"
    BROKER_HELD = "BrokerHeld"
    QUARANTINE_ENDED = "QuarantineEnded"
    QUARANTINE_LIMIT = "QuarantineLimit"
    AGENT_UNAVAILABLE = "AgentUnavailable"
    NO_FAULT_TOLERANCE = "NoFaultTolerance"
    ANOTHER_BROKER_UNHEALTHY = "AnotherBrokerUnhealthy"
    # Whether the racks that a policy prefers exist, and lead
    PLACEMENT_UNSUITABLE = "PlacementUnsuitable"
    OTHER_RACKS_LEAD = "OtherRacksLead"
    # Why an execution was aborted
    REPLICA_SET_CONFLICT = "ReplicaSetConflict"
    NO_ANSWER = "NoAnswer"
    LEASE_UNCONFIRMED = "LeaseUnconfirmed"
    SENDER_MAY_RUN = "SenderMayRun"
    STUCK = "Stuck"
    REQUEST_REFUSED = "RequestRefused"
    # Progress of a rebalance
    NO_PLAN_PENDING = "NoPlanPending"
    PLANNING = "Planning"
    PLAN_PROPOSED = "PlanProposed"
    OTHER_PLAN_APPROVED = "OtherPlanApproved"
    PLAN_EXPIRED = "PlanExpired"
    TOO_LITTLE_MEASURED = "TooLittleMeasured"
    JOB_FAILED = "JobFailed"
    PLAN_VERIFICATION_FAILED = "PlanVerificationFailed"
    STORE_UNAVAILABLE = "StoreUnavailable"
    APPLYING = "Applying"
    REBALANCE_UNUSED = "RebalanceUnused"
    # Why a policy is, or is not, ready
    OFFLINE_PARTITIONS = "OfflinePartitions"
    UNDER_MIN_ISR = "UnderMinIsr"
    AT_MIN_ISR = "AtMinIsr"
    UNDER_REPLICATED = "UnderReplicated"
    BROKER_DEMOTED = "BrokerDemoted"
    UP_TO_DATE = "UpToDate"
    LEADERS_MOVING = "LeadersMoving"
    MOVES_BLOCKED = "MovesBlocked"
    NOT_ENFORCING = "NotEnforcing"
    NOT_LEADER = "NotLeader"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CREDENTIALS_UNUSABLE = "CredentialsUnusable"
    ACL_MISSING = "AclMissing"
    STRIMZI_REFERENCE_INVALID = "StrimziReferenceInvalid"
    STRIMZI_NOT_READY = "StrimziNotReady"
    CLUSTER_CHANGED = "ClusterChanged"
    CLUSTER_CLAIMED = "ClusterClaimed"
    INVALID_POLICY = "InvalidPolicy"
    RECORD_UNAVAILABLE = "RecordUnavailable"
    UNINSTALLING = "Uninstalling"
    CRD_OUTDATED = "CRDOutdated"


DESCRIPTIONS: dict[Reason, str] = {
    Reason.SIGNALS_PASSING: "Every signal of the broker passes.",
    Reason.STABILIZING: "The broker is promoted once every signal has passed for the stabilization time.",
    Reason.EXTERNALLY_UNREACHABLE: "A quorum of vantages cannot reach an external listener; the internal one answers.",
    Reason.STORAGE_SLOW: (
        "Writes to the broker's log directory miss the objective, and probes lost as much as a move costs."
    ),
    Reason.SYNCS_SLOW: "Syncs of the broker's log directory are slow, appends are not: only moving leaders would hurt.",
    Reason.LOG_DIR_SLOW: (
        "Some of the broker's log directories miss the objective, others do not: only what lies in them is demoted."
    ),
    Reason.BROKEN_LINK: (
        "Two brokers do not reach each other, and others reach both: a third replica leads what they share."
    ),
    Reason.READS_SLOW: (
        "Reads from the broker's log directory miss the objective, and probes lost as much as a move costs."
    ),
    Reason.CANARY_FAILING: (
        "Records produced to the broker and fetched from it fail or miss the objective, and probes lost as much as a"
        " move costs."
    ),
    Reason.FREEZING: "The broker stops answering again and again, each time for less than Kafka needs to fence it.",
    Reason.NOT_FENCED_IN_TIME: (
        "The broker is unreachable, and the controller has not fenced it within 1.5 session timeouts, or will not."
    ),
    Reason.UNREACHABLE: "No listener is known to answer; the controller fences the broker after its session timeout.",
    Reason.VANTAGES_DISAGREE: (
        "Some vantages cannot reach the broker, or it has no external client; fewer than the quorum."
    ),
    Reason.VANTAGE_CONFLICT: "A quorum of vantages cannot reach the broker, and another vantage can.",
    Reason.HARM_BELOW_COST: "Clients of the broker lose requests, so far less than moving its leaders would cost them.",
    Reason.REPLICATION_LAGGING: "Replication lags behind the leaders for longer than the threshold.",
    Reason.CERTIFICATE_EXPIRING: "The certificate of an external listener of the broker expires soon, or has expired.",
    Reason.SIGNAL_FAILING: (
        "A Prometheus query, an alert or a plug-in signal fails for the broker; the message names it."
    ),
    Reason.NO_EVIDENCE: (
        "Signals, loads, settings or pods cannot be read or are stale; nothing is moved because of it."
    ),
    Reason.LISTENER_MISSING: (
        "A broker lacks the listener of the bootstrap servers, so that Kafka does not show what it leads; nothing of it"
        " is moved."
    ),
    Reason.LOG_DIR_OFFLINE: "Kafka reports replicas of a live broker as offline: one of its log directories failed.",
    Reason.BROKER_DOWN: "The broker is fenced by the controller, or not registered with it, and leads nothing.",
    Reason.IN_MAINTENANCE: "The broker is in maintenance; once it leads nothing, its signals are ignored.",
    Reason.OVERRIDE_DEMOTED: "An override demotes the broker.",
    Reason.DWELL_PENDING: "The broker is Sick for less than spec.demotion.dwellSeconds; it is demoted after that time.",
    Reason.MANUAL_COMMAND: "The broker was demoted from the command line.",
    Reason.RESTARTING: "The broker is stopping or starting: it is drained, or has nothing to move.",
    Reason.OVERRIDE_EXPIRED: "The override has expired and has no effect; remove it.",
    Reason.LEADS_NOTHING: "The broker leads nothing and is first in no replica order: it may be stopped.",
    Reason.CAP_REACHED: "The cap (spec.demotion.maxBrokers) is reached, or no better broker would be left to lead.",
    Reason.SYSTEMIC_CAUSE: (
        "Half of the live brokers or more have the same symptom, or the peers' disks are slow, too: probably a shared"
        " cause."
    ),
    Reason.PROMOTION_MANUAL: "The broker is healthy again; spec.promotion.mode requires manual promotion.",
    Reason.EXTERNAL_OPERATION: "Strimzi is paused, or another tool is moving replicas; deferrable moves wait for it.",
    Reason.RESTORING_IN_WAVES: "The broker's leaders are restored in waves.",
    Reason.OTHER_VERSION: "Another version of Bellwether stored a reason that this version does not know.",
    Reason.ONLY_REPLICA: "The demoted broker has the partition's only replica.",
    Reason.NO_HEALTHY_ISR_MEMBER: "No live, healthy ISR member that is not demoted can lead; the leader stays.",
    Reason.CAPACITY_REACHED: "Every other eligible replica is at the limit set by spec.demotion.capacity.",
    Reason.OUT_OF_SCOPE: "The topic is out of scope (spec.scope), so its leader and its replica order stay.",
    Reason.PREFERRED_NOT_IN_ISR: "The preferred leader is not in the ISR, so Kafka would refuse the election.",
    Reason.REASSIGNING: "Replicas of the partition are being added or removed; the move waits for that.",
    Reason.REMOVED_BROKER: (
        "The replica list names a broker that is no longer registered: Kafka refuses each new order of it."
    ),
    Reason.ORDER_OVERWRITTEN: "Another tool keeps changing the replica order; retrying with backoff.",
    Reason.CHANGED_SINCE_PLAN: (
        "The topic, its replicas or their order changed since they were last read, or its new leader may not lead."
    ),
    Reason.NO_RELIEF: (
        "The broker's writes are slow, and demotion would make acks=all slower, not faster: its leaders stay."
    ),
    Reason.ACKS_CONTRADICTED: (
        "The policy says that most producers use acks=1, and Kafka's remote time of produce requests proves acks=all."
    ),
    Reason.NOT_BLOCKING_ACKS: "Producers with acks=all do not wait for this broker.",
    Reason.QUARANTINE_PENDING: ("The quarantine waits for its cooldown or for the agent's answer."),
    Reason.BROKER_HELD: "The broker is held in a controlled shutdown, so that no client waits for its slow disk.",
    Reason.QUARANTINE_ENDED: (
        "The quarantine is no longer needed: the disk is fast, or the broker may lead or will be stopped."
    ),
    Reason.QUARANTINE_LIMIT: "The quarantine ended at spec.quarantine.limitSeconds, and the disk is still slow.",
    Reason.AGENT_UNAVAILABLE: "The quarantine agent does not report, cannot hold the broker, or released it early.",
    Reason.NO_FAULT_TOLERANCE: (
        "Without the broker, partitions or the controller quorum would be unavailable or refuse writes."
    ),
    Reason.ANOTHER_BROKER_UNHEALTHY: "Other brokers are down, not healthy, held, demoted or in maintenance.",
    Reason.PLACEMENT_UNSUITABLE: "A rack or a rule of spec.placement does not match the brokers or topics.",
    Reason.OTHER_RACKS_LEAD: "Some partitions are led from a less preferred rack than one that has a replica of them.",
    Reason.REPLICA_SET_CONFLICT: "A replica set changed during a reorder; the execution was aborted.",
    Reason.NO_ANSWER: "Kafka did not answer, or does not show the effect yet; the next reconcile reads the result.",
    Reason.LEASE_UNCONFIRMED: "The Kubernetes API did not say who holds the Lease, so nothing was sent to Kafka.",
    Reason.SENDER_MAY_RUN: "A former operator process is not known to have ended: its orders stay outstanding.",
    Reason.STUCK: "A reconcile does not end and was given up; another one takes its place, here or in another process.",
    Reason.REQUEST_REFUSED: "Kafka refused a request or an election; the message has its error.",
    Reason.NO_PLAN_PENDING: (
        "No rebalance plan is pending: none was requested, or the last one is applied or superseded."
    ),
    Reason.PLANNING: "A job measures loads and computes a plan.",
    Reason.PLAN_PROPOSED: "A rebalance plan waits for approval.",
    Reason.OTHER_PLAN_APPROVED: "The approval annotation has the digest of another plan and has no effect.",
    Reason.PLAN_EXPIRED: "The plan is older than spec.validSeconds of the LeaderRebalance; request a new plan.",
    Reason.TOO_LITTLE_MEASURED: "Too few hours or bytes are measured for a proposal; the message says what is missing.",
    Reason.JOB_FAILED: "The planning job failed; the next one starts at the next scheduled time or request.",
    Reason.PLAN_VERIFICATION_FAILED: "The plan failed the verification of its orders, figures and certificate.",
    Reason.STORE_UNAVAILABLE: "The store of loads and plans cannot be read or written.",
    Reason.APPLYING: "The plan is approved; its orders become baselines, wave by wave.",
    Reason.REBALANCE_UNUSED: "No policy uses this LeaderRebalance; the message says why, and what to change.",
    Reason.OFFLINE_PARTITIONS: "Partitions have no leader: they can be neither read nor written.",
    Reason.UNDER_MIN_ISR: "Partitions have fewer in-sync replicas than min.insync.replicas: acks=all is refused.",
    Reason.AT_MIN_ISR: "Partitions are at min.insync.replicas: losing one more broker stops acks=all writes.",
    Reason.UNDER_REPLICATED: "Partitions have replicas out of sync, and more in sync than min.insync.replicas.",
    Reason.BROKER_DEMOTED: "Brokers are demoted, and every partition has the intended replica order and leader.",
    Reason.UP_TO_DATE: "Everything is as intended.",
    Reason.LEADERS_MOVING: "Leaders are being moved.",
    Reason.MOVES_BLOCKED: "Some moves are blocked; status.blockedByReason counts them by reason.",
    Reason.NOT_ENFORCING: "The policy is suspended or in Observe mode: it reports and moves nothing.",
    Reason.NOT_LEADER: "Another operator process holds the Lease of this Kafka cluster.",
    Reason.CLUSTER_UNREACHABLE: "No bootstrap server gave a usable answer.",
    Reason.CREDENTIALS_UNUSABLE: "A referenced Secret is missing or invalid, or Kafka rejected the credentials.",
    Reason.ACL_MISSING: "Kafka authenticated the user and refused a request; the message names the ACL to grant.",
    Reason.STRIMZI_REFERENCE_INVALID: (
        "The Kafka resource, listener or KafkaUser is missing, unsuitable or not shared with this namespace."
    ),
    Reason.STRIMZI_NOT_READY: "Strimzi has not published the listener's address or the user's Secret yet.",
    Reason.CLUSTER_CHANGED: "The bootstrap servers lead to another Kafka cluster than the policy is pinned to.",
    Reason.CLUSTER_CLAIMED: "Another policy already manages this Kafka cluster.",
    Reason.INVALID_POLICY: "The policy is invalid; the message names the field and the remedy.",
    Reason.RECORD_UNAVAILABLE: "The undo record cannot be read or written, so nothing new starts.",
    Reason.UNINSTALLING: "Bellwether is being uninstalled: orders are restored or exported; reconciling has stopped.",
    Reason.CRD_OUTDATED: "The installed CRDs are older than the operator, so status is incomplete.",
}
"""Description of each reason, one sentence each."""


def reason_named(name: str) -> Reason:
    """The reason of that name; OTHER_VERSION for a stored name that this version does not know."""
    return Reason(name) if name in set(Reason) else Reason.OTHER_VERSION

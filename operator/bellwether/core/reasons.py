"""All reasons with their descriptions: the one table that conditions, events, metrics, the CLI and the docs use.

A reason is chosen where the decision is made, and is passed on unchanged.
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
    STILL_UNFENCED = "StillUnfenced"
    UNANSWERING = "Unanswering"
    UNCONFIRMED = "Unconfirmed"
    VANTAGES_DISAGREE = "VantagesDisagree"
    DISPUTED = "Disputed"
    STARTING = "Starting"
    LEAVING = "Leaving"
    NOBODY_CONNECTS = "NobodyConnects"
    CLUSTER_WIDE_SLOW = "ClusterWideSlow"
    REPLICATION_LAGGING = "ReplicationLagging"
    PROMETHEUS_RULE = "PrometheusRule"
    ALERT_FIRING = "AlertFiring"
    PLUGIN_FAILING = "PluginFailing"
    NO_EVIDENCE = "NoEvidence"
    NOT_REGISTERED = "NotRegistered"
    IN_MAINTENANCE = "InMaintenance"
    FENCED = "Fenced"
    # Why a broker is, or is not, kept from leading
    OVERRIDE_DEMOTED = "OverrideDemoted"
    DWELLING = "Dwelling"
    COMMANDED = "Commanded"
    RESTARTING = "Restarting"
    HANDING_BACK = "HandingBack"
    LAST_HEALTHY_BROKER = "LastHealthyBroker"
    NO_LEADER_LEFT = "NoLeaderLeft"
    OVERRIDE_ENDED = "OverrideEnded"
    PODS_UNKNOWN = "PodsUnknown"
    # Whether a broker may be stopped
    DRAINING = "Draining"
    DRAINED = "Drained"
    CAP_REACHED = "CapReached"
    SYSTEMIC_CAUSE = "SystemicCause"
    PROMOTION_MANUAL = "PromotionManual"
    STRIMZI_PAUSED = "StrimziPaused"
    STRIMZI_REBALANCING = "StrimziRebalancing"
    OTHERS_REBALANCING = "OthersRebalancing"
    LEADING_ALLOWED = "LeadingAllowed"
    RETURNING_IN_WAVES = "ReturningInWaves"
    UNKNOWN_BROKER = "UnknownBroker"
    OTHER_VERSION = "OtherVersion"
    # Why a partition's move is held back
    ONLY_REPLICA = "OnlyReplica"
    NO_HEALTHY_ISR_MEMBER = "NoHealthyIsrMember"
    ALL_REPLICAS_DEMOTED = "AllReplicasDemoted"
    CAPACITY_REACHED = "CapacityReached"
    LOADS_UNKNOWN = "LoadsUnknown"
    RACK_NOT_PREFERRED = "RackNotPreferred"
    PREFERRED_NOT_IN_ISR = "PreferredNotInIsr"
    REASSIGNING = "Reassigning"
    CONTESTED = "Contested"
    TOPIC_GONE = "TopicGone"
    TOPIC_RECREATED = "TopicRecreated"
    REPLICA_SET_CHANGED = "ReplicaSetChanged"
    ORDER_CHANGED = "OrderChanged"
    REORDER_REFUSED = "ReorderRefused"
    NOT_APPLIED = "NotApplied"
    ELECTION_REFUSED = "ElectionRefused"
    TARGET_UNWELL = "TargetUnwell"
    PASSED_BY = "PassedBy"
    # Whether a broker holds acks=all back
    FOLLOWING_FAST = "FollowingFast"
    AWAITED_BY_NOBODY = "AwaitedByNobody"
    # Whether a broker is quarantined, and if not, why
    QUARANTINE_ORDERED = "QuarantineOrdered"
    QUARANTINED = "Quarantined"
    QUARANTINE_WITHDRAWN = "QuarantineWithdrawn"
    QUARANTINE_LIMIT = "QuarantineLimit"
    QUARANTINE_RESTS = "QuarantineRests"
    QUARANTINE_DWELLS = "QuarantineDwells"
    ANOTHER_QUARANTINED = "AnotherQuarantined"
    DISK_RECOVERED = "DiskRecovered"
    DISK_UNSEEN = "DiskUnseen"
    NO_WARDEN = "NoWarden"
    WARDEN_RELEASED = "WardenReleased"
    STILL_LEADS = "StillLeads"
    KEEPS_PACE = "KeepsPace"
    ISR_TOO_SMALL = "IsrTooSmall"
    ACTIVE_CONTROLLER = "ActiveController"
    QUORUM_TOO_SMALL = "QuorumTooSmall"
    OTHER_BROKER_UNWELL = "OtherBrokerUnwell"
    MARGINS_UNKNOWN = "MarginsUnknown"
    # Whether the racks that a policy prefers are there, and lead
    PLACEMENT_FITS = "PlacementFits"
    RACK_WITHOUT_BROKERS = "RackWithoutBrokers"
    PATTERN_WITHOUT_TOPICS = "PatternWithoutTopics"
    PATTERN_MATCHES_ALL = "PatternMatchesAll"
    RULE_OVERSHADOWED = "RuleOvershadowed"
    PREFERRED_RACKS_LEAD = "PreferredRacksLead"
    OTHER_RACKS_LEAD = "OtherRacksLead"
    # Why a run stopped
    REPLICA_SET_TOUCHED = "ReplicaSetTouched"
    LEASE_TOO_SHORT = "LeaseTooShort"
    NO_ANSWER = "NoAnswer"
    REQUEST_REFUSED = "RequestRefused"
    # How a rebalance by load stands
    NOTHING_PLANNED = "NothingPlanned"
    PLANNING = "Planning"
    PLAN_PROPOSED = "PlanProposed"
    OTHER_PLAN_APPROVED = "OtherPlanApproved"
    PLAN_APPROVED = "PlanApproved"
    NOT_WORTHWHILE = "NotWorthwhile"
    JOB_FAILED = "JobFailed"
    PLAN_REFUSED = "PlanRefused"
    STORE_UNAVAILABLE = "StoreUnavailable"
    APPLYING = "Applying"
    NEXT_WAVE_WAITS = "NextWaveWaits"
    WAVE_UNFINISHED = "WaveUnfinished"
    SIGNALS_WORSENED = "SignalsWorsened"
    PLAN_OUTDATED = "PlanOutdated"
    PLAN_EXPIRED = "PlanExpired"
    PLAN_SUPERSEDED = "PlanSuperseded"
    PLAN_APPLIED = "PlanApplied"
    # Why a policy is, or is not, ready
    SETTLED = "Settled"
    MOVING = "Moving"
    HELD = "Held"
    OBSERVING = "Observing"
    SUSPENDED = "Suspended"
    STANDING_BY = "StandingBy"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    CREDENTIALS_UNUSABLE = "CredentialsUnusable"
    ACL_MISSING = "AclMissing"
    STRIMZI_CLUSTER_MISSING = "StrimziClusterMissing"
    STRIMZI_NOT_SHARED = "StrimziNotShared"
    STRIMZI_NOT_READY = "StrimziNotReady"
    STRIMZI_LISTENER_UNFIT = "StrimziListenerUnfit"
    STRIMZI_USER_UNFIT = "StrimziUserUnfit"
    CLUSTER_CHANGED = "ClusterChanged"
    CLUSTER_CLAIMED = "ClusterClaimed"
    CLUSTER_EMPTY = "ClusterEmpty"
    INVALID_POLICY = "InvalidPolicy"
    RECORD_UNAVAILABLE = "RecordUnavailable"
    WITHDRAWN = "Withdrawn"
    DEFINITION_OUTDATED = "DefinitionOutdated"


DESCRIPTIONS: dict[Reason, str] = {
    Reason.SIGNALS_PASSING: "Every signal of the broker passes.",
    Reason.STABILIZING: "Every signal passes again; the broker must stay well for the stabilization time.",
    Reason.EXTERNALLY_UNREACHABLE: "A quorum of vantages cannot reach its external listener; the internal one answers.",
    Reason.STORAGE_SLOW: "The broker's log directory answers slower than the threshold.",
    Reason.STILL_UNFENCED: "The broker answers nobody, and Kafka has not fenced it within its session timeout.",
    Reason.UNANSWERING: "Neither listener answers; Kafka's own fencing is given its session timeout.",
    Reason.UNCONFIRMED: "The external listener fails and no vantage can ask the internal one to confirm it.",
    Reason.VANTAGES_DISAGREE: "Some vantages fail to reach the broker, fewer than the quorum.",
    Reason.DISPUTED: "A quorum of vantages cannot reach the broker, and another vantage still can.",
    Reason.LEAVING: "The broker answers inside and is in no ISR, as when it shuts down: it has nothing to hand over.",
    Reason.STARTING: "The broker has restarted and answers inside; the load balancer is given time to find it.",
    Reason.NOBODY_CONNECTS: "By its own socket table nobody outside talks to it, while its peers are talked to.",
    Reason.CLUSTER_WIDE_SLOW: "The broker's disk is slow, and so are its peers': the cause is elsewhere.",
    Reason.REPLICATION_LAGGING: "The broker's log trails its leaders' for longer than the threshold.",
    Reason.PROMETHEUS_RULE: "A Prometheus rule of the policy finds the broker beyond its threshold.",
    Reason.ALERT_FIRING: "An alert that the policy names fires for the broker.",
    Reason.PLUGIN_FAILING: "A kind of signal that was plugged in finds the broker failing.",
    Reason.NO_EVIDENCE: "There is no fresh evidence from enough sources; nothing moves on it.",
    Reason.NOT_REGISTERED: "Replica lists name the broker and it is not registered with the controller.",
    Reason.IN_MAINTENANCE: "A person has the broker in maintenance: it is drained, and its signals demote nobody.",
    Reason.FENCED: "The controller has fenced the broker: it missed its heartbeats and leads nothing.",
    Reason.OVERRIDE_DEMOTED: "A person asked for the broker to be demoted.",
    Reason.DWELLING: "The broker has turned sick just now; a moment is left for other brokers' signals to come in.",
    Reason.COMMANDED: "A person demoted the broker from the command line.",
    Reason.RESTARTING: "The broker's pod is terminating or not ready: it is drained, and its signals demote nobody.",
    Reason.HANDING_BACK: "The broker's maintenance is over; its leaders come back once it is well.",
    Reason.LAST_HEALTHY_BROKER: "No other broker is well and free to lead, so this one is not drained.",
    Reason.NO_LEADER_LEFT: "Partitions would be left without a leader if the broker stopped, so it is not drained.",
    Reason.OVERRIDE_ENDED: "The override's time is over: it has no effect, and stands until it is taken away.",
    Reason.PODS_UNKNOWN: "The brokers' pods cannot be seen, so nobody's restart is taken for one.",
    Reason.DRAINING: "The broker is to lead nothing, and still leads or is about to be moved behind.",
    Reason.DRAINED: "The broker leads nothing and stands first in no replica order: it may be stopped.",
    Reason.CAP_REACHED: "As many brokers as the policy's cap allows cannot lead already.",
    Reason.SYSTEMIC_CAUSE: "Half of the brokers or more cannot lead or are sick: the cause is elsewhere.",
    Reason.PROMOTION_MANUAL: "The broker is well again and the policy leaves its promotion to a person.",
    Reason.STRIMZI_PAUSED: "The reconciliation of the Strimzi cluster is paused: what can wait waits.",
    Reason.STRIMZI_REBALANCING: "A KafkaRebalance of the Strimzi cluster is running: what can wait waits.",
    Reason.OTHERS_REBALANCING: "Somebody else moves replicas in bulk, as Cruise Control does: what can wait waits.",
    Reason.LEADING_ALLOWED: "Nothing keeps the broker from leading.",
    Reason.RETURNING_IN_WAVES: "The broker gets its leaders back in waves; others lead what a later wave returns.",
    Reason.UNKNOWN_BROKER: "No broker with this id is registered and no replica list names it.",
    Reason.OTHER_VERSION: "Another version of Bellwether gave a reason that this one does not know.",
    Reason.ONLY_REPLICA: "The demoted broker holds the partition's only replica.",
    Reason.NO_HEALTHY_ISR_MEMBER: "No healthy, live member of the ISR is left to lead: availability first.",
    Reason.ALL_REPLICAS_DEMOTED: "Every replica of the partition is on a demoted broker.",
    Reason.CAPACITY_REACHED: "Whoever could lead it instead leads as much as the policy lets a broker carry.",
    Reason.LOADS_UNKNOWN: "What leading it costs is not known yet, and the policy limits brokers by load.",
    Reason.RACK_NOT_PREFERRED: "The broker that a load plan wants to lead it is in a rack that is less preferred.",
    Reason.PREFERRED_NOT_IN_ISR: "The preferred leader is not in the ISR, so Kafka would refuse the election.",
    Reason.REASSIGNING: "Replicas of the partition are being added or removed; it is left alone until that ends.",
    Reason.CONTESTED: "Somebody else keeps overwriting our order; re-assertion backs off.",
    Reason.TOPIC_GONE: "The topic was deleted between the check and the plan.",
    Reason.TOPIC_RECREATED: "Another topic has taken the name since the plan was made.",
    Reason.REPLICA_SET_CHANGED: "The partition's replicas changed since the plan was made.",
    Reason.ORDER_CHANGED: "Somebody else changed the replica order since the plan was made.",
    Reason.REORDER_REFUSED: "Kafka refused the new replica order.",
    Reason.NOT_APPLIED: "Kafka accepted the new order and a later read does not show it yet.",
    Reason.ELECTION_REFUSED: "Kafka refused the election.",
    Reason.TARGET_UNWELL: "The broker that a load plan wants to lead it is demoted, not well or gone.",
    Reason.PASSED_BY: "It could not move in its wave, or its old order was put back since; the next load plan may.",
    Reason.FOLLOWING_FAST: "Nothing shows that the broker follows slowly.",
    Reason.AWAITED_BY_NOBODY: "The broker follows slowly, and no other leader waits for it.",
    Reason.QUARANTINE_ORDERED: "The agent beside the broker is told to pause it, and has not said yet that it did.",
    Reason.QUARANTINED: "The broker's process is paused, so that acks=all does not wait for its slow disk.",
    Reason.QUARANTINE_WITHDRAWN: "The policy no longer asks for a quarantine, or the broker may lead again.",
    Reason.QUARANTINE_LIMIT: "The broker was paused for as long as the policy allows, and its disk is still slow.",
    Reason.QUARANTINE_RESTS: "The last quarantine ended early; the broker is left running for as long as one may last.",
    Reason.QUARANTINE_DWELLS: "The broker was demoted just now; demotion is given time to help.",
    Reason.ANOTHER_QUARANTINED: "Another broker is, or may still be, paused: one at a time.",
    Reason.DISK_RECOVERED: "The prober on the broker's disk finds it fast again.",
    Reason.DISK_UNSEEN: "No prober on the broker's disk reports, so its recovery could not be seen.",
    Reason.NO_WARDEN: "No agent beside the broker reports, or it cannot pause the broker; the message says which.",
    Reason.WARDEN_RELEASED: "The agent beside the broker released it of its own accord; the message says why.",
    Reason.STILL_LEADS: "The broker leads partitions still, and a pause would make them unavailable.",
    Reason.KEEPS_PACE: "The broker's disk is slow, and its log keeps pace with its leaders': nothing waits for it.",
    Reason.ISR_TOO_SMALL: "Without the broker a partition would have too few in-sync replicas to lose another.",
    Reason.ACTIVE_CONTROLLER: "The broker is the active controller: a pause would leave the cluster without one.",
    Reason.QUORUM_TOO_SMALL: "Without the broker the controllers' quorum would have no voter to spare.",
    Reason.OTHER_BROKER_UNWELL: "Another broker is down, silent or not well: a pause would be a second loss.",
    Reason.MARGINS_UNKNOWN: "What the cluster could still lose cannot be read; the message names the remedy.",
    Reason.PLACEMENT_FITS: "Every rack that the policy prefers has brokers, and every rule has topics of its own.",
    Reason.RACK_WITHOUT_BROKERS: "No broker is in a rack that the policy prefers.",
    Reason.PATTERN_WITHOUT_TOPICS: "No topic matches the pattern of a placement rule.",
    Reason.PATTERN_MATCHES_ALL: "The pattern of a placement rule matches every topic.",
    Reason.RULE_OVERSHADOWED: "Earlier placement rules take every topic that a later one matches.",
    Reason.PREFERRED_RACKS_LEAD: "Every partition is led from the most preferred rack that holds a replica of it.",
    Reason.OTHER_RACKS_LEAD: "Partitions are led from a less preferred rack than one that holds a replica of them.",
    Reason.REPLICA_SET_TOUCHED: "A replica set changed around our reorder; the run stopped and undid what it could.",
    Reason.LEASE_TOO_SHORT: "The time left on the Lease does not cover another request.",
    Reason.NO_ANSWER: "Kafka did not answer in time; the request may still be carried out, and the next turn looks.",
    Reason.REQUEST_REFUSED: "Kafka refused the request as a whole; the message names the remedy.",
    Reason.NOTHING_PLANNED: "No load plan has been asked for yet.",
    Reason.PLANNING: "A job measures loads and makes a plan.",
    Reason.PLAN_PROPOSED: "A load plan waits for approval by its digest.",
    Reason.OTHER_PLAN_APPROVED: "The approval names another plan's digest and approves nothing here.",
    Reason.PLAN_APPROVED: "The load plan is approved; its first wave is still to come.",
    Reason.NOT_WORTHWHILE: "The load plan would improve less than the policy asks for, so it is not proposed.",
    Reason.JOB_FAILED: "The job that makes the load plan failed; the next one is made when it is due.",
    Reason.PLAN_REFUSED: "The load plan does not stand the recheck of its orders, figures and certificate.",
    Reason.STORE_UNAVAILABLE: "The store of loads and plans cannot be read or written.",
    Reason.APPLYING: "The orders of the approved load plan become baselines, wave by wave.",
    Reason.NEXT_WAVE_WAITS: "The next wave of the load plan comes after the policy's pause.",
    Reason.WAVE_UNFINISHED: "The next wave of the load plan waits until what was begun before stands.",
    Reason.SIGNALS_WORSENED: "A broker is demoted or not well that was when the load plan was made: no further wave.",
    Reason.PLAN_OUTDATED: "Too much of what the load plan wants to move has changed since it was made.",
    Reason.PLAN_EXPIRED: "The load plan is older than the policy allows; it is neither begun nor gone on with.",
    Reason.PLAN_SUPERSEDED: "Another load plan has been asked for in its place.",
    Reason.PLAN_APPLIED: "Every partition of the load plan has its order, but for those that are named.",
    Reason.SETTLED: "Every partition has the order and the leader that it should have.",
    Reason.MOVING: "Leadership is moving.",
    Reason.HELD: "Some moves are held back; the reasons are counted in status.",
    Reason.OBSERVING: "The policy observes: it judges, plans, and changes nothing.",
    Reason.SUSPENDED: "The policy is suspended: it neither moves nor restores.",
    Reason.STANDING_BY: "Another operator process holds the Lease of this Kafka cluster.",
    Reason.CLUSTER_UNREACHABLE: "No bootstrap server gave a usable answer.",
    Reason.CREDENTIALS_UNUSABLE: "A Secret is missing or cannot be used, or who we are is not believed.",
    Reason.ACL_MISSING: "Kafka knows the user and refuses a request; the message names the ACL to grant.",
    Reason.STRIMZI_CLUSTER_MISSING: "The Kafka resource that the policy names, or Strimzi itself, is not there.",
    Reason.STRIMZI_NOT_SHARED: "The Kafka resource is in another namespace and does not admit the policy's own.",
    Reason.STRIMZI_NOT_READY: "Strimzi has not published yet how its cluster is reached, or the user's credentials.",
    Reason.STRIMZI_LISTENER_UNFIT: "No listener of the Strimzi cluster is of the name or the kind that is wanted.",
    Reason.STRIMZI_USER_UNFIT: "The KafkaUser that the policy connects as is missing, or cannot be used.",
    Reason.CLUSTER_CHANGED: "The bootstrap servers lead to another Kafka cluster than the policy is pinned to.",
    Reason.CLUSTER_CLAIMED: "Another policy already manages this Kafka cluster.",
    Reason.CLUSTER_EMPTY: "The Kafka cluster has no partitions yet.",
    Reason.INVALID_POLICY: "The policy cannot be understood; the message names the field and the remedy.",
    Reason.RECORD_UNAVAILABLE: "The undo record cannot be read or written, so nothing new starts.",
    Reason.WITHDRAWN: "Bellwether is being uninstalled: orders were put back or exported, and no turn is taken.",
    Reason.DEFINITION_OUTDATED: "The served definitions are of an older version, so status is incomplete.",
}
"""Description of each reason, one sentence each."""


def reason_named(name: str) -> Reason:
    """The reason of that name; OTHER_VERSION for a stored name that this version does not know."""
    return Reason(name) if name in set(Reason) else Reason.OTHER_VERSION

"""Cases of ``brokers.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

ONE = of_policy(broker="1")


def verdict(name: str, broker: str = "1", instance: str = "operator-a") -> str:
    return series("broker_verdict", broker=broker, verdict=name, instance=instance)


def noted(name: str, instance: str = "operator-a", **labels: str) -> str:
    return series(name, broker="1", instance=instance, **labels)


def quarantined(**values: str) -> dict[str, str]:
    """What the operator tells of broker 1: ``held``, ``ordered``, and the times ``since`` and ``until``."""
    moments = ("since", "until")
    names = {name: f"{name}_timestamp_seconds" if name in moments else name for name in values}
    return {noted(f"broker_quarantine_{names[name]}"): found for name, found in values.items()}


def holding() -> str:
    """What the quarantine agent next to broker 1 tells: 0 while it holds it."""
    return series("probe_reading", broker="1", type="Quarantine", source="broker-1", instance="agent")


CASES = (
    Case(
        "BellwetherBrokerDown",
        "for six minutes",
        "6m",
        {series("broker_verdict", broker="2", verdict="Down"): "0x2 1x40"},
        (of_policy(broker="2"),),
    ),
    Case(
        "BellwetherBrokerDown",
        "restarted in maintenance, or for four minutes",
        "10m",
        {
            series("broker_verdict", broker="2", verdict="Down"): "1x60",
            series("broker_verdict_reason", broker="2", reason="InMaintenance"): "1x60",
            series("broker_verdict", broker="3", verdict="Down"): "1x16 0x60",
        },
    ),
    Case(
        "BellwetherBrokerDown",
        "brokers of two Kubernetes clusters with the same names",
        "6m",
        {
            series("broker_verdict", broker="2", verdict="Down", cluster="east"): "1x40",
            series("broker_verdict_reason", broker="2", reason="InMaintenance", cluster="west"): "1x40",
        },
        (of_policy(broker="2", cluster="east"),),
    ),
    Case(
        "BellwetherBrokerSick",
        "sick for a minute",
        "2m",
        {
            verdict("Sick"): "0x2 1x20",
            noted("broker_verdict_reason", reason="ExternallyUnreachable", cause="Refused"): "1x20",
        },
        (ONE,),
    ),
    Case(
        "BellwetherBrokerSick",
        "still sick after another operator has taken over",
        "4m",
        {verdict("Sick"): "1x3 stale", verdict("Sick", instance="operator-b"): "_x5 1x20"},
        (ONE,),
    ),
    Case(
        "BellwetherBrokerSick",
        "a rolling restart: down, then well",
        "5m",
        {verdict("Down"): "0x2 1x8 0x20", verdict("Sick"): "0x40", verdict("Healthy"): "1x2 0x8 1x20"},
    ),
    Case("BellwetherBrokerSick", "sick for half a minute", "2m", {verdict("Sick"): "0x2 1x2 0x20"}),
    Case(
        "BellwetherSickBrokerLeading",
        "no one moves its leaders away",
        "4m",
        {verdict("Sick"): "1x20", noted("broker_leaders"): "12x20"},
        (ONE,),
    ),
    Case(
        "BellwetherSickBrokerLeading",
        "its leaders have left it, and another broker's have not",
        "4m",
        {
            verdict("Sick"): "1x20",
            noted("broker_leaders"): "12x2 0x20",
            verdict("Sick", "2"): "0x20",
            series("broker_leaders", broker="2"): "24x20",
        },
    ),
    Case("BellwetherBrokerDemoted", "for half an hour", "31m", {noted("broker_demoted"): "1x130"}, (ONE,)),
    Case("BellwetherBrokerDemoted", "well again after twenty minutes", "31m", {noted("broker_demoted"): "1x80 0x60"}),
    Case(
        "BellwetherBrokerDemotedRepeatedly",
        "demoted for ten minutes in each hour, by an operator and by the next one",
        "190m",
        {
            noted("broker_demoted"): "1x40 0x200 1x40 0x200 1x2 stale",
            noted("broker_demoted", "operator-b"): "_x482 1x38 0x300",
        },
        (ONE,),
    ),
    Case(
        "BellwetherBrokerDemotedRepeatedly",
        "twice in an hour, and then well",
        "190m",
        {noted("broker_demoted"): "1x40 0x80 1x40 0x700"},
    ),
    Case(
        "BellwetherBrokerDemotedTooLong",
        "for 25 hours",
        "6m",
        {noted("broker_demoted_since_timestamp_seconds"): "-90000x30"},
        (ONE,),
    ),
    Case(
        "BellwetherBrokerDemotedTooLong",
        "for 25 hours, by an operator that has just taken over",
        "9m",
        {
            noted("broker_demoted_since_timestamp_seconds"): "-90000x3 stale",
            noted("broker_demoted_since_timestamp_seconds", "operator-b"): "_x6 -90000x30",
        },
        (ONE,),
    ),
    Case(
        "BellwetherBrokerDemotedTooLong",
        "for an hour",
        "6m",
        {noted("broker_demoted_since_timestamp_seconds"): "-3600x30"},
    ),
    Case(
        "BellwetherBrokerActionBlocked",
        "by the cap",
        "3m",
        {noted("broker_action_blocked", reason="CapReached"): "1x20", verdict("Sick"): "1x20"},
        (of_policy(broker="1", reason="CapReached"),),
    ),
    Case(
        "BellwetherBrokerActionBlocked",
        "by the cap, briefly",
        "3m",
        {noted("broker_action_blocked", reason="CapReached"): "1x4 stale", verdict("Sick"): "1x20"},
    ),
    Case(
        "BellwetherBrokerActionBlocked",
        "well again, and promoted once a reassignment has ended",
        "3m",
        {noted("broker_action_blocked", reason="ExternalOperation"): "1x20", verdict("Sick"): "0x20"},
    ),
    Case(
        "BellwetherBrokerActionBlocked",
        "its promotion is a person's, and the cause is elsewhere: other alerts tell",
        "3m",
        {
            noted("broker_action_blocked", reason="PromotionManual"): "1x20",
            noted("broker_action_blocked", reason="SystemicCause"): "1x20",
            verdict("Sick"): "1x20",
        },
    ),
    Case(
        "BellwetherPromotionPending",
        "for an hour",
        "62m",
        {noted("broker_action_blocked", reason="PromotionManual"): "1x300"},
        (ONE,),
    ),
    Case(
        "BellwetherPromotionPending",
        "a person acted after half an hour",
        "62m",
        {noted("broker_action_blocked", reason="PromotionManual"): "1x120 stale"},
    ),
    Case(
        "BellwetherBrokenLink",
        "it and another do not reach each other",
        "2m",
        {noted("broker_broken_links"): "1x20", verdict("Sick"): "0x20"},
        (ONE,),
    ),
    Case(
        "BellwetherBrokenLink",
        "for half a minute",
        "2m",
        {noted("broker_broken_links"): "1x2 0x20"},
    ),
    Case(
        "BellwetherSystemicCause",
        "two of three are sick",
        "2m",
        {
            noted("broker_action_blocked", reason="SystemicCause"): "1x20",
            series("broker_action_blocked", broker="2", reason="SystemicCause"): "1x20",
            verdict("Sick"): "1x20",
            verdict("Sick", "2"): "1x20",
        },
        (of_policy(),),
    ),
    Case(
        "BellwetherSystemicCause",
        "half of the pods restart",
        "2m",
        {noted("broker_action_blocked", reason="SystemicCause"): "1x20", verdict("Sick"): "0x20"},
    ),
    Case(
        "BellwetherSystemicCause",
        "one is held by the cap",
        "2m",
        {noted("broker_action_blocked", reason="CapReached"): "1x20", verdict("Sick"): "1x20"},
    ),
    Case(
        "BellwetherDemotionIneffective",
        "demoted, and acks=all waits for it",
        "6m",
        {noted("broker_demoted"): "1x30", noted("broker_holds_back_isr"): "1x30"},
        (ONE,),
    ),
    Case(
        "BellwetherDemotionIneffective",
        "demoted for a load balancer's fault: it follows well",
        "6m",
        {noted("broker_demoted"): "1x30", noted("broker_holds_back_isr"): "0x30"},
    ),
    Case(
        "BellwetherDemotionIneffective",
        "it follows slowly after a restart and is not demoted",
        "6m",
        {noted("broker_demoted"): "0x30", noted("broker_holds_back_isr"): "1x30"},
    ),
    *(
        Case(
            "BellwetherQuarantineExpiring",
            f"held from the start for 600 s at most: {what}",
            at,
            quarantined(held="1x60", since="0x60", until="600x60"),
            (ONE,) if fires else (),
        )
        for what, at, fires in (("seven minutes", "7m", False), ("nine", "9m", True), ("eleven", "11m", True))
    ),
    Case(
        "BellwetherQuarantineExpiring",
        "an order without a hold is not obeyed, which another alert tells",
        "9m",
        quarantined(held="0x60", since="0x60", until="600x60"),
    ),
    Case(
        "BellwetherQuarantineExpiring",
        "released at its limit and still demoted, after another operator has taken over",
        "12m",
        {
            noted("broker_quarantine_ended", reason="QuarantineLimit"): "_x40 1x4 stale",
            noted("broker_quarantine_ended", "operator-b", reason="QuarantineLimit"): "_x46 1x40",
            noted("broker_demoted", "operator-b"): "1x90",
        },
        (ONE,),
    ),
    Case(
        "BellwetherQuarantineExpiring",
        "released at its limit, and well and leading since",
        "12m",
        {noted("broker_quarantine_ended", reason="QuarantineLimit"): "1x90", noted("broker_demoted"): "1x40 0x50"},
    ),
    Case(
        "BellwetherQuarantineExpiring",
        "released as its disk was fast again, close to the limit",
        "10m",
        {
            **quarantined(held="1x30 0x60", since="0x30 stale", until="600x30 stale"),
            noted("broker_quarantine_ended", reason="QuarantineEnded"): "_x31 1x60",
            noted("broker_demoted"): "1x90",
        },
    ),
    Case(
        "BellwetherQuarantineNotApplied",
        "its quarantine agent did nothing for 30 s",
        "2m",
        {noted("broker_quarantine_ended", reason="AgentUnavailable"): "_x2 1x20", noted("broker_demoted"): "1x20"},
        (ONE,),
    ),
    Case(
        "BellwetherQuarantineNotApplied",
        "its quarantine agent fell silent, and it has been promoted since",
        "2m",
        {noted("broker_quarantine_ended", reason="AgentUnavailable"): "1x20", noted("broker_demoted"): "1x4 0x20"},
    ),
    Case(
        "BellwetherQuarantineNotApplied",
        "another broker became sick, which ends a quarantine as it should",
        "2m",
        {noted("broker_quarantine_ended", reason="AnotherBrokerUnhealthy"): "1x20", noted("broker_demoted"): "1x20"},
    ),
    Case(
        "BellwetherBrokerHeldWithoutOrder",
        "its order has ended and its quarantine agent says on that it is held",
        "4m",
        quarantined(held="1x30", ordered="1x4 0x30"),
        (ONE,),
    ),
    Case(
        "BellwetherBrokerHeldWithoutOrder",
        "the operator is gone, and the quarantine agent itself tells",
        "4m",
        {holding(): "0x30", **quarantined(held="1x4 stale", ordered="1x4 stale")},
        (ONE,),
    ),
    Case(
        "BellwetherBrokerHeldWithoutOrder",
        "as ordered",
        "4m",
        {holding(): "1x4 0x30", **quarantined(held="0x4 1x30", ordered="0x4 1x30")},
    ),
    Case(
        "BellwetherBrokerHeldWithoutOrder",
        "released half a minute after its order ended",
        "4m",
        {holding(): "0x10 1x30", **quarantined(held="1x10 0x30", ordered="1x8 0x30")},
    ),
    Case(
        "BellwetherBrokerHeldWithoutOrder",
        "a slow disk, of which another prober tells",
        "4m",
        {series("probe_reading", broker="1", type="StorageLatency", source="broker-1"): "0x30"},
    ),
)

"""Cases of ``brokers.yaml``."""

from __future__ import annotations

from testkit.alertcases.cases import Case, of_policy, series

ONE = of_policy(broker="1")


def verdict(name: str, broker: str = "1", instance: str = "operator-a") -> str:
    return series("broker_verdict", broker=broker, verdict=name, instance=instance)


def told(name: str, instance: str = "operator-a", **labels: str) -> str:
    return series(name, broker="1", instance=instance, **labels)


CASES = (
    Case("BellwetherBrokerSick", "sick for a minute", "2m", {verdict("Sick"): "0x2 1x20"}, (ONE,)),
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
        "BellwetherSickBrokerLeads",
        "nobody moves its leaders away",
        "4m",
        {verdict("Sick"): "1x20", told("broker_leaders"): "12x20"},
        (ONE,),
    ),
    Case(
        "BellwetherSickBrokerLeads",
        "its leaders have left it, and another broker's have not",
        "4m",
        {
            verdict("Sick"): "1x20",
            told("broker_leaders"): "12x2 0x20",
            verdict("Sick", "2"): "0x20",
            series("broker_leaders", broker="2"): "24x20",
        },
    ),
    Case("BellwetherBrokerDemoted", "for five minutes", "6m", {told("broker_demoted"): "1x30"}, (ONE,)),
    Case("BellwetherBrokerDemoted", "well again after two", "6m", {told("broker_demoted"): "1x8 0x30"}),
    Case(
        "BellwetherBrokerLongDemoted",
        "for 25 hours",
        "6m",
        {told("broker_demoted_since_timestamp_seconds"): "-90000x30"},
        (ONE,),
    ),
    Case(
        "BellwetherBrokerLongDemoted",
        "for 25 hours, by an operator that has just taken over",
        "9m",
        {
            told("broker_demoted_since_timestamp_seconds"): "-90000x3 stale",
            told("broker_demoted_since_timestamp_seconds", "operator-b"): "_x6 -90000x30",
        },
        (ONE,),
    ),
    Case(
        "BellwetherBrokerLongDemoted",
        "for an hour",
        "6m",
        {told("broker_demoted_since_timestamp_seconds"): "-3600x30"},
    ),
    Case(
        "BellwetherBrokerHeld",
        "by the cap",
        "3m",
        {told("broker_held", reason="CapReached"): "1x20"},
        (of_policy(broker="1", reason="CapReached"),),
    ),
    Case("BellwetherBrokerHeld", "by the cap, briefly", "3m", {told("broker_held", reason="CapReached"): "1x4 stale"}),
    Case(
        "BellwetherBrokerHeld",
        "its promotion is a person's, and the cause is elsewhere: other alerts tell",
        "3m",
        {told("broker_held", reason="PromotionManual"): "1x20", told("broker_held", reason="SystemicCause"): "1x20"},
    ),
    Case(
        "BellwetherPromotionWaits",
        "for an hour",
        "62m",
        {told("broker_held", reason="PromotionManual"): "1x300"},
        (ONE,),
    ),
    Case(
        "BellwetherPromotionWaits",
        "somebody came after half an hour",
        "62m",
        {told("broker_held", reason="PromotionManual"): "1x120 stale"},
    ),
    Case(
        "BellwetherSystemicCause",
        "two of three are sick",
        "2m",
        {
            told("broker_held", reason="SystemicCause"): "1x20",
            series("broker_held", broker="2", reason="SystemicCause"): "1x20",
        },
        (of_policy(),),
    ),
    Case("BellwetherSystemicCause", "one is held by the cap", "2m", {told("broker_held", reason="CapReached"): "1x20"}),
    Case(
        "BellwetherDemotionDoesNotHelp",
        "demoted, and acks=all waits for it",
        "3m",
        {told("broker_demoted"): "1x20", told("broker_holds_back_isr"): "1x20"},
        (ONE,),
    ),
    Case(
        "BellwetherDemotionDoesNotHelp",
        "demoted for a load balancer's fault: it follows well",
        "3m",
        {told("broker_demoted"): "1x20", told("broker_holds_back_isr"): "0x20"},
    ),
    Case(
        "BellwetherDemotionDoesNotHelp",
        "it follows slowly after a restart and is not demoted",
        "3m",
        {told("broker_demoted"): "0x20", told("broker_holds_back_isr"): "1x20"},
    ),
)

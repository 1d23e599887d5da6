"""Cases of ``probers.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

REACH = "ExternalReachability"
ZONE_A = of_policy(source="zone-a")


def age(source: str, kind: str = REACH) -> str:
    return series("signal_age_seconds", type=kind, source=source, instance="operator-a")


def reading(broker: str, source: str = "zone-a") -> str:
    return series("probe_reading", type=REACH, source=source, broker=broker)


def reports(result: str) -> str:
    return series("probe_reports_total", type=REACH, source="zone-a", result=result)


CASES = (
    Case(
        "BellwetherProberDown",
        "one that spoke, and one that never did",
        "4m",
        {age("zone-a"): "3x2 90x20", age("broker-1", "StorageLatency"): "-1x20", age("zone-b"): "3x20"},
        (of_policy(source="zone-a", type=REACH), of_policy(source="broker-1", type="StorageLatency")),
    ),
    Case(
        "BellwetherProberDown",
        "a prober restarts: its new process is not believed at once",
        "4m",
        {age("zone-a"): "3x4 20 -1x2 2x20"},
    ),
    Case(
        "BellwetherProberDown",
        "an operator takes over, and knows no broker yet",
        "4m",
        {
            age("zone-a"): "3x4 stale",
            series("signal_age_seconds", type=REACH, source="zone-a", instance="operator-b"): "_x5 -1x2 3x20",
        },
    ),
    Case(
        "BellwetherVantageQuorumLost",
        "two of three are silent",
        "4m",
        {age("zone-a"): "90x20", age("zone-b"): "-1x20", age("zone-c"): "3x20"},
        (of_policy(),),
    ),
    Case(
        "BellwetherVantageQuorumLost",
        "one of three is, and a sidecar",
        "4m",
        {age("zone-a"): "90x20", age("zone-b"): "3x20", age("zone-c"): "3x20", age("b", "StorageLatency"): "90x20"},
    ),
    Case(
        "BellwetherVantageIsolated",
        "it reaches no one",
        "4m",
        {reading("1"): "0x20", reading("2"): "0x20", reading("1", "zone-b"): "1x20"},
        (ZONE_A,),
    ),
    Case(
        "BellwetherVantageIsolated",
        "one broker cannot be reached from anywhere",
        "4m",
        {reading("1"): "0x20", reading("2"): "1x20", reading("1", "zone-b"): "0x20", reading("2", "zone-b"): "1x20"},
    ),
    Case(
        "BellwetherSignalsStale",
        "three of a kind say nothing",
        "16m",
        {
            series("signals", type="ReplicationLag", state="stale"): "1x70",
            series("signals", type="ReplicationLag", state="unknown"): "2x70",
        },
        (of_policy(type="ReplicationLag"),),
    ),
    Case(
        "BellwetherSignalsStale",
        "a broker restarts and cannot be asked for five minutes",
        "16m",
        {
            series("signals", type="ReplicationLag", state="unknown"): "1x20 0x70",
            series("signals", type="ReplicationLag", state="passing"): "2x70",
        },
    ),
    Case(
        "BellwetherProberReportsFailing",
        "nothing is taken",
        "8m",
        {reports("failed"): "0+2x40", reports("ok"): "5x40"},
        (of_policy(source="zone-a", type=REACH),),
    ),
    Case(
        "BellwetherProberReportsFailing",
        "the API server was away for a minute, and nothing has changed since",
        "8m",
        {reports("failed"): "0x4 0+2x4 8x40", reports("ok"): "5x8 6x40"},
    ),
)

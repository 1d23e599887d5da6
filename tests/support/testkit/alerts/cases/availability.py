"""Cases of ``availability.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

FAST, SLOW = "BellwetherErrorBudgetBurnFast", "BellwetherErrorBudgetBurnSlow"
RATIO = 'namespace_policy:bellwether_unavailability:ratio_rate1m{namespace="kafka",policy="main"}'


def asks(broker: str, result: str, source: str = "zone-a") -> str:
    return series("probe_requests_total", broker=broker, path="external", source=source, result=result)


def leads(broker: str) -> str:
    return series("broker_leaders", broker=broker, instance="operator-a")


WELL = {
    asks("2", "ok"): "0+15x200",
    asks("3", "ok"): "0+15x200",
    leads("2"): "10x200",
    leads("3"): "10x200",
    series("partitions_leaderless"): "0x200",
}

CASES = (
    Case(
        FAST,
        "a leader cannot be reached, and never could",
        "10m",
        {**WELL, asks("1", "Connect"): "0+15x200", leads("1"): "10x200"},
        (of_policy(window="1h"), of_policy(window="6h")),
    ),
    Case(
        FAST,
        "partitions without a leader",
        "10m",
        {**WELL, series("partitions_leaderless"): "0x4 5x200"},
        (of_policy(window="1h"), of_policy(window="6h")),
    ),
    Case(
        FAST,
        "the broker that cannot be reached leads nothing",
        "40m",
        {**WELL, asks("1", "ok"): "0+15x20 300x200", asks("1", "Connect"): "0x20 0+15x180", leads("1"): "0x200"},
    ),
    Case(
        FAST,
        "a rolling restart: leaders have left each broker before it goes",
        "40m",
        {
            **WELL,
            asks("1", "ok"): "0+15x20 300x8 300+15x160",
            asks("1", "Connect"): "0x20 0+15x8 120x160",
            leads("1"): "10x19 0x12 10x160",
        },
    ),
    Case(
        FAST,
        "an operator gives up its Lease: for half a minute no operator leads",
        "40m",
        {
            asks("2", "ok"): "0+15x200",
            leads("2"): "10x40 stale",
            series("broker_leaders", broker="2", instance="operator-b"): "_x42 10x150",
            series("partitions_leaderless", instance="operator-a"): "0x40 stale",
            series("partitions_leaderless", instance="operator-b"): "_x42 0x150",
        },
    ),
    Case(FAST, "half a day at half the budget", "12h", {RATIO: "0.00005x150"}, every="5m"),
    Case(
        SLOW,
        "a day at four times the budget",
        "1d",
        {RATIO: "0.0004x50"},
        (of_policy(window="1d"), of_policy(window="3d")),
        "30m",
    ),
    Case(SLOW, "three days at twice the budget", "3d", {RATIO: "0.0002x150"}, (of_policy(window="3d"),), "30m"),
    Case(SLOW, "three days at half the budget", "3d", {RATIO: "0.00005x150"}, (), "30m"),
    Case(SLOW, "one bad half hour a day ago", "1d", {RATIO: "0x4 0.02 0x50"}, (), "30m"),
)

"""Cases of ``policies.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

OURS = (of_policy(),)


def verdict(broker: str, state: str) -> str:
    return series("broker_verdict", broker=broker, verdict=state)


FITS = series("policy_condition", type="PlacementFits")

CASES = (
    Case("BellwetherPolicyNotEnforcing", "suspended and forgotten", "5h", {series("policy_enforcing"): "0x1200"}, OURS),
    Case(
        "BellwetherPolicyNotEnforcing",
        "suspended for an hour of work",
        "5h",
        {series("policy_enforcing"): "1x20 0x240 1x1200"},
    ),
    Case(
        "BellwetherPolicyBlind",
        "no prober has ever reported, and one broker is down",
        "6m",
        {verdict("1", "Unknown"): "1x40", verdict("2", "Unknown"): "1x40", verdict("3", "Down"): "1x40"},
        OURS,
    ),
    Case(
        "BellwetherPolicyBlind",
        "one of two brokers cannot be judged",
        "6m",
        {verdict("1", "Unknown"): "1x40", verdict("2", "Healthy"): "1x40"},
    ),
    Case("BellwetherPlacementUnsuitable", "an unknown rack", "16m", {FITS: "0x80"}, OURS),
    Case("BellwetherPlacementUnsuitable", "the rack's brokers restart", "16m", {FITS: "1x10 0x20 1x80"}),
)

"""Cases of ``loads.yaml``."""

from __future__ import annotations

from testkit.alerts.cases.alert_case import Case, of_policy, series

OURS = (of_policy(),)


def rounds(result: str) -> str:
    return series("sampler_rounds_total", result=result)


def state(name: str) -> str:
    return series("rebalance_state", state=name)


def losses(now: str) -> dict[str, str]:
    values = {"now": now, "limit": "1.6x90"}
    return {series("rebalance_loss_ratio", kind="broker", when=when): of for when, of in values.items()}


CASES = (
    Case(
        "BellwetherSamplerGaps",
        "for a quarter of an hour",
        "20m",
        {series("sampler_last_written_timestamp_seconds"): "15x100"},
        OURS,
    ),
    Case(
        "BellwetherSamplerGaps",
        "the sampler restarts: it has written nothing yet, and then does",
        "20m",
        {series("sampler_last_written_timestamp_seconds"): "0+15x20 0x4 360+15x80"},
    ),
    Case(
        "BellwetherSamplerRoundsPartial",
        "a broker does not tell",
        "40m",
        {rounds("complete"): "3x200", rounds("partial"): "0+1x200"},
        OURS,
    ),
    Case(
        "BellwetherSamplerRoundsPartial",
        "brokers restart one after the other for five minutes",
        "40m",
        {rounds("complete"): "0+1x40 40x20 40+1x120", rounds("partial"): "0x40 0+1x20 20x120"},
    ),
    Case("BellwetherBrokerLossOverload", "above the limit", "40m", losses(now="1.7x90"), OURS, "5m"),
    Case("BellwetherBrokerLossOverload", "a plan is applied in time", "40m", losses(now="1.7x4 1.3x90"), (), "5m"),
    Case("BellwetherRebalanceFailed", "and no one asks again", "6m", {state("Failed"): "1x40"}, OURS),
    Case("BellwetherRebalanceFailed", "the next one runs", "6m", {state("Failed"): "1x8 0x40"}),
    Case("BellwetherRebalancePending", "since this morning", "7h", {state("Proposed"): "1x90"}, OURS, "5m"),
    Case("BellwetherRebalancePending", "approved after an hour", "7h", {state("Proposed"): "1x12 0x90"}, (), "5m"),
)

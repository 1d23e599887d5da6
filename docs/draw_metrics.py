"""Generate ``docs/reference/metrics.md`` from the metric definitions.

``python docs/draw_metrics.py`` writes it; ``--check`` fails if the committed page differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bellwether.telemetry.metrics.metric_registry import LATENCY_BUCKETS, JointRegistry
from bellwether.telemetry.metrics.operator_metrics import OperatorMetrics
from bellwether.telemetry.metrics.probe_metrics import (
    CanaryMetrics,
    LagMetrics,
    PluginMetrics,
    ProbeMetrics,
    QueryMetrics,
)
from bellwether_load.sampling.sampler_metrics import SamplingMetrics

PAGE = Path(__file__).parent / "reference" / "metrics.md"

TEXT = """# Metrics

<!-- Generated from operator/bellwether/telemetry/ by docs/draw_metrics.py: make generate -->

Every process serves its metrics on `--metrics-port` (9464 in the chart). Names follow the Prometheus conventions: base
units, `_total` for counters. Labels are bounded: policies, brokers, reasons, vantages, but no partitions or topics.
With 1,000 brokers an operator serves about 15,000 series, and a reachability prober at most 50 per broker. Latency
histograms have buckets from {first:g} to {last:g} s.

`namespace` and `policy` are those of the LeadershipPolicy. A scrape must not replace them by the pod's namespace
(`honorLabels: true`). Only the active operator serves series about brokers and partitions, so queries use the `max`
over instances.

[Alerts](../alerts/README.md) explains the alerts on these metrics.

## Operator

{operator}

## Probers

Every series has the additional labels `namespace`, `policy`, `type` (the signal type) and `source` (the vantage, or the
prober's name).

{prober}

### Canary prober

{canary}

### Replication prober

{lags}

### Prometheus prober

{queries}

### Plug-in signals

{plugins}

## Sampler

Every series has the additional labels `namespace` and `policy` if the sampler follows a policy.

{sampler}
"""


def metrics(registry: CollectorRegistry) -> dict[str, Any]:
    """Each metric of a registry, as the object that collects it, by its name."""
    collectors = dict.fromkeys(registry._names_to_collectors.values())
    return {collector._name: collector for collector in collectors}


def table(found: Iterable[Any]) -> str:
    """The rows of a table."""
    rows = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for metric in sorted(found, key=lambda m: m._name):
        name = f"{metric._name}_total" if metric._type == "counter" else metric._name
        labels = ", ".join(f"`{label}`" for label in metric._labelnames)
        rows.append(f"| `{name}` | {metric._type} | {labels} | {metric._documentation} |")
    return "\n".join(rows)


def page() -> str:
    """The whole page."""
    common = metrics(ProbeMetrics().registry) | metrics(JointRegistry("prober"))

    def own(kind: Any) -> str:
        base = ProbeMetrics()
        kind(base)
        return table(m for name, m in metrics(base.registry).items() if name not in common)

    return TEXT.format(
        first=LATENCY_BUCKETS[0],
        last=LATENCY_BUCKETS[-1],
        operator=table(metrics(OperatorMetrics().registry).values()),
        prober=table(common.values()),
        canary=own(CanaryMetrics),
        lags=own(LagMetrics),
        queries=own(QueryMetrics),
        plugins=own(PluginMetrics),
        sampler=table((metrics(SamplingMetrics().registry) | metrics(JointRegistry("sampler"))).values()),
    )


def main() -> None:
    """Write or check."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
    elif PAGE.read_text() != page():
        sys.exit("docs/reference/metrics.md is outdated; run: make generate")


if __name__ == "__main__":
    main()

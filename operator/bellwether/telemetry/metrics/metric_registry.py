"""Metric registries: what a process serves for Prometheus, with the labels that all of its series share.

In: labels such as the policy and the vantage of a prober. Out: a registry that serves them on every series, and says
which version is running. Called by every class of metrics.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, disable_created_metrics
from prometheus_client.metrics_core import Metric

from bellwether import __version__

# When a counter was made is of use to nobody here, and would double the number of series.
disable_created_metrics()  # type: ignore[no-untyped-call]

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from a quick disk to a connection that hangs."""


class LabelledRegistry(CollectorRegistry):
    """A registry whose series all carry ``labels``; those whose value is empty are left out."""

    def __init__(self, component: str, labels: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._labels = {name: value for name, value in (labels or {}).items() if value}
        about = ["component", "version", "python"]
        build = Gauge("bellwether_build_info", "1, with the version that is running.", about, registry=self)
        build.labels(component, __version__, platform.python_version()).set(1)

    def collect(self) -> Iterable[Metric]:
        """Every metric, its series with the common labels."""
        for metric in super().collect():
            if self._labels:
                metric.samples = [s._replace(labels={**self._labels, **s.labels}) for s in metric.samples]
            yield metric


Labels = TypeVar("Labels", bound=tuple[str, ...])


class PolicyGauge:
    """A gauge of policies that is told whole: what is not told again goes, and at no moment is anything missing.

    A scrape may come at any time, and a series that is absent from one resets whatever alert waits on it.
    """

    def __init__(self, name: str, text: str, labels: Iterable[str], registry: CollectorRegistry) -> None:
        self._gauge = Gauge(name, text, ("namespace", "policy", *labels), registry=registry)
        self._told: dict[tuple[str, str], set[tuple[str, ...]]] = {}

    def tell(self, namespace: str, policy: str, values: Mapping[Labels, float]) -> None:
        """The values by their labels, in the order in which those were named."""
        for labels, value in values.items():
            self._gauge.labels(namespace, policy, *labels).set(value)
        now: set[tuple[str, ...]] = set(values)
        for gone in self._told.get((namespace, policy), set()) - now:
            self._gauge.remove(namespace, policy, *gone)
        self._told[namespace, policy] = now

    def forget(self, namespace: str, policy: str) -> None:
        """Nothing is to be told of this policy."""
        self.tell(namespace, policy, {})
        del self._told[namespace, policy]

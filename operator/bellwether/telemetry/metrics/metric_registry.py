"""Metric registries: what a process serves for Prometheus, with the labels that all of its series share.

In: labels such as the policy and the vantage of a prober. Out: a registry that adds them to every series, and serves
the running version. Called by every class of metrics.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from bellwether import __version__

# Creation times of counters are not used, and would double the number of series.
disable_created_metrics()  # type: ignore[no-untyped-call]

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: from a fast disk to a connection that hangs."""

M = TypeVar("M", Counter, Gauge, Histogram)


class LabelledRegistry(CollectorRegistry):
    """A registry that adds ``labels`` to all series; labels with an empty value are omitted."""

    def __init__(self, component: str, labels: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self._labels = {name: value for name, value in (labels or {}).items() if value}
        self._metrics: list[tuple[Counter | Gauge | Histogram, frozenset[str]]] = []
        text = "Always 1; the labels have the running version."
        build = self.gauge("bellwether_build_info", text, "component version python")
        build.labels(component, __version__, platform.python_version()).set(1)

    @property
    def policy(self) -> tuple[str, str]:
        """Namespace and name of the policy that all series are of."""
        return self._labels.get("namespace", ""), self._labels.get("policy", "")

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """A counter in this registry; ``labels``, here and below, are names, or several of them with blanks between."""
        return self._kept(Counter(name, text, _names(labels), registry=self), labels)

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        """A gauge in this registry."""
        return self._kept(Gauge(name, text, _names(labels), registry=self), labels)

    def histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float] = LATENCY_BUCKETS) -> Histogram:
        """A histogram of seconds in this registry."""
        return self._kept(Histogram(name, text, _names(labels), buckets=buckets, registry=self), labels)

    def remove_series(self, **labels: object) -> None:
        """Remove the series that have these values of these labels."""
        for metric, names in self._metrics:
            if labels.keys() <= names:
                metric.remove_by_labels({label: str(value) for label, value in labels.items()})

    def _kept(self, metric: M, labels: Sequence[str]) -> M:
        self._metrics.append((metric, frozenset(_names(labels))))
        return metric

    def collect(self) -> Iterable[Metric]:
        """Every metric, its series with the common labels."""
        for metric in super().collect():
            if self._labels:
                metric.samples = [s._replace(labels={**self._labels, **s.labels}) for s in metric.samples]
            yield metric


class TimedResults:
    """Counts of one kind of request by result, and how long those took that succeeded.

    ``counted`` and ``timed`` are name and meaning of the counter and of the histogram; the result is the last label.
    """

    def __init__(
        self,
        registry: LabelledRegistry,
        counted: tuple[str, str],
        timed: tuple[str, str],
        labels: str,
        result: str = "result",
    ) -> None:
        self._counter = registry.counter(*counted, labels, result)
        self._histogram = registry.histogram(*timed, labels)

    def add(self, *labels: object, seconds: float) -> None:
        """One request; the last of its labels is the result, ``ok`` if it succeeded."""
        self._counter.labels(*labels).inc()
        if labels[-1] == "ok":
            self._histogram.labels(*labels[:-1]).observe(seconds)

    def remove(self, **labels: str) -> None:
        """Remove the series that have these values of these labels."""
        self._counter.remove_by_labels(labels)
        self._histogram.remove_by_labels(labels)


def _names(labels: Sequence[str]) -> list[str]:
    return " ".join(labels).split()


class JointRegistry(LabelledRegistry):
    """A process's own metrics, and those of the registries of the policies and sources that it serves, as one page."""

    def __init__(self, component: str, labels: Mapping[str, str] | None = None) -> None:
        super().__init__(component, labels)
        self._served: list[LabelledRegistry] = []
        self.gauge("bellwether_policies_served", "Policies that this process serves now.").set_function(
            lambda: len({one.policy for one in self._served})
        )

    def add(self, registry: LabelledRegistry) -> None:
        """Serve this registry, too."""
        self._served.append(registry)

    def remove(self, registry: LabelledRegistry) -> None:
        """Serve it no longer."""
        self._served.remove(registry)

    def collect(self) -> Iterable[Metric]:
        """Every metric once, with the series of all registries."""
        found = {metric.name: metric for metric in super().collect()}
        for registry in tuple(self._served):
            for metric in registry.collect():
                known = found.setdefault(metric.name, metric)
                if known is not metric:
                    known.samples.extend(metric.samples)
        return found.values()


Labels = TypeVar("Labels", bound=tuple[str, ...])


class PolicyGauge(Collector):
    """A gauge by policy whose series are replaced as a whole, without a moment at which a current series is missing.

    A scrape may come at any time, and a series that is absent from one scrape resets the `for:` of an alert. Values are
    kept as they are given and only rendered for a scrape: there are thousands, and few change between two reconciles.
    """

    def __init__(self, name: str, text: str, labels: Iterable[str], registry: CollectorRegistry) -> None:
        # Named as in the library's own metrics, for the page of all metrics.
        self._name, self._type, self._documentation = name, "gauge", text
        self._labelnames = ("namespace", "policy", *labels)
        self._series: dict[tuple[str, str], Mapping[tuple[str, ...], float]] = {}
        registry.register(self)

    def set_series(self, namespace: str, policy: str, values: Mapping[Labels, float]) -> None:
        """Replace all series of this policy by these values, by their labels in the order of the gauge's labels.

        The values must not be changed afterwards.
        """
        self._series[namespace, policy] = cast(Mapping[tuple[str, ...], float], values)

    def forget(self, namespace: str, policy: str) -> None:
        """Remove all series of this policy."""
        self._series.pop((namespace, policy), None)

    def describe(self) -> Iterable[Metric]:
        """The gauge without series."""
        return [self._family()]

    def collect(self) -> Iterable[Metric]:
        """The gauge with all series."""
        family = self._family()
        for about, values in self._series.copy().items():
            for labels, value in values.items():
                family.add_metric((*about, *labels), float(value))
        return [family]

    def _family(self) -> GaugeMetricFamily:
        return GaugeMetricFamily(self._name, self._documentation, labels=self._labelnames)

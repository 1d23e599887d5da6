"""PromQL building blocks of the preset queries, including the lookup of a broker's node or volume.

In: expressions over an exporter's series. Out: PromQL that returns one series per broker and scraped address. Called by
``query_presets``. Addresses are not aggregated: if one Prometheus scrapes two clusters, two series for one broker id
must remain two, so that the conflict is noticed instead of one cluster being mistaken for the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellwether.core.settings import detection

DEFAULT_LABEL = detection.PrometheusRule(name="", query="", threshold=0).broker_label
# Labels in which common scrape configurations put a broker's name, best first.
NAMES = (DEFAULT_LABEL, "broker_id", "strimzi_io_pod_name", "kubernetes_pod_name", "pod")
# The number at the end of the first of these names, joined by slashes; not the number of an address.
_NUMBER = "/*(?:[^/]*[^/0-9.:])?([0-9]+)(?:/.*)?"


@dataclass(frozen=True, slots=True)
class Scope:
    """Brokers that a query selects: the label that identifies the broker, and matchers for the series that have it."""

    label: str = DEFAULT_LABEL
    selector: str = ""

    def series(self, metric: str, *matchers: str) -> str:
        """A metric that the brokers export."""
        inside = ",".join([*matchers, *([self.selector] if self.selector else [])])
        return f"{metric}{{{inside}}}" if inside else metric

    def labelled(self, metric: str, *matchers: str) -> str:
        """A metric of another exporter to which the broker label was added."""
        return self.series(metric, f'{self.label}!=""', *matchers)

    def named(self, expression: str) -> str:
        """The same series with the broker label, derived from the labels of common scrape configurations."""
        if self.label != DEFAULT_LABEL:
            return expression
        sources = ", ".join(f'"{name}"' for name in NAMES)
        joined = f'label_join({expression}, "{self.label}", "/", {sources})'
        return f'label_replace({joined}, "{self.label}", "$1", "{self.label}", "{_NUMBER}")'

    def worst(self, expression: str, aggregate: str = "max") -> str:
        """One series for each broker and address; derives the broker label."""
        return self.each(self.named(expression), aggregate)

    def each(self, expression: str, aggregate: str = "max") -> str:
        """One series for each broker and address, from series that have the broker label."""
        return f"{aggregate} by ({self.label}, instance) ({expression})"

    @property
    def pod_and_node_labels(self) -> str:
        """A series with the labels of each broker's pod and node; both exporters of Kafka's metrics have it."""
        return self.series("kafka_server_replicamanager_partitioncount")

    def either(self, *expressions: str) -> str:
        """The first of the expressions that has a value for a broker."""
        return f" or on ({self.label}) ".join(f"({expression})" for expression in expressions)


def mean_since_start(scope: Scope, metric: str, seconds: int = 120) -> str:
    """Mean over the last seconds, from a gauge that is a mean since the process started.

    Mean times uptime is a monotonic sum, so two of them give the mean in between. It has no value for five minutes
    after a start, when the earlier value may belong to the previous process.
    """
    now, start = scope.series(metric), scope.series("process_start_time_seconds")
    before = f"{now} offset {seconds}s * (time() - {seconds} - {start} offset {seconds}s)"
    return f"({now} * (time() - {start}) - {before}) / {seconds} and ({start} < time() - 300)"


def of_node(scope: Scope, figure: str) -> str:
    """A node exporter's value for each broker on its node, by the node labels of Strimzi's PodMonitor."""
    with_labels = scope.pod_and_node_labels
    by_address = f'label_replace({with_labels}, "node_name", "$1", "node_ip", "(.+)")'
    node = f'label_replace({figure}, "node_name", "$1", "instance", "(.+?)(?::[0-9]+)?")'
    node = f'max by (node_name) (label_replace({node}, "node_name", "$1", "node", "(.+)"))'
    return scope.either(
        *(scope.worst(f"{place} * 0 + on (node_name) group_left () {node}") for place in (with_labels, by_address))
    )


def of_volume(scope: Scope, figure: str) -> str:
    """A value by ``volume_id`` for each broker whose pod claims the volume, using kube-state-metrics.

    Strimzi names a claim after its pod: ``data-main-kafka-2`` or ``data-0-main-kafka-2``.
    """
    pod = scope.named(f'label_replace({scope.pod_and_node_labels}, "pod", "$1", "kubernetes_pod_name", "(.+)")')
    pod = f"max by ({scope.label}, instance, namespace, pod) ({pod})"
    claim = 'label_replace(kube_persistentvolumeclaim_info, "persistentvolume", "$1", "volumename", "(.+)")'
    claim = f'label_replace({claim}, "pod", "$1", "persistentvolumeclaim", "data-(?:[0-9]+-)?(.+)")'
    volume = 'label_replace(kube_persistentvolume_info, "volume_id", "$1", "csi_volume_handle", "(.+)")'
    held = f"max by (namespace, pod, volume_id) ({claim} * on (persistentvolume) group_left (volume_id) {volume})"
    held = f"{held} * 0 + on (volume_id) group_left () {figure}"
    joined = f"{pod} * 0 + on (namespace, pod) group_right ({scope.label}, instance) ({held})"
    return scope.each(joined)

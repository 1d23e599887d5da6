"""PromQL building blocks of the preset queries: which broker has a node or volume.

In: expressions over an exporter's series. Out: PromQL that gives one series for each broker and scraped address. Called
by ``query_presets``. Nothing is aggregated over addresses: where one Prometheus watches two clusters, two series for
one broker id must stay two, so that they are noticed instead of one cluster's brokers being taken for the other's.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellwether.core.settings import detection

DEFAULT_LABEL = detection.PrometheusRule(name="", query="", threshold=0).broker_label
# Where the usual scrape configurations leave a broker's name, best first.
NAMES = (DEFAULT_LABEL, "broker_id", "strimzi_io_pod_name", "kubernetes_pod_name", "pod")
# The first of those names, joined by slashes, that ends in a number; not that of an address.
_NUMBER = "/*(?:[^/]*[^/0-9.:])?([0-9]+)(?:/.*)?"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom a query is about: the label that names the broker, and matchers for the series that carry it."""

    label: str = DEFAULT_LABEL
    selector: str = ""

    def series(self, metric: str, *matchers: str) -> str:
        """A metric of the brokers' own."""
        inside = ",".join([*matchers, *([self.selector] if self.selector else [])])
        return f"{metric}{{{inside}}}" if inside else metric

    def labelled(self, metric: str, *matchers: str) -> str:
        """A metric of somebody else's to which the broker label was given."""
        return self.series(metric, f'{self.label}!=""', *matchers)

    def named(self, expression: str) -> str:
        """The same series with the broker label, found in the labels that scrape configurations leave."""
        if self.label != DEFAULT_LABEL:
            return expression
        sources = ", ".join(f'"{name}"' for name in NAMES)
        joined = f'label_join({expression}, "{self.label}", "/", {sources})'
        return f'label_replace({joined}, "{self.label}", "$1", "{self.label}", "{_NUMBER}")'

    def worst(self, expression: str, aggregate: str = "max") -> str:
        """One series for each broker and address."""
        return self.each(self.named(expression), aggregate)

    def each(self, expression: str, aggregate: str = "max") -> str:
        """One series for each broker and address, where the broker label is there already."""
        return f"{aggregate} by ({self.label}, instance) ({expression})"

    @property
    def whereabouts(self) -> str:
        """The series that says which broker runs where; both exporters of Kafka's metrics have it."""
        return self.series("kafka_server_replicamanager_partitioncount")

    def either(self, *expressions: str) -> str:
        """The first expression that has something to say of a broker."""
        return f" or on ({self.label}) ".join(f"({expression})" for expression in expressions)


def mean_since_start(scope: Scope, metric: str, seconds: int = 120) -> str:
    """The mean of the last seconds of a gauge that is a mean since the process started.

    A mean times the uptime is a sum that only grows, so two of them give the mean between. Silent for five minutes
    after a start, when the earlier value may be that of the process before.
    """
    now, start = scope.series(metric), scope.series("process_start_time_seconds")
    before = f"{now} offset {seconds}s * (time() - {seconds} - {start} offset {seconds}s)"
    return f"({now} * (time() - {start}) - {before}) / {seconds} and ({start} < time() - 300)"


def of_node(scope: Scope, figure: str) -> str:
    """A node exporter's figure for each broker on its node, by the node labels of Strimzi's PodMonitor."""
    where = scope.whereabouts
    by_address = f'label_replace({where}, "node_name", "$1", "node_ip", "(.+)")'
    node = f'label_replace({figure}, "node_name", "$1", "instance", "(.+?)(?::[0-9]+)?")'
    node = f'max by (node_name) (label_replace({node}, "node_name", "$1", "node", "(.+)"))'
    return scope.either(
        *(scope.worst(f"{place} * 0 + on (node_name) group_left () {node}") for place in (where, by_address))
    )


def of_volume(scope: Scope, figure: str) -> str:
    """A figure by ``volume_id`` for each broker whose pod claims the volume, as kube-state-metrics tells.

    Strimzi names a claim after its pod: ``data-main-kafka-2`` or ``data-0-main-kafka-2``.
    """
    pod = scope.named(f'label_replace({scope.whereabouts}, "pod", "$1", "kubernetes_pod_name", "(.+)")')
    pod = f"max by ({scope.label}, instance, namespace, pod) ({pod})"
    claim = 'label_replace(kube_persistentvolumeclaim_info, "persistentvolume", "$1", "volumename", "(.+)")'
    claim = f'label_replace({claim}, "pod", "$1", "persistentvolumeclaim", "data-(?:[0-9]+-)?(.+)")'
    volume = 'label_replace(kube_persistentvolume_info, "volume_id", "$1", "csi_volume_handle", "(.+)")'
    held = f"max by (namespace, pod, volume_id) ({claim} * on (persistentvolume) group_left (volume_id) {volume})"
    held = f"{held} * 0 + on (volume_id) group_left () {figure}"
    joined = f"{pod} * 0 + on (namespace, pod) group_right ({scope.label}, instance) ({held})"
    return scope.each(joined)

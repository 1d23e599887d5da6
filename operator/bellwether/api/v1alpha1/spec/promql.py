"""PromQL building blocks of the preset queries, including the lookup of a broker's node or volume.

In: expressions over an exporter's series. Out: PromQL that returns one series for each pod and scraped address, with
the labels by which ``core.model.broker_identity`` finds the broker; a query cannot know it. Called by
``query_presets``. Addresses are not aggregated: if one Prometheus scrapes two clusters, two series for one broker id
must remain two, so that the conflict is noticed instead of one cluster being mistaken for the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellwether.core.model.broker_identity import DEFAULT_LABEL, PLACE_LABELS, POD_LABELS, stated_labels


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

    @property
    def names(self) -> str:
        """The labels that may name a broker or its pod."""
        return ", ".join(dict.fromkeys((*stated_labels(self.label), *POD_LABELS)))

    def each(self, expression: str, aggregate: str = "max") -> str:
        """One series for each broker's labels and address."""
        return f"{aggregate} by ({self.names}, {', '.join(PLACE_LABELS)}) ({expression})"

    @property
    def pod_and_node_labels(self) -> str:
        """A series with the labels of each broker's pod and node; both exporters of Kafka's metrics have it."""
        return self.series("kafka_server_replicamanager_partitioncount")

    def either(self, *expressions: str, labelled: bool = False) -> str:
        """The first of the expressions that has a value for a broker; ``labelled``: the first has the broker label."""
        on = self.label if labelled else self.names
        return f" or on ({on}) ".join(f"({expression})" for expression in expressions)


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
        *(scope.each(f"{place} * 0 + on (node_name) group_left () {node}") for place in (with_labels, by_address))
    )


def of_volume(scope: Scope, figure: str) -> str:
    """A value by ``volume_id`` for each broker whose pod claims the volume, using kube-state-metrics.

    Strimzi names a claim after its pod: ``data-main-kafka-2`` or ``data-0-main-kafka-2``.
    """
    pod = scope.each(f'label_replace({scope.pod_and_node_labels}, "pod", "$1", "kubernetes_pod_name", "(.+)")')
    claim = 'label_replace(kube_persistentvolumeclaim_info, "persistentvolume", "$1", "volumename", "(.+)")'
    claim = f'label_replace({claim}, "pod", "$1", "persistentvolumeclaim", "data-(?:[0-9]+-)?(.+)")'
    volume = 'label_replace(kube_persistentvolume_info, "volume_id", "$1", "csi_volume_handle", "(.+)")'
    held = f"max by (namespace, pod, volume_id) ({claim} * on (persistentvolume) group_left (volume_id) {volume})"
    held = f"{held} * 0 + on (volume_id) group_left () {figure}"
    labels = ", ".join(one for one in (*scope.names.split(", "), *PLACE_LABELS) if one not in ("namespace", "pod"))
    joined = f"{pod} * 0 + on (namespace, pod) group_right ({labels}) ({held})"
    return scope.each(joined)

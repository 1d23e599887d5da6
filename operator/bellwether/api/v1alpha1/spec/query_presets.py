"""Preset Prometheus queries: what a policy can name as ``preset`` instead of writing PromQL.

One table. In: a preset's name, the broker label and a selector. Out: PromQL that matches the metric names of every
supported exporter, so that the exporter need not be known. Read by the policy's models, ``bellwether probe prometheus
--presets`` and the documentation, which a test compares with this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bellwether.core.model.broker_identity import DEFAULT_LABEL, PLACE_LABELS, POD_LABELS, stated_labels
from bellwether.core.settings.source_settings import Comparison


@dataclass(frozen=True, slots=True)
class Scope:
    """Brokers that a query selects: the label that identifies the broker, and matchers for the series that have it.

    A query returns one series for each pod and scraped address, with the labels by which ``core.model.broker_identity``
    finds the broker. Addresses are not aggregated: two series for one broker id, of two clusters, must remain two.
    """

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


JMX = "JMX exporter"
DEFAULTS = "JMX exporter's default names"
BITNAMI = "Bitnami's rules"
REPORTER = "Strimzi Metrics Reporter"
BOTH = f"{JMX}, {REPORTER}"
KAFKA_EXPORTER = "kafka_exporter"
NODE = "node exporter"
NODE_LABELLED = "node exporter with a broker label"
EBS = "EBS CSI driver"
CLOUDWATCH = "CloudWatch exporter"
BLACKBOX = "blackbox exporter"
RULES = "Prometheus' own rules"

Query = Callable[[Scope], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One preset query; ``threshold`` and ``peer_ratio`` are suggested values. ``shows_acks``: it judges no broker.
    ``selects_alerts``: its selector names alerts (``alerts_of``).
    """

    name: str
    sentence: str
    unit: str
    threshold: str
    peer_ratio: int = 0
    comparison: Comparison = Comparison.ABOVE
    leaders_only: bool = False
    shows_acks: bool = False
    selects_alerts: bool = False
    needs: str = ""
    dialects: tuple[tuple[str, Query], ...]

    def query(self, scope: Scope, dialect: str = "") -> str:
        """PromQL for all dialects, or for one of them."""
        queries = [make(scope) for name, make in self.dialects if dialect in ("", name)]
        labelled = self.dialects[0][0] == NODE_LABELLED
        return scope.either(*queries, labelled=labelled) if len(queries) > 1 else queries[0]


def _quantile(metric: str, quantile: str, *matchers: str) -> Query:
    """A percentile that Kafka computes, only while it gets new samples: otherwise it keeps its last value forever."""

    def make(scope: Scope) -> str:
        value = scope.series(metric, *matchers, f'quantile=~"{quantile}"')
        # From 1.0 on the JMX exporter adds _total to the name of every counter.
        count = scope.series("", f'__name__=~"{metric}_count(_total)?"', *matchers)
        return scope.each(f"{value} and ignoring (quantile) (rate({count}[5m]) > 0)")

    return make


def _gauge(metric: str, aggregate: str = "max") -> Query:
    return lambda scope: scope.each(scope.series(metric), aggregate)


ALERTS_NAMED = r'(^|,)alertname(="[A-Za-z0-9_-]+"|=~"[A-Za-z0-9_-]+([|][A-Za-z0-9_-]+)*")(,|$)'
"""A matcher of a selector that names alerts one by one, so that their rules can be looked up."""


def alerts_of(selector: str) -> tuple[str, ...]:
    """The alerts that the selector names."""
    found = re.search(ALERTS_NAMED, selector)
    return tuple(found[2].strip('=~"').split("|")) if found else ()


def _by_default(bean: str, attribute: str, name: str, aggregate: str = "max", *matchers: str) -> Query:
    """An attribute under the name that the JMX exporter gives it without rules, as on Amazon MSK, or in lower case."""

    def make(scope: Scope) -> str:
        def series(suffix: str) -> str:
            full = f"kafka_{bean}_{suffix}"
            return scope.series("", f'__name__=~"{full}|{full.lower()}"', f'name="{name}"', *matchers)

        # As in _quantile: a percentile without new samples keeps its last value forever.
        fresh = f" and (rate({series('Count')}[5m]) > 0)" if "Percentile" in attribute else ""
        return scope.each(f"{series(attribute)}{fresh}", aggregate)

    return make


def _handlers_by_reporter(scope: Scope) -> str:
    idle = scope.series("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total")
    return scope.each(f"rate({idle}[2m]) / 1e9", "min")


def _handlers_by_jmx(scope: Scope) -> str:
    idle = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    return scope.each(mean_since_start(scope, idle), "min")


def _by_leader(scope: Scope) -> str:
    """Partitions with lagging followers for each leader, whose id is the value of a metric; 0 for other leaders."""

    place = ", ".join(PLACE_LABELS)

    def each(metric: str) -> str:
        return f"max by (topic, partition, {place}) ({scope.series(metric)})"

    leader, lagging = (each(f"kafka_topic_partition_{one}") for one in ("leader", "under_replicated_partition"))
    count = f'count_values by ({place}) ("{scope.label}", '
    return scope.each(f"{count}{leader} and {lagging} > 0) or 0 * {count}{leader})")


_DISKS = 'device!~"(loop|ram|zram|sr|fd).*"'


def _disk_writes(series: Callable[..., str]) -> str:
    spent, writes = (series(f"node_disk_{name}_total", _DISKS) for name in ("write_time_seconds", "writes_completed"))
    return f"1000 * rate({spent}[2m]) / (rate({writes}[2m]) > 0)"


def _stalled_pressure(series: Callable[..., str]) -> str:
    return f"rate({series('node_pressure_io_stalled_seconds_total')}[2m])"


def _unscoped(metric: str, *matchers: str) -> str:
    return f"{metric}{{{','.join(matchers)}}}" if matchers else metric


def _of_node(figure: Callable[[Callable[..., str]], str]) -> tuple[tuple[str, Query], ...]:
    return (
        (NODE_LABELLED, lambda scope: scope.each(figure(scope.labelled))),
        (NODE, lambda scope: of_node(scope, figure(_unscoped))),
    )


def _ebs_queue(scope: Scope) -> str:
    completed = [f"max by (volume_id) (rate(aws_ebs_csi_{kind}_ops_total[2m]))" for kind in ("read", "write")]
    queued = "max by (volume_id) (aws_ebs_csi_volume_queue_length)"
    return of_volume(scope, f"({queued} * on (volume_id) ({completed[0]} + on (volume_id) {completed[1]} == bool 0))")


def _ebs_check(scope: Scope) -> str:
    check = "aws_ebs_volume_stalled_iocheck_maximum"
    return of_volume(
        scope, f'max by (volume_id) (label_replace({check}, "volume_id", "$1", "dimension_VolumeId", "(.+)"))'
    )


def _blackbox(scope: Scope) -> str:
    return scope.each(f"avg_over_time({scope.labelled('probe_success')}[1m])", "avg")


_NODE_LABELS = (
    "the broker label on the node exporter's series, or the labels node_name and node_ip on Kafka's"
    " series, as set by Strimzi's PodMonitor; brokers on the same node share its value"
)

PRESETS = (
    Preset(
        name="ProduceLocalTimeP99",
        sentence="99th percentile of the local time of produce requests at the leader.",
        unit="ms",
        threshold="200",
        peer_ratio=3,
        leaders_only=True,
        needs="RequestMetrics, which the newest Strimzi example rules for the JMX exporter omit",
        dialects=(
            (BOTH, _quantile("kafka_network_requestmetrics_localtimems", "0.99", 'request="Produce"')),
            (
                DEFAULTS,
                _by_default("network_RequestMetrics", "99thPercentile", "LocalTimeMs", "max", 'request="Produce"'),
            ),
        ),
    ),
    Preset(
        name="ProduceRemoteTimeP50",
        sentence="Median time for which produce requests wait for followers. Above 0 it proves producers with"
        " `acks=all`; no broker is judged by it.",
        unit="ms",
        threshold="0",
        shows_acks=True,
        needs="RequestMetrics, which the newest Strimzi example rules for the JMX exporter omit",
        # The JMX exporter calls the median 0.50, Strimzi's reporter 0.5.
        dialects=((BOTH, _quantile("kafka_network_requestmetrics_remotetimems", "0.50?", 'request="Produce"')),),
    ),
    Preset(
        name="LogFlushTimeP999",
        sentence="99.9th percentile of the time of a log flush. Brokers flush rarely, so it often has no value.",
        unit="ms",
        threshold="1000",
        peer_ratio=3,
        needs="kafka_log_logflushstats.* in the Metrics Reporter's allowList, which by default does not contain it",
        dialects=((BOTH, _quantile("kafka_log_logflushstats_logflushrateandtimems", "0.999")),),
    ),
    Preset(
        name="RequestHandlerIdle",
        sentence="Idle share of the request handler threads in the last two minutes.",
        unit="ratio",
        threshold="0.2",
        peer_ratio=3,
        comparison=Comparison.BELOW,
        needs="process_start_time_seconds in addition to the JMX exporter's metric, which is a mean since the start",
        dialects=(
            (REPORTER, _handlers_by_reporter),
            (JMX, _handlers_by_jmx),
            (
                DEFAULTS,
                _by_default("server_KafkaRequestHandlerPool", "OneMinuteRate", "RequestHandlerAvgIdlePercent", "min"),
            ),
        ),
    ),
    Preset(
        name="NetworkProcessorIdle",
        sentence="Idle share of the network threads.",
        unit="ratio",
        threshold="0.2",
        peer_ratio=3,
        comparison=Comparison.BELOW,
        dialects=(
            (REPORTER, _gauge("kafka_network_socketserver_networkprocessoravgidlepercent", "min")),
            (JMX, _gauge("kafka_network_socketserver_networkprocessoravgidle_percent", "min")),
            (DEFAULTS, _by_default("network_SocketServer", "Value", "NetworkProcessorAvgIdlePercent", "min")),
            (BITNAMI, _gauge("kafka_network_socketserver_networkprocessoravgidlepercent_value", "min")),
        ),
    ),
    Preset(
        name="UnderReplicatedPartitions",
        sentence="Partitions led by the broker that have lagging followers. It names the leader, not the"
        " follower: use onFailing Suspect.",
        unit="partitions",
        threshold="0",
        peer_ratio=3,
        leaders_only=True,
        dialects=(
            (BOTH, _gauge("kafka_server_replicamanager_underreplicatedpartitions")),
            (DEFAULTS, _by_default("server_ReplicaManager", "Value", "UnderReplicatedPartitions")),
            (BITNAMI, _gauge("kafka_server_replicamanager_total_underreplicatedpartitions_value")),
        ),
    ),
    Preset(
        name="UnderReplicatedByLeader",
        sentence="The same by a cluster's exporter, where the brokers export nothing.",
        unit="partitions",
        threshold="0",
        peer_ratio=3,
        leaders_only=True,
        needs="a selector of one cluster, if Prometheus has several",
        dialects=((KAFKA_EXPORTER, _by_leader),),
    ),
    Preset(
        name="OfflineLogDirectories",
        sentence="Log directories that are offline.",
        unit="directories",
        threshold="0",
        needs="kafka_log_logmanager.* in the Metrics Reporter's allowList, which by default does not contain it",
        dialects=(
            (BOTH, _gauge("kafka_log_logmanager_offlinelogdirectorycount")),
            (DEFAULTS, _by_default("log_LogManager", "Value", "OfflineLogDirectoryCount")),
        ),
    ),
    Preset(
        name="NodeDiskWriteLatency",
        sentence="Mean latency of writes to the slowest disk of the broker's node.",
        unit="ms",
        threshold="50",
        peer_ratio=3,
        needs=_NODE_LABELS,
        dialects=_of_node(_disk_writes),
    ),
    Preset(
        name="NodeIoStalled",
        sentence="Share of time in which all tasks of the broker's node waited for I/O (PSI).",
        unit="ratio",
        threshold="0.5",
        peer_ratio=3,
        needs=f"a kernel with PSI; {_NODE_LABELS}",
        dialects=_of_node(_stalled_pressure),
    ),
    Preset(
        name="EbsStalledIo",
        sentence="Pending I/O of the broker's EBS volume while none completes, or CloudWatch's check for stalled I/O.",
        unit="operations",
        threshold="0",
        needs="kube-state-metrics, and Kafka's series with the labels namespace and pod, to find the broker's volume",
        dialects=((EBS, _ebs_queue), (CLOUDWATCH, _ebs_check)),
    ),
    Preset(
        name="BlackboxProbe",
        sentence="Share of the blackbox exporter's probes in the last minute that reached the broker.",
        unit="ratio",
        threshold="0.5",
        comparison=Comparison.BELOW,
        needs="the broker label on each target",
        dialects=((BLACKBOX, _blackbox),),
    ),
    Preset(
        name="FiringAlerts",
        sentence="1 while one of the alerts in `selector` fires for the broker, 0 while Prometheus evaluates their"
        " rules and none fires.",
        unit="alerts",
        threshold="0",
        selects_alerts=True,
        needs='a selector such as alertname=~"DiskFailing|NodeDown",namespace="kafka", and /api/v1/rules',
        dialects=((RULES, lambda scope: scope.each(scope.series("ALERTS", 'alertstate="firing"'))),),
    ),
)
BY_NAME = {preset.name: preset for preset in PRESETS}

"""Preset Prometheus queries: what a policy may name as ``preset`` instead of writing PromQL.

One table. In: a preset's name, the broker label and a selector. Out: PromQL that answers under every exporter's names,
so that nobody need know which one runs. Read by the policy's models, ``bellwether probe prometheus --presets`` and the
documentation, which a test holds against this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellwether.api.v1alpha1.spec.promql import Scope, mean_since_start, of_node, of_volume
from bellwether.core.settings.detection import Comparison

JMX = "JMX exporter"
REPORTER = "Strimzi Metrics Reporter"
BOTH = f"{JMX}, {REPORTER}"
NODE = "node exporter"
NODE_LABELLED = "node exporter with a broker label"
EBS = "EBS CSI driver"
CLOUDWATCH = "CloudWatch exporter"
BLACKBOX = "blackbox exporter"

Query = Callable[[Scope], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One ready-made query; ``threshold`` and ``peer_ratio`` are where to begin."""

    name: str
    sentence: str
    unit: str
    threshold: str
    peer_ratio: int = 0
    comparison: Comparison = Comparison.ABOVE
    leaders_only: bool = False
    needs: str = ""
    dialects: tuple[tuple[str, Query], ...]

    def query(self, scope: Scope, dialect: str = "") -> str:
        """PromQL for every dialect at once, or for one of them."""
        wanted = [make(scope) for name, make in self.dialects if dialect in ("", name)]
        return scope.either(*wanted) if len(wanted) > 1 else wanted[0]


def _quantile(metric: str, quantile: str, *matchers: str) -> Query:
    """A percentile of Kafka's own, while it still gets samples: without any it keeps its last value for good."""

    def make(scope: Scope) -> str:
        value = scope.series(metric, *matchers, f'quantile="{quantile}"')
        # From 1.0 on the JMX exporter adds _total to the name of every counter.
        count = scope.series("", f'__name__=~"{metric}_count(_total)?"', *matchers)
        return scope.worst(f"{value} and ignoring (quantile) (rate({count}[5m]) > 0)")

    return make


def _gauge(metric: str, aggregate: str = "max") -> Query:
    return lambda scope: scope.worst(scope.series(metric), aggregate)


def _handlers_by_reporter(scope: Scope) -> str:
    idle = scope.series("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total")
    return scope.worst(f"rate({idle}[2m]) / 1e9", "min")


def _handlers_by_jmx(scope: Scope) -> str:
    idle = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"
    return scope.worst(mean_since_start(scope, idle), "min")


_DISKS = 'device!~"(loop|ram|zram|sr|fd).*"'


def _disk_writes(series: Callable[..., str]) -> str:
    spent, writes = (series(f"node_disk_{name}_total", _DISKS) for name in ("write_time_seconds", "writes_completed"))
    return f"1000 * rate({spent}[2m]) / (rate({writes}[2m]) > 0)"


def _stalled_pressure(series: Callable[..., str]) -> str:
    return f"rate({series('node_pressure_io_stalled_seconds_total')}[2m])"


def _everywhere(metric: str, *matchers: str) -> str:
    return f"{metric}{{{','.join(matchers)}}}" if matchers else metric


def _of_node(figure: Callable[[Callable[..., str]], str]) -> tuple[tuple[str, Query], ...]:
    return (
        (NODE_LABELLED, lambda scope: scope.each(figure(scope.labelled))),
        (NODE, lambda scope: of_node(scope, figure(_everywhere))),
    )


def _ebs_queue(scope: Scope) -> str:
    done = [f"max by (volume_id) (rate(aws_ebs_csi_{way}_ops_total[2m]))" for way in ("read", "write")]
    waiting = "max by (volume_id) (aws_ebs_csi_volume_queue_length)"
    return of_volume(scope, f"({waiting} * on (volume_id) ({done[0]} + on (volume_id) {done[1]} == bool 0))")


def _ebs_check(scope: Scope) -> str:
    check = "aws_ebs_volume_stalled_iocheck_maximum"
    return of_volume(
        scope, f'max by (volume_id) (label_replace({check}, "volume_id", "$1", "dimension_VolumeId", "(.+)"))'
    )


def _blackbox(scope: Scope) -> str:
    return scope.each(f"avg_over_time({scope.labelled('probe_success')}[1m])", "avg")


_NODE_LABELS = (
    "the node exporter's series need the broker label, or Kafka's the labels node_name and node_ip that Strimzi's"
    " PodMonitor gives them; brokers that share a node share its figure"
)

PRESETS = (
    Preset(
        name="ProduceLocalTimeP99",
        sentence="99th percentile of the time that a produce request spends in the leader's own log.",
        unit="ms",
        threshold="200",
        peer_ratio=3,
        leaders_only=True,
        needs="RequestMetrics, which Strimzi's newest example rules for the JMX exporter leave out",
        dialects=((BOTH, _quantile("kafka_network_requestmetrics_localtimems", "0.99", 'request="Produce"')),),
    ),
    Preset(
        name="LogFlushTimeP999",
        sentence="99.9th percentile of the time of a log flush; brokers flush seldom, so it is often silent.",
        unit="ms",
        threshold="1000",
        peer_ratio=3,
        needs="kafka_log_logflushstats.* in the Metrics Reporter's allowList, which has it not by default",
        dialects=((BOTH, _quantile("kafka_log_logflushstats_logflushrateandtimems", "0.999")),),
    ),
    Preset(
        name="RequestHandlerIdle",
        sentence="Share of the last two minutes in which the request handler threads had nothing to do.",
        unit="ratio",
        threshold="0.2",
        peer_ratio=3,
        comparison=Comparison.BELOW,
        needs="process_start_time_seconds beside the JMX exporter's figure, which is a mean since the start",
        dialects=((REPORTER, _handlers_by_reporter), (JMX, _handlers_by_jmx)),
    ),
    Preset(
        name="NetworkProcessorIdle",
        sentence="Share of time in which the network threads have nothing to do.",
        unit="ratio",
        threshold="0.2",
        peer_ratio=3,
        comparison=Comparison.BELOW,
        dialects=(
            (REPORTER, _gauge("kafka_network_socketserver_networkprocessoravgidlepercent", "min")),
            (JMX, _gauge("kafka_network_socketserver_networkprocessoravgidle_percent", "min")),
        ),
    ),
    Preset(
        name="UnderReplicatedPartitions",
        sentence="Partitions led by the broker whose followers lag: it names the leader, not who lags. Use onFailing:"
        " Suspect.",
        unit="partitions",
        threshold="0",
        peer_ratio=3,
        leaders_only=True,
        dialects=((BOTH, _gauge("kafka_server_replicamanager_underreplicatedpartitions")),),
    ),
    Preset(
        name="OfflineLogDirectories",
        sentence="Log directories that the broker has given up.",
        unit="directories",
        threshold="0",
        needs="kafka_log_logmanager.* in the Metrics Reporter's allowList, which has it not by default",
        dialects=((BOTH, _gauge("kafka_log_logmanager_offlinelogdirectorycount")),),
    ),
    Preset(
        name="NodeDiskWriteLatency",
        sentence="Mean time of a write to the slowest disk of the broker's node.",
        unit="ms",
        threshold="50",
        peer_ratio=3,
        needs=_NODE_LABELS,
        dialects=_of_node(_disk_writes),
    ),
    Preset(
        name="NodeIoStalled",
        sentence="Share of time in which every task of the broker's node waited for its disks (PSI).",
        unit="ratio",
        threshold="0.5",
        peer_ratio=3,
        needs=f"a kernel with PSI; {_NODE_LABELS}",
        dialects=_of_node(_stalled_pressure),
    ),
    Preset(
        name="EbsStalledIo",
        sentence="I/O of the broker's EBS volume that waits while none completes, or CloudWatch's check for it.",
        unit="operations",
        threshold="0",
        needs="kube-state-metrics, and Kafka's series with the labels namespace and pod, to find the broker's volume",
        dialects=((EBS, _ebs_queue), (CLOUDWATCH, _ebs_check)),
    ),
    Preset(
        name="BlackboxProbe",
        sentence="Share of the blackbox exporter's probes of the last minute that reached the broker.",
        unit="ratio",
        threshold="0.5",
        comparison=Comparison.BELOW,
        needs="the broker label on each target",
        dialects=((BLACKBOX, _blackbox),),
    ),
)
BY_NAME = {preset.name: preset for preset in PRESETS}

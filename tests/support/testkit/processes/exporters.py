"""What exporters say of brokers 1, 2 and 3, in the very names and labels that each uses; broker 1 is ill since a while.

In: nothing but the clock's time. Out: ``Line`` values: a name, labels, and a value for every moment, which become a
page to scrape or a past to remember. The names are those of the JMX exporter 1.x under Strimzi's example rules, of the
Strimzi Metrics Reporter, of node exporter, kube-state-metrics, the EBS CSI driver, YACE and the blackbox exporter; the
labels those that Strimzi's PodMonitor and kube-prometheus leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Value = Callable[[float], float]
BROKERS = (1, 2, 3)
ILL = 1
DAY = 86400.0
QUANTILES = (("0.50", 0.2), ("0.75", 0.4), ("0.95", 0.7), ("0.98", 0.9), ("0.99", 1.0), ("0.999", 1.6))


@dataclass(frozen=True, slots=True)
class Line:
    """One series; ``at`` gives its value for seconds since the epoch."""

    name: str
    labels: Mapping[str, str]
    at: Value

    def text(self, when: float, stamp: str = "") -> str:
        """As a line of a page, or of a past."""
        labels = ",".join(f'{key}="{value}"' for key, value in self.labels.items())
        return f"{self.name}{{{labels}}} {self.at(when)!r}{stamp}"


def page(lines: Iterable[Line], now: float) -> str:
    """What an exporter serves at this moment."""
    return "\n".join(line.text(now) for line in lines) + "\n"


def past(lines: Iterable[Line], now: float, *, minutes: float = 20, ahead_minutes: float = 5, step: float = 15) -> str:
    """OpenMetrics text with a time on every line; it goes on a little, as a test takes its time."""
    rows = []
    for line in sorted(lines, key=lambda line: line.name):
        when = now - minutes * 60
        while when <= now + ahead_minutes * 60:
            rows.append(line.text(when, f" {when:.3f}"))
            when += step
    return "\n".join([*rows, "# EOF\n"])


@dataclass(frozen=True, slots=True)
class Site:
    """Where and since when, in seconds since the epoch; ``target`` labels a broker's series."""

    now: float
    target: Callable[[int], Mapping[str, str]]
    brokers: tuple[int, ...] = BROKERS
    ill: tuple[int, ...] = (ILL, 9)
    ill_seconds: float = 600.0
    leading: tuple[int, ...] = BROKERS
    lines: list[Line] = field(default_factory=list)

    @property
    def ill_since(self) -> float:
        """When broker 1 fell ill."""
        return self.now - self.ill_seconds

    @property
    def started(self) -> float:
        """When the brokers' processes started."""
        return self.now - 30 * DAY

    def choose(self, broker: int, well: float, ill: float) -> Value:
        """A gauge."""
        return lambda when: ill if broker in self.ill and when >= self.ill_since else well

    def grown(self, broker: int, well: float, ill: float) -> Value:
        """A counter that grows so much each second."""

        def at(when: float) -> float:
            bad = max(0.0, when - self.ill_since) if broker in self.ill else 0.0
            return well * (when - self.started - bad) + ill * bad

        return at

    def mean(self, broker: int, well: float, ill: float) -> Value:
        """A gauge that is a mean since the start."""
        grown, started = self.grown(broker, well, ill), self.started
        return lambda when: grown(when) / (when - started)

    def add(self, name: str, labels: Mapping[str, str], at: Value) -> None:
        """One more series."""
        self.lines.append(Line(name, labels, at))

    def jmx(self, counted: str = "_count_total") -> Site:
        """The JMX exporter; before 1.0 it left a counter's name as it was: ``counted`` = ``_count``."""
        for broker in self.brokers:
            labels = self.target(broker)
            self._kafka(broker, counted, median="0.50")
            self.add(
                "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
                labels,
                self.mean(broker, 0.9, 0.05),
            )
            self.add(
                "kafka_network_socketserver_networkprocessoravgidle_percent", labels, self.choose(broker, 0.98, 0.02)
            )
            self.add("process_start_time_seconds", labels, _always(self.started))
        return self

    def default_names(self) -> Site:
        """The JMX exporter without rules, as on Amazon MSK."""
        for broker in self.brokers:
            labels = self.target(broker)
            local = {**labels, "name": "LocalTimeMs", "request": "Produce"}
            self.add("kafka_network_RequestMetrics_99thPercentile", local, self.choose(broker, 2.0, 850.0))
            rate = 50.0 if broker in self.leading else 0.0
            self.add("kafka_network_RequestMetrics_Count", local, self.grown(broker, rate, rate))
            for bean, name, well, ill in (
                ("server_KafkaRequestHandlerPool_OneMinuteRate", "RequestHandlerAvgIdlePercent", 0.9, 0.05),
                ("network_SocketServer_Value", "NetworkProcessorAvgIdlePercent", 0.98, 0.02),
                ("server_ReplicaManager_Value", "UnderReplicatedPartitions", 0, 17),
                ("log_LogManager_Value", "OfflineLogDirectoryCount", 0, 1),
            ):
                self.add(f"kafka_{bean}", {**labels, "name": name}, self.choose(broker, well, ill))
        return self

    def bitnami(self) -> Site:
        """The JMX exporter with the rules of Bitnami's chart."""
        for broker in self.brokers:
            network, replicas = "kafka_network_socketserver", "kafka_server_replicamanager"
            idle = self.choose(broker, 0.98, 0.02)
            self.add(f"{network}_networkprocessoravgidlepercent_value", self.target(broker), idle)
            lagging = self.choose(broker, 0, 17)
            self.add(f"{replicas}_total_underreplicatedpartitions_value", self.target(broker), lagging)
        return self

    def kafka_exporter(self) -> Site:
        """kafka_exporter: the leader of each partition, and whether followers lag, of 17 of 20 that are ill."""
        for broker in self.brokers:
            for partition in range(20):
                labels = {**self.target(0), "topic": "orders", "partition": str(20 * broker + partition)}
                self.add("kafka_topic_partition_leader", labels, _always(broker))
                lagging = self.choose(broker, 0, 1 if partition < 17 else 0)
                self.add("kafka_topic_partition_under_replicated_partition", labels, lagging)
        return self

    def reporter(self) -> Site:
        """The Strimzi Metrics Reporter, with an allowList that has everything."""
        for broker in self.brokers:
            labels = self.target(broker)
            self._kafka(broker, "_count", median="0.5")
            self.add(
                "kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total",
                labels,
                self.grown(broker, 0.9e9, 0.05e9),
            )
            self.add(
                "kafka_network_socketserver_networkprocessoravgidlepercent", labels, self.choose(broker, 0.98, 0.02)
            )
        return self

    def _kafka(self, broker: int, counted: str, median: str) -> None:
        """What both exporters name alike."""
        labels = self.target(broker)
        local, flush = "kafka_network_requestmetrics_localtimems", "kafka_log_logflushstats_logflushrateandtimems"
        remote_time = "kafka_network_requestmetrics_remotetimems"
        for quantile, share in QUANTILES:
            for request, well, ill in (("Produce", 2.0, 850.0), ("FetchConsumer", 0.0, 3.0)):
                at = self.choose(broker, well * share, ill * share)
                self.add(local, {**labels, "quantile": quantile, "request": request}, at)
            remote = {**labels, "quantile": median if quantile == "0.50" else quantile, "request": "Produce"}
            self.add(remote_time, remote, self.choose(broker, 0, 20 * share))
            self.add(flush, {**labels, "quantile": quantile}, self.choose(broker, 20 * share, 2600 * share))
        for request in ("Produce", "FetchConsumer"):
            rate = 50.0 if broker in self.leading else 0.0
            self.add(f"{local}{counted}", {**labels, "request": request}, self.grown(broker, rate, rate))
            self.add(f"{remote_time}{counted}", {**labels, "request": request}, self.grown(broker, rate, rate))
        self.add(f"{flush}{counted}", labels, self.grown(broker, 0.1, 0.1))
        replicas = "kafka_server_replicamanager"
        self.add(f"{replicas}_partitioncount", labels, _always(120))
        self.add(f"{replicas}_leadercount", labels, _always(40))
        self.add(f"{replicas}_underreplicatedpartitions", labels, self.choose(broker, 0, 17))
        self.add("kafka_log_logmanager_offlinelogdirectorycount", labels, self.choose(broker, 0, 1))

    def nodes(self, target: Callable[[int], Mapping[str, str]]) -> Site:
        """Node exporters, one next to each broker, with a root disk, a broker's disk and a loop device."""
        for broker in self.brokers:
            labels = target(broker)
            for device, well, ill in (("nvme0n1", 0.001, 0.001), ("nvme1n1", 0.001, 0.12), ("loop0", 5.0, 5.0)):
                disk = {**labels, "device": device}
                self.add("node_disk_writes_completed_total", disk, self.grown(broker, 100, 8))
                self.add("node_disk_write_time_seconds_total", disk, self.grown(broker, 100 * well, 8 * ill))
            self.add("node_pressure_io_stalled_seconds_total", labels, self.grown(broker, 0.01, 0.93))
        return self

    def claims(self) -> Site:
        """kube-state-metrics of the brokers' volumes, and of a stranger's ill one whose claim is named like theirs."""
        ksm = {"job": "kube-state-metrics", "instance": "10.1.9.9:8080"}
        claims = [("kafka", f"data-0-main-broker-{broker}", f"{broker}") for broker in self.brokers]
        for namespace, claim, number in [*claims, ("shop", "data-postgres-2", "9")]:
            named = {**ksm, "namespace": namespace, "persistentvolumeclaim": claim, "volumename": f"pvc-{number}"}
            self.add("kube_persistentvolumeclaim_info", {**named, "storageclass": "gp3"}, _always(1))
            volume = {**ksm, "persistentvolume": f"pvc-{number}", "csi_driver": "ebs.csi.aws.com"}
            self.add("kube_persistentvolume_info", {**volume, "csi_volume_handle": f"vol-0{number}"}, _always(1))
        return self

    def ebs(self) -> Site:
        """The EBS CSI driver's node metrics: I/O waits at broker 1's volume, and none completes."""
        for number in (*self.brokers, 9):
            labels = {"instance_id": f"i-{number}", "volume_id": f"vol-0{number}", "job": "ebs-csi-node"}
            self.add("aws_ebs_csi_volume_queue_length", labels, self.choose(number, 2, 37))
            for way in ("read", "write"):
                self.add(f"aws_ebs_csi_{way}_ops_total", labels, self.grown(number, 40, 0))
        return self

    def cloudwatch(self) -> Site:
        """VolumeStalledIOCheck as YACE exports it."""
        for number in (*self.brokers, 9):
            labels = {"dimension_VolumeId": f"vol-0{number}", "region": "eu-west-1", "name": f"arn:vol-0{number}"}
            self.add("aws_ebs_volume_stalled_iocheck_maximum", labels, self.choose(number, 0, 1))
        return self

    def blackbox(self) -> Site:
        """The blackbox exporter's TCP probe of each broker's external address."""
        for broker in self.brokers:
            labels = {"job": "blackbox", "instance": f"b{broker}.kafka.example.com:9094", "broker": str(broker)}
            self.add("probe_success", labels, self.choose(broker, 1, 0))
        return self


def _always(value: float) -> Value:
    return lambda _when: float(value)


def pod_monitor(broker: int, cluster: str = "main") -> dict[str, str]:
    """Labels that Strimzi's example PodMonitor gives a broker's series."""
    return {
        "job": f"kafka/{cluster}",
        "instance": f"10.{len(cluster)}.0.{broker}:9404",
        "namespace": "kafka",
        "pod": f"{cluster}-broker-{broker}",
        "kubernetes_pod_name": f"{cluster}-broker-{broker}",
        "strimzi_io_cluster": cluster,
        "strimzi_io_pod_name": f"{cluster}-broker-{broker}",
        "node_name": f"node-{'abc'[broker - 1]}",
        "node_ip": f"192.168.0.{10 + broker}",
    }


def pool(broker: int, name: str, namespace: str, first: int) -> dict[str, str]:
    """Labels of a StatefulSet's pod, numbered from 0, whose first broker has the id ``first``."""
    pod = f"{name}-{broker - first}"
    return {"job": "kafka", "instance": f"10.{first}.0.{broker}:5556", "namespace": namespace, "pod": pod}


def msk(broker: int) -> dict[str, str]:
    """Labels of a broker of Amazon MSK's open monitoring: its address alone."""
    return {"job": "msk", "instance": f"b-{broker}.demo.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:11001"}


def host(broker: int) -> dict[str, str]:
    """Labels of a broker on a machine of its own, as an inventory gives them."""
    return {"job": "kafka", "instance": f"kafka-{'abc'[broker - 1]}.example.com:7071", "broker": str(broker)}


def node_by_address(broker: int) -> dict[str, str]:
    """Labels of a node exporter that is scraped by its address; its own pod's name ends in a number."""
    return {"job": "node-exporter", "instance": f"192.168.0.{10 + broker}:9100", "pod": f"node-exporter-{70 + broker}"}


def node_by_name(broker: int) -> dict[str, str]:
    """Labels of a node exporter that is scraped by its node's name."""
    return {"job": "node-exporter", "instance": f"10.9.9.{broker}:9100", "node": f"node-{'abc'[broker - 1]}"}


def node_of_host(broker: int) -> dict[str, str]:
    """Labels of a node exporter that an inventory gives the broker's id."""
    return {"job": "node", "instance": f"kafka-{'abc'[broker - 1]}.example.com:9100", "broker": str(broker)}

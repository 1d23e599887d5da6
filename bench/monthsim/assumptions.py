"""Every number that the simulated world rests on, with its source: written once, here.

A rate counts events in a month of 30 days. ``SOURCES`` says where each number comes from; a number that no one has
published says so, and the sensitivity run halves and doubles every one of them. The rates of injected faults are no
claim about nature: they only have to give enough faults to measure by.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

MONTH_SECONDS = 30 * 86_400.0
CLUSTER_SIZES = (3, 6, 12, 30)
VANTAGES = 3
RACKS = 3
REPLICAS = 3
LEADERS = 10
"""Partitions that each broker leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What happens in a month that is no fault of one broker's, and how often."""

    gc_pauses: float = 2.0
    gc_seconds: float = 6.0
    vm_freezes: float = 0.5
    vm_freeze_seconds: float = 2.0
    long_freezes: float = 1 / 18
    long_freeze_seconds: float = 30.0
    crashes: float = 0.3
    rolling_restarts: float = 1.0
    restart_seconds: float = 100.0
    slow_balancer_share: float = 0.5
    slow_balancer_seconds: float = 135.0
    fast_balancer_seconds: float = 12.0
    vantage_outages: float = 2.0
    vantage_outage_seconds: float = 60.0
    path_outages: float = 2.0
    loss_bursts: float = 10.0
    loss_seconds: float = 10.0
    loss_share: float = 0.6
    shared_loss_bursts: float = 0.1
    prober_silences: float = 1.0
    prober_silence_seconds: float = 120.0
    everybody_cut: float = 0.1
    disk_median_seconds: float = 0.00126
    disk_sigma: float = 0.484
    hiccups: float = 4.0
    hiccup_seconds: float = 2.0
    bursty_disks: float = 0.05
    slow_syncs: float = 0.2
    slow_sync_seconds: float = 2.0
    acks_all_share: float = 0.5
    fetcher_appends: float = 20.0
    metadata_log_share: float = 0.5
    waves: float = 4.0
    wave_factor: float = 5.0
    wave_skew: float = 0.3
    wave_seconds: float = 900.0
    external_delay_seconds: float = 0.03
    report_seconds: float = 0.2

    def scaled(self, name: str, factor: float) -> Assumptions:
        """The same world with one number multiplied; a share stays below one."""
        value = getattr(self, name) * factor
        return replace(self, **{name: min(0.95, value) if name.endswith("_share") else value})


NAMES: tuple[str, ...] = tuple(f.name for f in fields(Assumptions))

_UNPUBLISHED = "no published figure found; chosen, and varied in the sensitivity run"
_AZURE = "Microsoft, 'Maintenance for virtual machines in Azure'"
_NLB = "AWS, 'Health checks for Network Load Balancer target groups': every 30 s, 5 successes by default"
_PATHS = "Feamster et al., 'Measuring the Effects of Internet Path Faults on Reactive Routing', SIGMETRICS 2003"
_FIO = "MaGe Linux Operations, fio --fdatasync=1 on an EBS volume: mean 1.42 ms, deviation 0.73 ms, p99 2.67 ms"
_LOSS = "'Measurement and interpretation of Internet packet loss': most loss comes in few bursts, and in one direction"
_FEWER = "Strimzi and Kafka operators' rolling restarts follow each patch, configuration or certificate change; " + (
    _UNPUBLISHED
)

SOURCES: dict[str, str] = {
    "gc_pauses": f"per broker: {_UNPUBLISHED}",
    "gc_seconds": "uniform, half to one and a half of this: 3-9 s, up to Kafka's broker.session.timeout.ms (9 s)",
    "vm_freezes": f"per broker: {_UNPUBLISHED}",
    "vm_freeze_seconds": f"median; log-normal with p99 at five times it: {_AZURE}: 'almost always' below 10 s",
    "long_freezes": f"per broker: {_AZURE}: 'no more than once every 18 months'",
    "long_freeze_seconds": f"{_AZURE}: 'about 30 seconds'",
    "crashes": f"per broker, restarted at once: {_UNPUBLISHED}",
    "rolling_restarts": f"per cluster: {_FEWER}",
    "restart_seconds": "uniform, a fifth to nine fifths of this: 20-180 s",
    "slow_balancer_share": f"brokers behind a balancer with default health checks: {_UNPUBLISHED}",
    "slow_balancer_seconds": f"uniform within a ninth of this, 120-150 s: {_NLB}",
    "fast_balancer_seconds": "uniform, 0.4 to 1.6 of this: a check each 1-5 s, three to be healthy",
    "vantage_outages": f"per vantage, all brokers unseen: {_UNPUBLISHED}",
    "vantage_outage_seconds": f"median; log-normal, sigma 1.5: {_PATHS}: 'most' end within 15 minutes",
    "path_outages": f"per vantage, one rack unseen: {_UNPUBLISHED}; as long as a vantage's outage",
    "loss_bursts": f"per vantage, all brokers: {_UNPUBLISHED}",
    "loss_seconds": f"median; log-normal, sigma 1: {_LOSS}; the length is chosen",
    "loss_share": f"log-uniform from 2 % up to this share of packets within a burst; one direction: {_LOSS}",
    "shared_loss_bursts": f"per cluster, from all vantages at once: {_UNPUBLISHED}; as often as the path is lost whole",
    "prober_silences": f"per vantage, its process gone: {_UNPUBLISHED}",
    "prober_silence_seconds": "uniform, a quarter to seven quarters of this: a pod is rescheduled",
    "everybody_cut": f"per cluster, the whole external path gone for 5 minutes: {_UNPUBLISHED}",
    "disk_median_seconds": _FIO,
    "disk_sigma": f"log-normal: {_FIO}",
    "hiccups": f"per broker: {_UNPUBLISHED}; AWS promises gp3 its performance for 99 % of the time",
    "hiccup_seconds": f"median; log-normal with p99 at five times it, as {_AZURE}; half stall, half take 60-500 ms",
    "bursty_disks": "per broker: 100 ms for 1 s in every 10, for an hour: chosen",
    "slow_syncs": f"per broker, writes as fast as ever: {_UNPUBLISHED}; a device of 20 writes a second does so "
    "(docs/internals/cures.md); a minute to two hours long, log-uniform: assumed",
    "slow_sync_seconds": "median; log-normal, sigma 1, at least 0.5 s: assumed",
    "acks_all_share": "of the requests to what a broker leads: acks=all is the default of producers since Kafka 3.0 "
    "(KIP-679), and about as many requests read: assumed",
    "fetcher_appends": "a second for each replica fetcher, median of clusters; log-normal, sigma 1: the small load of "
    "docs/internals/cures.md with num.replica.fetchers=1, Kafka's default: assumed",
    "metadata_log_share": "clusters whose metadata log hangs with the data: metadata.log.dir is the first of "
    "log.dirs by default: assumed",
    "waves": f"per cluster: {_UNPUBLISHED}; linkedin/cruise-control issue 975 names traffic shifts as what misleads",
    "wave_factor": "median factor on every disk's latency; log-normal, sigma 1: chosen",
    "wave_skew": "log-normal sigma of one broker's share in a wave: chosen",
    "wave_seconds": "median; log-normal, sigma 0.7: chosen",
    "external_delay_seconds": "what TLS and a load balancer add to an answer from outside: chosen",
    "report_seconds": "uniform, up to twice this: from a prober's news to the operator's turn: chosen after the real "
    "parts' runs",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRates:
    """How many real faults are injected: per broker and month, those of a zone per cluster."""

    external_cut: float = 0.05
    external_blackhole: float = 0.05
    zone_cut: float = 0.1
    freezing: float = 0.05
    disk_slow: float = 0.05
    disk_stalled: float = 0.03
    disk_degraded: float = 0.05
    broker_down: float = 0.05


FAULT_SOURCES: dict[str, str] = {
    "external_cut": "the listener refuses, the broker is well inside; 5 minutes to 4 hours, median 30 minutes",
    "external_blackhole": "packets vanish; as long as a cut",
    "zone_cut": "one rack's load balancer is gone: a third of the brokers; as long as a cut",
    "freezing": "frozen for 2-8 s, then answering for 2-8 s, again and again; in half both are drawn again each "
    "time, from 1 s on; below broker.session.timeout.ms (9 s), for 1-30 minutes, log-uniform; as often as a cut: small "
    "heaps, CPU limits and migrated hosts are as ordinary as broken paths, and no published rate was found",
    "disk_slow": "every write 80-500 ms for 2-4 hours; Lu et al., 'Perseus', FAST 2023: 304 such drives of 248,000 in "
    "10 months",
    "disk_stalled": "writes never end, for 1-4 hours; AWS FIS 'Pause I/O' is the same fault",
    "disk_degraded": "writes take 200-500 ms for 1-10 minutes: PlanetScale, 'The Real Failure Rate of EBS' (2025)",
    "broker_down": "the process or its host dies; Kafka fences it after its session timeout",
}

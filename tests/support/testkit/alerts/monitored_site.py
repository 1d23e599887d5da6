"""A site that is watched: operators and probers of its own, scraped by a real Prometheus with the chart's rules.

In: a ``Site`` with a policy. Out: which alerts fire, and what PromQL answers. The rules' times are shortened
(``alert_rules.shortened``); everything else is as it is installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from realparts.processes import ManagedProcess
from realparts.prometheus import PrometheusServer
from testkit.alerts import alert_rules
from testkit.kafka.formatted_directories import formatted
from testkit.loads import load_configs
from testkit.processes.sites import POLICY, Site

ZONES = ("zone-a", "zone-b")
JOB = "bellwether"
WAVES = {"steps": [50, 100], "pauseSeconds": 5, "skipUpToLeaders": 1}


@contextmanager
def monitored_site(
    server: ApiServer, kafka: KafkaCluster, directory: Path, namespace: str = ""
) -> Iterator[WatchedSite]:
    """An enforcing policy with two vantages, probers of three kinds, and an operator; all of it scraped.

    Two partitions have their only replica on broker 2; restored leaders return in two waves.
    """
    site = Site(server, kafka, directory, namespace)
    watched = WatchedSite(site, directory)
    try:
        lonely = f"{site.topic}-lonely"
        site.topics({site.topic: 30, lonely: 2}, assignments={lonely: [[2], [2]]})
        site.policy(
            detection={"externalReachability": {"vantages": list(ZONES)}, "replicationLag": {"enabled": True}},
            demotion={"maxBrokers": 1},
            promotion={"stabilizationSeconds": 2, "waves": WAVES},
        )
        watched.operator()
        site.until_reported()
        watched.vantages()
        watched.prober("replication", "replication")
        for broker in (1, 2, 3):
            disk = formatted(directory / f"disk-{broker}", broker, kafka.cluster_id)
            watched.prober("storage", f"storage-{broker}", "--directory", disk)
        watched.watch("operator-2")
        yield watched
    finally:
        watched.close()
        kafka.mend()
        site.close()


class WatchedSite:
    """Operator, probers and Prometheus around a site. End it before the site."""

    def __init__(self, site: Site, directory: Path) -> None:
        self.site = site
        self.ports: dict[str, int] = {}
        self.processes: dict[str, ManagedProcess] = {}
        self.store = directory / "store"
        self._directory = directory
        self._prometheus: PrometheusServer | None = None

    @property
    def prometheus(self) -> PrometheusServer:
        """The server that watches."""
        assert self._prometheus is not None, "watch() comes first"
        return self._prometheus

    def operator(self, name: str = "operator") -> ManagedProcess:
        """Start an operator; under a name that ran before, in its place."""
        config = load_configs.options(self._directory, str(self.store))
        process = self.site.operator("--metrics-port", str(self._port(name)), *config)
        self.processes[name] = process
        return process

    def prober(self, kind: str, name: str, *arguments: str | Path) -> ManagedProcess:
        """Start a prober of that kind."""
        command = [sys.executable, "-m", "bellwether", "probe", kind, "--policy", POLICY, "-n", self.site.namespace]
        served = ("--metrics-port", str(self._port(name)))
        self.processes[name] = self.site.start(name, [*command, *served, *arguments])
        return self.processes[name]

    def vantages(self) -> None:
        """Start a prober of external reachability in each zone."""
        for zone in ZONES:
            self.prober("reachability", zone, "--vantage", zone)

    def watch(self, *expected: str) -> None:
        """Start Prometheus, which scrapes all that has been started, and what is expected to be."""
        for name in expected:
            self._port(name)
        targets = {f"127.0.0.1:{port}": {"pod": name} for name, port in self.ports.items()}
        rules = alert_rules.shortened(self._directory / "rules")
        self._prometheus = PrometheusServer(self._directory / "prometheus", targets=targets, rules=rules, job=JOB)
        self._prometheus.start()

    def ask(self, promql: str) -> list[dict[str, Any]]:
        """The series that a query gives."""
        return self.prometheus.query(promql)

    def firing(self) -> list[dict[str, str]]:
        """The labels of every alert that fires."""
        return [one["metric"] for one in self.ask('ALERTS{alertstate="firing"}')]

    def noise(self) -> list[dict[str, str]]:
        """The alerts that fire, but for the one whose window keeps a fault in mind for minutes."""
        return [found for found in self.firing() if found["alertname"] != "BellwetherErrorBudgetBurnSlow"]

    def fires(self, alert: str, labels: Mapping[str, str] | None = None) -> bool:
        """Whether an alert fires with these labels, others aside."""
        wanted = {"alertname": alert, **(labels or {})}
        return any(wanted.items() <= found.items() for found in self.firing())

    def until_fires(self, alert: str, seconds: float = 120, **labels: str) -> float:
        """Wait until an alert fires."""
        what = f"{alert} fires {labels or ''}"
        return self.site.until(lambda: self.fires(alert, labels), seconds, what, self.firing)

    def until_quiet(self, alerts: Sequence[str], seconds: float = 150) -> float:
        """Wait until none of these alerts fires."""
        return self.site.until(
            lambda: not any(self.fires(alert) for alert in alerts), seconds, f"{alerts} stop", self.firing
        )

    def annotations(self) -> dict[str, dict[str, str]]:
        """What the alerts that are active say, by name."""
        return {alert["labels"]["alertname"]: alert["annotations"] for alert in self.prometheus.alerts()}

    def close(self) -> None:
        """End Prometheus; the site ends the rest."""
        if self._prometheus is not None:
            self._prometheus.stop()

    def _port(self, name: str) -> int:
        if name not in self.ports:
            self.ports[name] = self.site.free_port()
        return self.ports[name]

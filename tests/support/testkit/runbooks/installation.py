"""An installation to follow the runbooks on: a release of the chart, its processes, policies, brokers and Prometheus.

In: an API server and a Kafka cluster. Out: policies ``main`` (watched by probers, with a load plan), ``second`` (for
the same cluster), ``moved`` (pinned to another one) and ``secretless``; brokers that break; and commands of the pages,
run as an administrator, as the person on call or as in a container of the chart.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import POLICIES, Object
from bellwether.adapters.kubernetes.objects.event_recorder import EventWriter
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.core.reasons import Reason
from bellwether_load.store.filesystems import Store
from realparts import kafka_tools, kubernetes_binaries, strimzi
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from realparts.kafka_topics import admin, delete_topics
from realparts.prometheus import PrometheusServer
from sourcetree import ROOT
from testkit.alerts import alert_rules
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.api_objects import LOADS
from testkit.processes import person_shell
from testkit.processes.person_shell import Ended
from testkit.processes.plan_jobs import complete, waiting_job
from testkit.processes.sites import POLICY, Site
from testkit.runbooks.chart_release import (
    CREDENTIALS,
    HOME,
    MISSING,
    OPERATOR,
    PROBERS,
    REPLICA,
    STRIMZI,
    ZONES,
    ChartRelease,
    pod,
)
from testkit.runbooks.page_commands import filled
from testkit.simulation.rebalance_fixture import Planner
from testkit.values.quarantine_inputs import ordered
from waiting import limit

SICK, FROZEN, LEFT = 1, 2, 3
ON_CALL = "on-call"


class Installation:
    """See the module. ``close`` ends it."""

    def __init__(self, server: ApiServer, kafka: KafkaCluster, directory: Path) -> None:
        self.server = server
        self.kafka = kafka
        self.site = Site(server, kafka, directory)
        self.directory = directory
        self.health_port = self.site.free_port()
        self.lonely, self.pair = (f"{self.site.topic}-{name}" for name in ("lonely", "pair"))
        self._ended: dict[tuple[str, str], Ended] = {}
        self._prometheus: PrometheusServer | None = None
        server.apply(ROOT / "crds", strimzi.definitions())
        self.release = ChartRelease(server, self.site.namespace, directory)
        self.release.apply(*(self._certificate(name) for name in (CREDENTIALS, f"{STRIMZI}-cluster-ca-cert")))
        for role in ("edit", "rebalance"):
            name = self.release.named("ClusterRole", f"-{HOME}-{role}")["metadata"]["name"]
            bound = (f"--clusterrole={name}", f"--user={ON_CALL}")
            self.site.kubectl("create", "rolebinding", f"{ON_CALL}-{role}", *bound)
        self._tools = directory / "tools"
        kafka_tools.install(self._tools)
        (self._tools / "kubectl").symlink_to(kubernetes_binaries.kubectl())
        (directory / "crds").symlink_to(ROOT / "crds")
        self.placeholders = self._placeholders()

    # What is so

    def begin(self) -> None:
        """Topics, policies, the operator and the probers by the chart's accounts and arguments; all is healthy.

        The pages' commands tell of every topic, so those that other tests have left go first.
        """
        delete_topics(self.kafka.bootstrap, admin(self.kafka.bootstrap).list_topics(timeout=limit(20)).topics)
        site, skewed = self.site, [[1, 2, 3]] * 6 + [[2, 3, 1], [3, 1, 2]] * 3
        placed = {site.topic: skewed, self.pair: [[FROZEN, LEFT]]}
        site.topics({site.topic: 12, self.pair: 1}, assignments=placed, configs={"min.insync.replicas": "2"})
        self.make_policy()
        site.policy("secretless", kafka=self._secretless())
        site.policy("moved")
        site.api.merge(POLICIES, site.namespace, "moved", {"status": {"clusterId": "A" * 22}}, sub="status")
        self._start()
        site.until(
            lambda: [site.verdict(b)[0] for b in (SICK, FROZEN, LEFT)] == ["Healthy"] * 3, 120, "all are healthy"
        )
        site.policy("second")
        site.kubectl("annotate", "lr", LOADS, "bellwether.dev/rebalance=now")
        self.plan()

    def make_policy(self, **more: Any) -> None:
        """The policy ``main``."""
        reachability = {"externalReachability": {"vantages": list(ZONES)}}
        self.site.policy(detection=reachability, rebalance={"waves": {"pauseSeconds": 0}}, **more)

    def plan(self) -> None:
        """Do the work of the Job that plans, and give it a pod; its plan is proposed."""
        job = waiting_job(self.site)
        planner = Planner(Store.open(self.placeholders["STORE"]), policy=(self.site.namespace, POLICY))
        name = complete(self.site, job, planner)
        self.release.apply(pod(self.site.namespace, job["metadata"]["name"], job["spec"]["template"]))
        self.site.until(
            lambda: self.site.rebalance().get("state") == "Proposed", 60, "a plan is proposed", self.site.rebalance
        )
        self.placeholders |= {"JOB": job["metadata"]["name"], "PROBLEM": name, "LOADS": name}
        self.placeholders["DIGEST"] = self.site.rebalance()["digest"]

    def break_brokers(self) -> None:
        """Broker 1 is cut off and demoted, broker 2 is frozen and fenced, broker 3 is left."""
        site = self.site
        assert self.kafka.proxy is not None
        site.topics({self.lonely: 2}, assignments={self.lonely: [[FROZEN], [SICK]]})
        site.change(placement={"racks": ["eu-west-9z"]})
        self.kafka.proxy.cut(f"broker-{SICK}")
        site.until(lambda: site.led_by(SICK) == 1, 60, "broker 1 leads what it alone has", site.partitions)
        self.kafka.broker(FROZEN).pause()
        site.until(lambda: site.verdict(FROZEN) == ("Down", "BrokerDown"), 60, "broker 2 is fenced", site.ready)
        site.until(lambda: site.ready()[0] == "OfflinePartitions", 60, "the policy says so", site.ready)
        self._leave_traces()

    def close(self) -> None:
        """End every process."""
        self.kafka.mend()
        if self._prometheus is not None:
            self._prometheus.stop()
        self.site.close()

    # What people type

    def run(self, text: str, page: str = "", deployment: str = "") -> Ended:
        """Run a command of a page as an administrator, or as in a Deployment's container; the same one once."""
        command = self.filled(text, page)
        if (command, deployment) not in self._ended:
            self._ended[command, deployment] = self.shell(command, self.environment(deployment))
        return self._ended[command, deployment]

    def act(self, text: str, **others: str) -> Ended:
        """Run a command of a page as the person on call, who may write policies and overrides in the namespace."""
        return self.shell(filled(text, {**self.placeholders, **others}), self.person())

    def shell(self, command: str, environment: Mapping[str, str]) -> Ended:
        """Run a command in a shell."""
        return person_shell.run(["/bin/sh", "-c", command], environment, self.directory)

    def ask(self, text: str, page: str) -> list[dict[str, Any]]:
        """The series that a query of a page gives. Raises RuntimeError for one that is no PromQL."""
        assert self._prometheus is not None, "begin() comes first"
        return self._prometheus.query(self.filled(text, page))

    def environment(self, deployment: str = "", user: str | None = None) -> dict[str, str]:
        """Variables of the shell of an administrator or of ``user``, or of one in a Deployment's container."""
        path = f"{self._tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        variables = person_shell.environment(self.server, self.directory, user) | {"PATH": path}
        return {**variables, **(self.release.variables(deployment) if deployment else {})}

    def person(self) -> dict[str, str]:
        """Variables of the shell of the person on call."""
        return self.environment(user=ON_CALL)

    # The values of placeholders

    def filled(self, text: str, page: str = "") -> str:
        """A command of a page with its placeholders replaced."""
        return filled(text, {**self.placeholders, **self._of_page(page)})

    def _placeholders(self) -> dict[str, str]:
        secure = self.kafka.broker(LEFT).secure
        assert secure is not None, "the cluster was made without sasl_ssl"
        return {
            "NAME": POLICY,
            "NAMESPACE": self.site.namespace,
            "BELLWETHER": HOME,
            "BROKER": str(SICK),
            "HOST:PORT": self.kafka.broker(LEFT).internal,
            "BROKER:PORT": secure,
            "POD": f"{PROBERS[0]}-{REPLICA}",
            "ACCOUNT": PROBERS[0],
            "VANTAGE": ZONES[0],
            "SECRET": CREDENTIALS,
            "CLUSTER": STRIMZI,
            "TOPIC": self.lonely,
            "WHY": "'disk is being replaced'",
            "STORE": f"{self.release.store}/{self.site.namespace}/{POLICY}",
            "DIRECTORY": "exports",
        }

    @staticmethod
    def _of_page(page: str) -> Mapping[str, str]:
        """What a page's placeholders represent instead: the policy or the broker that its alert is about."""
        broker_pod = {"POD": f"{STRIMZI}-brokers-{REPLICA}"}
        return {
            "BellwetherBrokerDown": {"BROKER": str(FROZEN)},
            "BellwetherBrokerHeldWithoutOrder": {"NAME": "second", "BROKER": str(FROZEN), **broker_pod},
            "BellwetherClusterChanged": {"NAME": "moved"},
            "BellwetherClusterClaimed": {"NAME": "second"},
            "BellwetherKafkaAuthenticationFailing": {"NAME": "secretless"},
            "BellwetherNoActiveOperator": {"NAME": "secretless"},
            "BellwetherQuarantineNotApplied": broker_pod,
            "BellwetherReconcileFailing": {"NAME": "secretless"},
            "runbook": {"POD": f"{OPERATOR}-{REPLICA}"},
        }.get(page, {})

    def _start(self) -> None:
        """Operator, probers, and Prometheus with the chart's rules."""
        targets = {}
        for name in (OPERATOR, *PROBERS):
            port = self.site.free_port()
            targets[f"127.0.0.1:{port}"] = {"pod": f"{name}-{REPLICA}"}
            health = [f"--health-port={self.health_port}"] if name == OPERATOR else []
            command = self.release.command(name, f"--metrics-port={port}", *health)
            self.site.start(name, command, self.release.variables(name))
        rules = alert_rules.files()
        self._prometheus = PrometheusServer(self.directory / "prometheus", targets=targets, rules=rules, job=HOME)
        self._prometheus.start()

    def _leave_traces(self) -> None:
        """What other faults leave behind: events, an order to hold a broker, a rebalance of Strimzi's."""
        events, about = EventWriter(self.site.api, SystemClock(), OPERATOR), self.site.policy_now()
        events.post(about, Reason.INVALID_POLICY, "spec.x: unknown field", warning=True)
        events.post(about, Reason.REPLICA_SET_CONFLICT, "orders-7: the replica set changed", warning=True)
        LeaseOrders(self.site.api, HOME, f"{self.site.namespace}/second").keep({FROZEN: ordered(FROZEN)})
        moving = strimzi_objects.rebalance("my-rebalance", "Rebalancing", self.site.namespace, STRIMZI)
        kind = strimzi_objects.resource("kafkarebalances", "KafkaRebalance", "v1")
        self.release.apply({"apiVersion": kind.api_version, "kind": kind.kind, **moving})

    def _secretless(self) -> Object:
        known = self.kafka.security
        assert known is not None
        sasl = {"mechanism": "SCRAM-SHA-512", "username": known.username, "passwordSecretName": MISSING}
        return {"bootstrapServers": known.bootstrap.split(","), "sasl": sasl, "tls": {"caSecretName": CREDENTIALS}}

    def _certificate(self, name: str) -> Object:
        known = self.kafka.security
        assert known is not None
        text = base64.b64encode(known.ca.read_bytes()).decode()
        metadata = {"name": name, "namespace": self.site.namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"ca.crt": text, "user.crt": text}}

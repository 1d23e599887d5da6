"""The quick start of ``docs/install.md``, followed by a stranger on a whole node, from a registry with the release.

Then ``examples/several-clusters``, and an upgrade during a demotion. It runs before the tests that share one
installation, and leaves none.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether import __version__
from chartvalues.platform_values import REGISTRY
from node.addresses import HOST_END
from node.kubectl import eventually
from realparts import gotools, kubernetes_binaries
from realparts.kafka_topics import create_topics, delete_topics
from realparts.registry import Registry
from sourcetree import ROOT
from waiting import limit, ran, until

if TYPE_CHECKING:
    from node.kubectl import Kubectl
    from node.places import Places
    from nodeparts.kafka_on_node import KafkaOnNode
    from nodeparts.kafka_pods import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

EXAMPLE = ROOT / "examples" / "several-clusters"
BROKERS = 3
CUT = 2
NEXT = "99.0.0"
MANY = "many"
"""A topic whose partitions are moved one by one, which takes longer than an upgrade."""
# The node is the only one of both zones.
STANDS_FOR = {
    f"oci://{REGISTRY}/charts/bellwether": "oci://{registry}/charts/bellwether --plain-http",
    "kafka-bootstrap.kafka:9092": "{bootstrap}",
    "[eu-west-1b]": "[eu-west-1a]",
    "watchNamespaces: [kafka]": "watchNamespaces: [kafka, payments, clicks]",
}
ZONE = "topology.kubernetes.io/zone=eu-west-1a"


@dataclass(frozen=True, slots=True)
class Page:
    """The quick start: its commands, and its files by name; how to test the release, and to upgrade to the next."""

    commands: Sequence[str]
    files: Mapping[str, str]
    check: str
    upgrade: str


def quick_start(bootstrap: Sequence[str], registry: str) -> Page:
    """What the page says, with the words replaced that it says to replace."""
    text = (ROOT / "docs" / "install.md").read_text()
    for word, replacement in STANDS_FOR.items():
        text = text.replace(word, replacement.format(bootstrap='", "'.join(bootstrap), registry=registry))
    section = re.search(r"^## Quick start\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    assert section is not None
    commands, *files = re.findall(r"^```(?:yaml)?\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)
    names = re.findall(r"^`([\w.]+)`[:,]", section[1], re.MULTILINE)
    check = re.search(r"`(helm test [^`]+)`", text)
    upgrade = re.search(r"^    (helm upgrade .+)$", text, re.MULTILINE)
    assert check is not None
    assert upgrade is not None
    to_next = upgrade[1].replace(f"--version {__version__} ", f"--version {NEXT} ")
    return Page(commands.splitlines(), dict(zip(names, files, strict=True)), check[1], to_next)


def run(tree: Path, *arguments: str | Path) -> None:
    """Run Python in a checkout, with its own packages."""
    paths = os.pathsep.join(str(tree / folder) for folder in ("operator", "spark", "helm", "tests/support"))
    subprocess.run([sys.executable, *arguments], cwd=tree, env={**os.environ, "PYTHONPATH": paths}, check=True)


def publish(tree: Path, version: str, where: str) -> None:
    """Publish the checkout as that version; the next one differs in its number alone."""
    if version != __version__:
        init = tree / "operator" / "bellwether" / "__init__.py"
        init.write_text(init.read_text().replace(__version__, version))
        run(tree, "-m", "chartvalues.generate")
        commit = ["-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "--quiet", "--all"]
        subprocess.run(["git", *commit, "--message", version], cwd=tree, check=True)
    out, key = tree.parent / version, tree.parent / "key.pem"
    run(tree, "packaging/release.py", "build", "--out", out, "--image", "operator")
    run(tree, "packaging/release.py", "publish", "--out", out, "--registry", where, "--key", key)


@pytest.fixture(scope="module")
def registry(places: Places, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where this version and the next are published; the node pulls from there what the real registry would have."""
    from node import images, lifecycle

    folder = tmp_path_factory.mktemp("releases")
    tree, key = folder / "tree", ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem"]
    subprocess.run(key, cwd=folder, check=True)
    subprocess.run(["git", "clone", "--quiet", ROOT, tree], check=True)
    published, _, organisation = REGISTRY.partition("/")
    with Registry(folder / "registry", HOST_END) as running:
        where = f"{running.address}/{organisation}"
        for version in (__version__, NEXT):
            publish(tree, version, where)
        images.mirror(places, lifecycle.running(places), published, running.address)
        yield where


class Shell:
    """A person's shell in the checkout, with helm and kubectl on the path, and the page's files at hand."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        (programs / "helm").symlink_to(gotools.binary(gotools.HELM))
        (programs / "kubectl").symlink_to(kubernetes_binaries.kubectl())
        (folder / "helm").symlink_to(ROOT / "helm")
        path = f"{programs}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig), "HOME": str(folder)}

    def run(self, command: str) -> str:
        """What it printed."""
        ended = ran(["/bin/sh", "-c", command], 180, cwd=self.folder, env=self._environment)
        assert ended.returncode == 0, f"{command}: {ended.stderr or ended.stdout}"
        return ended.stdout

    def watch(self, command: str, so: Callable[[str], bool], seconds: float) -> None:
        """Look at what a command prints until it is so, then end it."""
        printed = self.folder / "watched"
        with printed.open("w") as out:
            watching = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"], cwd=self.folder, env=self._environment, stdout=out, stderr=out
            )

            def seen() -> str:
                assert watching.poll() is None, f"{command} ended: {printed.read_text()}"
                return printed.read_text()

            try:
                until(seen, seconds, f"{command} does not show it", so=so)
            finally:
                watching.terminate()
                watching.wait(limit(10))


@dataclass(frozen=True, slots=True)
class Site:
    """A node with three Kafka clusters and nothing of Bellwether, a shell, and what the page says."""

    kafkas: Sequence[KafkaOnNode]
    shell: Shell
    page: Page


@pytest.fixture(scope="module")
def site(places: Places, kubectl: Kubectl, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Clusters in the namespaces kafka, payments and clicks; all but the first are gone afterwards."""
    from node import images, lifecycle
    from nodeparts import kafka_image, kafka_pods, release
    from nodeparts.kafka_on_node import KafkaOnNode

    images.load(lifecycle.running(places), kafka_image.archive())
    shell = Shell(places.kubeconfig, tmp_path_factory.mktemp("quick-start"))
    # A node that was up may have an installation of before, whose policy would claim the Kafka cluster.
    shell.run("kubectl delete leadershippolicies --all --all-namespaces --wait --timeout=120s || true")
    shell.run(f"helm uninstall {release.NAME} --namespace {release.NAMESPACE} --ignore-not-found --wait")
    kubectl("label", "nodes", "--all", "--overwrite", ZONE)
    more = [kafka_pods.Cluster("payments", "10.213.140.2"), kafka_pods.Cluster("clicks", "10.213.140.3")]
    kafkas = [KafkaOnNode(kubectl, places, cluster) for cluster in (kafka_pods.MAIN, *more)]
    for kafka in kafkas:
        kubectl.apply(kafka_pods.namespace(kafka.cluster))
        kafka.start()
        kafka.fill(topics=3, partitions=12)
    yield Site(kafkas, shell, quick_start(kafkas[0].cluster.internal, registry))
    shell.run("kubectl delete leadershippolicies --all --all-namespaces --wait --timeout=120s")
    shell.run(f"helm uninstall {release.NAME} --namespace {release.NAMESPACE} --wait")
    kubectl("delete", "namespace", release.NAMESPACE, *(cluster.namespace for cluster in more), "--timeout=120s")
    for cluster in more:
        volumes = [volume["metadata"]["name"] for volume in kafka_pods.volumes(cluster, places.volumes)]
        kubectl("delete", "persistentvolumes", *volumes, "--timeout=60s")


def policy_of(cluster: Cluster) -> str:
    """The example's policy, with the cluster's own address."""
    text, address = (EXAMPLE / f"{cluster.namespace}.yaml").read_text(), f"kafka-bootstrap.{cluster.namespace}:9092"
    assert text.count(address) == 1
    return text.replace(address, "\n      - ".join(cluster.internal))


def all_healthy(printed: str) -> bool:
    """Whether each broker is Healthy in what ``kubectl get --watch`` has printed."""
    return len(set(re.findall(r"^orders-(\d+)\s.*\bHealthy\b", printed, re.MULTILINE))) == BROKERS


def test_four_commands_lead_from_nothing_to_a_demoted_broker(
    site: Site, record_property: Callable[[str, object], None]
) -> None:
    kafka, shell, page = site.kafkas[0], site.shell, site.page
    for name, text in page.files.items():
        (shell.folder / name).write_text(text)
    began, took = time.monotonic(), []
    assert len(page.commands) == 4
    for command in page.commands:
        if command.endswith(" --watch"):
            shell.watch(command, all_healthy, 240)
        else:
            shell.run(command)
        took.append(round(time.monotonic() - began, 1))
    eventually(lambda: kafka.led_by(1), lambda led: led == 0, 60, "the demoted broker still leads")
    record_property("seconds_after_each_command", took)
    record_property("seconds_to_a_demoted_broker", round(time.monotonic() - began, 1))
    assert "Phase:          Succeeded" in shell.run(page.check)
    shell.run('kubectl patch brokerhealth orders-1 -n kafka --type merge --patch \'{"spec":{"override":null}}\'')


def test_each_further_kafka_cluster_takes_one_kubectl_apply_and_has_its_own_cut_listener_found(
    site: Site, kubectl: Kubectl, record_property: Callable[[str, object], None]
) -> None:
    from nodeparts import release

    def installed() -> list[tuple[str, int]]:
        found: list[dict[str, Any]] = kubectl.get("deployments", "-n", release.NAMESPACE)
        return sorted((one["metadata"]["name"], one["metadata"]["generation"]) for one in found)

    def healthy(namespace: str) -> int:
        found: list[dict[str, Any]] = kubectl.get("brokerhealths", "-n", namespace)
        return sum(one.get("status", {}).get("verdict", {}).get("state") == "Healthy" for one in found)

    before, further = installed(), site.kafkas[1:]
    for kafka in further:
        namespace, began = kafka.cluster.namespace, time.monotonic()
        kubectl("apply", "-f", "-", stdin=policy_of(kafka.cluster))
        eventually(lambda n=namespace: healthy(n), lambda count: count == BROKERS, 240, f"{namespace} is not Healthy")
        record_property(f"{namespace}_seconds_to_healthy", round(time.monotonic() - began, 1))
    began = time.monotonic()
    for kafka in further:
        kafka.cut(CUT)
    for kafka in further:
        eventually(lambda k=kafka: k.led_by(CUT), lambda led: led == 0, 60, "the cut broker still leads")
        record_property(f"{kafka.cluster.namespace}_seconds_to_no_leaders", round(time.monotonic() - began, 1))
    assert all(site.kafkas[0].led_by(broker) for broker in range(1, BROKERS + 1)), "another cluster was touched"
    assert installed() == before
    for kafka in further:
        kafka.join(CUT)


def test_upgrade_during_a_demotion_goes_on_and_restores_every_order(
    site: Site, kubectl: Kubectl, record_property: Callable[[str, object], None]
) -> None:
    from nodeparts.release import Release

    kafka, shell, bootstrap = site.kafkas[0], site.shell, ",".join(site.kafkas[0].external)

    def change(**spec: object) -> None:
        shell.run(f"kubectl patch leadershippolicy orders -n kafka --type merge --patch '{json.dumps({'spec': spec})}'")

    def displaced() -> int:
        count: int = kubectl.get("leadershippolicy", "orders", "-n", "kafka")["status"]["displacedPartitions"]
        return count

    def moved() -> int:
        return sum(order != orders[partition] for partition, order in kafka.orders().items())

    def history() -> list[dict[str, Any]]:
        return list(json.loads(shell.run(f"{sys.executable} -m bellwether history --policy orders -n kafka -o json")))

    create_topics(bootstrap, {MANY: 900})
    change(election={"batchSize": 1}, promotion={"stabilizationSeconds": 10, "waves": {"skipUpToLeaders": 1000}})
    eventually(displaced, lambda count: count == 0, 240, "the broker of the first test is not promoted")
    leaders, orders, entries = kafka.leaders(), kafka.orders(), len(history())
    kafka.cut(CUT)
    led = list(leaders.values()).count(CUT)
    eventually(lambda: kafka.led_by(CUT), lambda now: now < led, 60, "the cut broker is not demoted")
    shell.run(site.page.upgrade)
    record_property("leaders_to_move_after_helm_upgrade", f"{kafka.led_by(CUT)} of {led}")
    Release(kubectl, shell.folder).roll_out()
    assert NEXT in shell.run("kubectl exec -n bellwether deployment/bellwether-operator -- bellwether --version")
    eventually(lambda: kafka.led_by(CUT), lambda now: now == 0, 240, "the cut broker still leads")
    # Orders change after the leaders.
    eventually(lambda: (moved(), displaced()), lambda seen: seen[0] == seen[1], 240, "not all orders are changed")
    # What each holder of the Lease still had to reorder when it began.
    plans: dict[int, int] = {}
    for entry in history()[entries:]:
        plans.setdefault(entry["epoch"], entry.get("moves", {}).get("reorders", 0))
    record_property("reorders_that_each_holder_planned", list(plans.values()))
    first, *further = plans.values()
    assert first == displaced() > 0
    assert [first, *further] == sorted(plans.values(), reverse=True)
    change(election=None)
    kafka.join(CUT)
    eventually(lambda: (kafka.leaders(), kafka.orders()), lambda now: now == (leaders, orders), 240, "not all is back")
    changes = [one for entry in history()[entries:] for one in entry.get("brokers", ())]
    assert [(one["broker"], one["became"]) for one in changes] == [(CUT, "Demoted"), (CUT, "Promoted")]
    delete_topics(bootstrap, [MANY])

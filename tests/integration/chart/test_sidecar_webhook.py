"""Sidecars added by the webhook, on a real API server that does not serve MutatingAdmissionPolicy."""

from __future__ import annotations

import base64
import json
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from realparts import gotools
from realparts.apiserver import ApiServer
from realparts.helm import Helm
from realparts.ports import HeldPorts, accepts
from realparts.processes import ManagedProcess
from testkit.kubernetes.strimzi_pods import (
    TWO_KINDS,
    a_broker,
    a_plain_broker,
    added,
    created,
    dry_run,
    pasted,
    quarantinable,
    until_added,
)

pytestmark = [pytest.mark.chart, pytest.mark.apiserver]

BEFORE_1_36 = (
    "--runtime-config=admissionregistration.k8s.io/v1/mutatingadmissionpolicies=false"
    ",admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings=false",
    "--disable-admission-plugins=MutatingAdmissionPolicy",
) * (gotools.KUBERNETES_MINOR >= 36)
RELEASE = "bw"
NAME = "bw-bellwether-sidecar-webhook-brokers-brokers"
PULLED = {"imagePullSecrets": [{"name": "ours"}]}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without MutatingAdmissionPolicy, and ``brokers``, a namespace that enforces ``restricted``."""
    with ApiServer(tmp_path_factory.mktemp("older"), options=BEFORE_1_36) as server:
        assert "mutatingadmissionpolicies" not in server.kubectl("api-resources", "-o", "name")
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brokers", "labels": labels}}
        server.kubectl("create", "-f", "-", stdin=json.dumps(body))
        yield server


@dataclass
class Release:
    """The chart's release with sidecars for ``brokers``, and its webhook as a process of this machine."""

    helm: Helm
    chart: Path
    server: ApiServer
    folder: Path
    port: int
    health: int
    webhook: ManagedProcess | None = None

    def restart(self, **sidecars: Any) -> None:
        """Upgrade it, and let the webhook be a new process."""
        if self.webhook is not None:
            self.webhook.kill()
        self.upgrade(**sidecars)
        self.start()

    def upgrade(self, **sidecars: Any) -> None:
        wanted = {**TWO_KINDS, "webhook": {"port": self.port, "metricsPort": self.health}, **sidecars}
        values = {"sidecars": wanted, "crds": {"install": False}, **PULLED}
        given = self.helm.given(values)
        self.helm.run("upgrade", "--install", RELEASE, self.chart, "--namespace", "brokers", *given)
        # No pod and no address of a service exists here: the service's name leads to the process.
        here = {"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": None, "clusterIPs": None}}
        self.server.kubectl("patch", "service", NAME, "-n", "brokers", "--type=merge", "-p", json.dumps(here))

    def start(self) -> None:
        """Start the webhook as its pod would, with the files of its Secret."""
        for name in ("tls.crt", "tls.key"):
            (self.folder / name).write_bytes(base64.b64decode(self.secret()["data"][name]))
        pod = self.get("deployment", NAME)["spec"]["template"]["spec"]["containers"][0]
        arguments = [one.replace("/etc/bellwether/tls", str(self.folder)) for one in pod["args"]]
        command = [sys.executable, "-m", "bellwether", *arguments]
        self.webhook = ManagedProcess("webhook", command, log=self.folder / "log")
        self.webhook.start()
        self.webhook.wait_ready(lambda: accepts(self.port) and accepts(self.health), 60)

    def get(self, kind: str, name: str) -> Any:
        return json.loads(self.server.kubectl("get", kind, name, "-n", "brokers", "-o", "json"))

    def secret(self) -> Any:
        return self.get("secret", f"{NAME}-tls")

    def trusted(self) -> str:
        """The certificates that the API server trusts."""
        found = self.get("mutatingwebhookconfiguration", "bw-bellwether-sidecars-brokers-brokers")
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()

    def until_added(self, containers: int) -> dict[str, Any]:
        """A broker's pod, once the API server asks the webhook for it."""
        return until_added(self.server, "brokers", containers)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, chart: Path, older: ApiServer) -> Iterator[Release]:
    """The release with its webhook running, which the tests leave as they find it."""
    folder = tmp_path_factory.mktemp("release")
    with HeldPorts() as ports:
        made = Release(Helm(folder / "helm", older.kubeconfig), chart, older, folder, ports.take(), ports.take())
        try:
            made.restart()
            yield made
        finally:
            if made.webhook is not None:
                made.webhook.kill()


@pytest.fixture
def changed(release: Release) -> Iterator[Release]:
    """The release for a test that changes it: afterwards it is as before."""
    yield release
    release.restart()


def test_broker_gets_same_sidecars_as_are_pasted_and_pull_secrets(release: Release):
    found = release.until_added(3)
    objects = release.helm.template(
        release.chart, {"sidecars": {**TWO_KINDS, "inject": False}}, release=RELEASE, namespace="brokers"
    )
    wanted = pasted(objects, "brokers.orders.orders-kafka.yaml")
    assert added(found, wanted) == wanted

    two = a_broker("pay-brokers-5", "pay-kafka", ("data-0", "data-1"))
    wanted = pasted(objects, "brokers.payments.pay-kafka.yaml")
    assert added(dry_run(release.server, "brokers", two), wanted) == wanted
    assert found["spec"]["imagePullSecrets"] == [{"name": "ours"}]
    assert "shareProcessNamespace" not in found["spec"]

    has_some = a_broker("orders-brokers-5")
    has_some["spec"]["imagePullSecrets"] = [{"name": "its-own"}]
    kept = dry_run(release.server, "brokers", has_some)["spec"]["imagePullSecrets"]
    assert kept == [{"name": "its-own"}, {"name": "ours"}]


def test_other_pods_are_left_alone(release: Release):
    release.until_added(3)
    other_account = a_broker("other-0", account="other")
    unlabelled = a_broker("other-1")
    unlabelled["metadata"]["labels"] = {}
    other_disk = a_broker("other-2", volumes=["x"])
    one_disk_of_two = a_broker("other-3", "pay-kafka")
    for pod in (other_account, unlabelled, other_disk, one_disk_of_two):
        assert len(dry_run(release.server, "brokers", pod)["spec"]["containers"]) == 1


def test_while_the_webhook_is_down_a_broker_starts_without_sidecars_and_a_later_one_has_them(release: Release):
    release.until_added(3)
    assert release.webhook is not None
    release.webhook.kill()
    alone = created(release.server, "brokers", a_broker("orders-brokers-0"))
    release.start()
    assert len(alone["spec"]["containers"]) == 1
    assert len(release.until_added(3)["spec"]["containers"]) == 3


@pytest.mark.slow
def test_a_frozen_webhook_does_not_hold_up_a_broker(release: Release):
    release.until_added(3)
    assert release.webhook is not None
    release.webhook.pause()
    try:
        assert len(created(release.server, "brokers", a_broker("orders-brokers-1"))["spec"]["containers"]) == 1
    finally:
        release.webhook.resume()


@pytest.mark.slow
def test_one_switch_gives_brokers_an_agent_that_can_hold_them(changed: Release):
    changed.restart(quarantineAgent={"enabled": True})
    pod = changed.until_added(4)
    assert quarantinable(pod) == (True, (1001, None), {"kafka": 750})
    plain = dry_run(changed.server, "brokers", a_plain_broker("kafka-1"))
    assert quarantinable(plain) == (True, (1000, 2000), {"exporter": 30, "broker": 750})


@pytest.mark.slow
def test_an_upgrade_keeps_the_certificate_for_a_year_and_then_trusts_the_old_and_the_new_one(changed: Release):
    before, trusted = changed.secret()["data"], changed.trusted()
    changed.upgrade()
    assert (changed.secret()["data"], changed.trusted()) == (before, trusted)

    # Without a date it is due. A date of another's would be a conflict for Helm 4, which applies on the server.
    due = {"metadata": {"annotations": {"bellwether.dev/renew-after": None}}}
    changed.server.kubectl("patch", "secret", f"{NAME}-tls", "-n", "brokers", "--type=merge", "-p", json.dumps(due))
    changed.upgrade()
    after = changed.secret()
    assert after["data"].keys() == before.keys()
    assert not set(after["data"].values()) & set(before.values())
    assert after["metadata"]["annotations"]["bellwether.dev/renew-after"] > "2020-01-01"
    ssl.create_default_context(cadata=changed.trusted())
    assert changed.trusted() == base64.b64decode(after["data"]["ca.crt"]).decode() + trusted
    changed.until_added(3)  # by the webhook with the old certificate, as long as the pod has not read the new one
    changed.upgrade()
    assert changed.trusted() == base64.b64decode(after["data"]["ca.crt"]).decode()

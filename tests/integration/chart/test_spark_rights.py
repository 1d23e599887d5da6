"""What a driver of Spark on Kubernetes asks the API for, as the chart's account: allowed, all of it, and no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from realparts.apiserver import ApiServer, KubectlFailed
from realparts.auditing import AuditedApiServer
from realparts.helm import Helm
from testkit.loads.load_configs import WITH_EXECUTORS, executor_template
from waiting import limit, until

pytestmark = [pytest.mark.chart, pytest.mark.apiserver, pytest.mark.spark]

NAMESPACE = "plans"
RUNS_SECONDS = 180.0

# Client mode, settings as the operator's Job gives them to its driver; the API is reached from outside.
DRIVER = """
import sys, time
from pyspark.sql import SparkSession
url, token, ca, namespace, account, template = sys.argv[1:]
prefix = "spark.kubernetes."
settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    prefix + "namespace": namespace,
    prefix + "driver.pod.name": "driver",
    prefix + "container.image": "bellwether-spark",
    prefix + "authenticate.serviceAccountName": account,
    prefix + "authenticate.oauthTokenFile": token,
    prefix + "authenticate.caCertFile": ca,
    prefix + "executor.podTemplateFile": template,
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.executor.instances": "2",
    prefix + "allocation.batch.delay": "1s",
    prefix + "executor.apiPollingInterval": "2s",
    prefix + "executor.eventProcessingInterval": "1s",
}
builder = SparkSession.builder.master("k8s://" + url)
for name, value in settings.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
print("started", flush=True)
sys.stdin.readline()
session.stop()
print("stopped", flush=True)
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedApiServer]:
    with AuditedApiServer(tmp_path_factory.mktemp("audited")) as server:
        server.create_namespace(NAMESPACE)
        yield server


@pytest.mark.slow
def test_the_chart_grants_a_spark_driver_what_it_asks_for_and_no_more(
    helm: Helm, chart: Path, audited: AuditedApiServer, tmp_path: Path
):
    objects = helm.template(chart, WITH_EXECUTORS, namespace=NAMESPACE)
    mine = [o for o in objects if o["metadata"]["labels"].get("app.kubernetes.io/component") == "spark"]
    mine += [
        o for o in objects if "AdmissionPolicy" in o["kind"] and o["metadata"]["name"].endswith(f"-spark-{NAMESPACE}")
    ]
    audited.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": mine}))
    (role,) = [o for o in mine if o["kind"] == "Role"]
    account = role["metadata"]["name"]
    audited.kubectl("run", "driver", "-n", NAMESPACE, "--image=driver", "--restart=Never")

    drive(audited, account, json.dumps(executor_template(objects)), tmp_path)

    asked = audited.calls(f"system:serviceaccount:{NAMESPACE}:{account}")
    assert {(c.verb, c.resource) for c in asked if c.forbidden} == set()
    granted = {(verb, kind) for rule in role["rules"] for kind in rule["resources"] for verb in rule["verbs"]}
    assert {(c.verb, c.resource) for c in asked} == granted
    touches_nothing_else(audited, account)


def touches_nothing_else(server: AuditedApiServer, account: str) -> None:
    """What the role allows and admission refuses: pods that are no executors, and executors with another account."""
    own = server.service_account_kubeconfig(NAMESPACE, account)
    with pytest.raises(KubectlFailed, match="only objects with the label spark-app-selector, not pods driver"):
        server.kubectl("delete", "pod", "driver", "-n", NAMESPACE, kubeconfig=own)
    with pytest.raises(KubectlFailed, match="only objects with the label spark-app-selector"):
        server.kubectl("delete", "pods", "--all", "-n", NAMESPACE, kubeconfig=own)
    run = ("run", "other", "-n", NAMESPACE, "--image=x", "--restart=Never")
    with pytest.raises(KubectlFailed, match="may create only executors"):
        server.kubectl(*run, "--labels=spark-app-selector=a", kubeconfig=own)
    server.kubectl("create", "serviceaccount", "powerful", "-n", NAMESPACE)
    other = '{"spec":{"serviceAccountName":"powerful"}}'
    with pytest.raises(KubectlFailed, match="with its own ServiceAccount or the default one"):
        server.kubectl(
            *run, "--labels=spark-app-selector=a,spark-role=executor", f"--overrides={other}", kubeconfig=own
        )
    assert "driver" in server.kubectl("get", "pods", "-n", NAMESPACE)


def drive(server: ApiServer, account: str, template: str, folder: Path) -> None:
    """A driver that makes two executors, loses one, and cleans up."""
    token = folder / "token"
    token.write_text(server.service_account_token(NAMESPACE, account))
    (folder / "template.yaml").write_text(template)
    command = [sys.executable, "-c", DRIVER, server.url, token, server.ca, NAMESPACE, account, folder / "template.yaml"]
    with (folder / "driver.log").open("w") as log:
        driver = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            first = until_there(lambda: executors(server), 2, driver, folder / "driver.log")
            lost = json.dumps({"status": {"phase": "Failed"}})
            patch = ("patch", "pod", first[0], "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", lost)
            server.kubectl(*patch)
            until_there(
                lambda: [name for name in executors(server) if name not in first], 1, driver, folder / "driver.log"
            )
            driver.communicate("\n", timeout=limit(RUNS_SECONDS))
        finally:
            driver.kill()
            driver.wait()
    assert "stopped" in (folder / "driver.log").read_text()


def executors(server: ApiServer) -> list[str]:
    found = server.kubectl("get", "pods", "-n", NAMESPACE, "-l", "spark-role=executor", "-o", "name")
    return [name.partition("/")[2] for name in found.split()]


def until_there(look: Any, count: int, driver: subprocess.Popen[str], log: Path) -> list[str]:
    found = until(
        look,
        RUNS_SECONDS,
        so=lambda names: len(names) >= count,
        every=0.5,
        alive=lambda: driver.poll() is None,
        seen=lambda: log.read_text()[-3000:],
    )
    return list(found)

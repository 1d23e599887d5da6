"""The life of a release on a real API server: install, upgrade from an older chart, rollback, uninstall, again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from bellwether.api.v1alpha1.schema.crd_manifests import KINDS
from bellwether.cli import exit_status
from chartvalues.platform_values import REGISTRY
from realparts.apiserver import ApiServer, KubectlFailed
from realparts.helm import Helm, HelmFailed
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess
from testkit.kubernetes import fake_kubelet
from testkit.kubernetes.fake_kubelet import FakeKubelet
from waiting import done, until

pytestmark = [pytest.mark.chart, pytest.mark.apiserver]

RELEASE = "herd"
POLICY = {
    "apiVersion": "bellwether.dev/v1alpha1",
    "kind": "LeadershipPolicy",
    "metadata": {"name": "orders"},
    "spec": {"mode": "Observe", "kafka": {"bootstrapServers": ["127.0.0.1:1"]}},
}
OLD = "0.0.9"
IN_ANY_STATE = ("--deployed", "--failed", "--pending", "--uninstalling")  # Helm 4 has no --all
# How Helm 3 and Helm 4 say that the Job of a hook failed; only Helm 3 gives the Job's reason.
OUT_OF_TRIES = "uninstall failed: BackoffLimitExceeded|not ready. status: Failed, message: Job Failed"
OUT_OF_TIME = "uninstall failed: DeadlineExceeded|not ready. status: Failed, message: Job Failed"


@pytest.fixture
def release(chartserver: ApiServer, installing: Helm, restricted: str) -> Iterator[str]:
    """A namespace for a release, of which nothing is left in the end; no definitions are there before it."""
    remove_definitions(chartserver)
    yield restricted
    releases = json.loads(installing.run("list", "--namespace", restricted, *IN_ANY_STATE, "--output", "json"))
    for one in releases:
        installing.run("uninstall", one["name"], "--namespace", restricted, "--no-hooks")


@pytest.fixture
def older(helm: Helm, chart: Path, tmp_path: Path) -> Path:
    """A package of a chart before this one: another version, and policies that know no scope."""
    folder = tmp_path / "older" / "bellwether"
    shutil.copytree(chart, folder)
    about = yaml.safe_load((folder / "Chart.yaml").read_text())
    (folder / "Chart.yaml").write_text(yaml.safe_dump({**about, "version": OLD, "appVersion": OLD}))
    path = folder / "files" / "crds" / "leadershippolicies.yaml"
    definition = yaml.safe_load(path.read_text())
    (version,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["scope"]
    path.write_text(yaml.safe_dump(definition))
    helm.run("package", folder, "--destination", tmp_path)
    return tmp_path / f"bellwether-{OLD}.tgz"


def test_a_release_is_installed_upgraded_rolled_back_and_taken_away(
    installing: Helm, chart: Path, older: Path, chartserver: ApiServer, release: str
):
    said = installing.run("install", RELEASE, older, "--namespace", release)
    assert f"Bellwether {OLD} is installed in namespace {release}: operator replicas: 2" in said
    assert knows_scope(chartserver) is False
    assert image(chartserver, release) == f"bellwether:{OLD}"
    until_served(chartserver)
    create(chartserver, release, POLICY)
    before = spec_of(chartserver, release)

    installing.run("upgrade", RELEASE, chart, "--namespace", release)
    assert knows_scope(chartserver) is True
    assert image(chartserver, release) == f"bellwether:{current(chart)}"
    assert spec_of(chartserver, release) == before

    installing.run("rollback", RELEASE, "1", "--namespace", release)
    assert knows_scope(chartserver) is False
    assert image(chartserver, release) == f"bellwether:{OLD}"
    assert spec_of(chartserver, release) == before

    # A hook that fails stops the uninstallation, and nothing is lost.
    with (
        FakeKubelet(chartserver, release, reach=lambda arguments: [*arguments, "--namespace=no/such"]) as kubelet,
        pytest.raises(HelmFailed, match=OUT_OF_TRIES),
    ):
        installing.run("uninstall", RELEASE, "--namespace", release)
    assert kubelet.ran[0].status != 0
    assert image(chartserver, release) == f"bellwether:{OLD}"

    with FakeKubelet(chartserver, release) as kubelet:
        installing.run("uninstall", RELEASE, "--namespace", release)
    (ran,) = kubelet.ran
    assert (ran.kind, ran.arguments[0], ran.status) == ("Job", "uninstall", 0), ran.output
    assert "all replica orders are restored" in ran.output
    assert left_of(chartserver, release) == []
    assert spec_of(chartserver, release) == before, "policies and their definition stay"

    # What stayed is taken up again by the same release, and by another one that is asked to.
    installing.run("install", RELEASE, chart, "--namespace", release)
    installing.run("uninstall", RELEASE, "--namespace", release, "--no-hooks")
    with pytest.raises(HelmFailed, match="ownership metadata"):
        installing.run("install", "flock", chart, "--namespace", release)
    installing.run("install", "flock", chart, "--namespace", release, "--take-ownership")
    assert spec_of(chartserver, release) == before


def test_second_release_for_a_watched_namespace_is_refused(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str
):
    installing.run("install", RELEASE, chart, "--namespace", release)
    other = chartserver.create_namespace(f"{release}-other")
    same = ("--set", f"watchNamespaces={{{release}}}", "--set", "crds.install=false")
    with pytest.raises(HelmFailed, match=f'"bellwether-operator" in namespace "{release}" exists.* is "{RELEASE}"'):
        installing.run("install", "flock", chart, "--namespace", other, *same)


@pytest.mark.slow
def test_definitions_that_person_applied_are_taken_over_or_left_alone(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str
):
    chartserver.apply(chart.parents[1] / "crds" / "leadershippolicies.yaml")
    with pytest.raises(HelmFailed, match="ownership metadata"):
        installing.run("install", RELEASE, chart, "--namespace", release)
    installing.run("install", "left", chart, "--namespace", release, "--set", "crds.install=false")
    installing.run("uninstall", "left", "--namespace", release, "--no-hooks")
    installing.run("install", RELEASE, chart, "--namespace", release, "--take-ownership")
    assert set(definitions_of(chartserver)) == {f"{kind.plural}.bellwether.dev" for kind in KINDS}


@pytest.mark.slow
def test_policies_of_values_come_with_next_upgrade_and_outlive_release(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str
):
    source = {"name": "wear", "spec": {"plugin": {"type": "DiskWear"}}}
    values = {"policies": [{"name": "orders", "spec": POLICY["spec"]}], "signalSources": [source]}
    given = installing.given(values)
    said = installing.run("install", RELEASE, chart, "--namespace", release, *given)
    assert "so the LeadershipPolicy objects in the values were not created" in said
    until_served(chartserver)
    said = installing.run("upgrade", RELEASE, chart, "--namespace", release, *given)
    assert "were not created" not in said
    assert spec_of(chartserver, release)["mode"] == "Observe"
    installing.run("uninstall", RELEASE, "--namespace", release, "--no-hooks")
    assert spec_of(chartserver, release)["mode"] == "Observe"
    assert "wear" in chartserver.kubectl("get", "signalsources", "-n", release)


HELM_WAITS_SECONDS = 300


@pytest.mark.slow
def test_a_hook_whose_image_cannot_be_pulled_ends_before_helm_stops_waiting_and_can_be_run_again(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str
):
    installing.run("install", RELEASE, chart, "--namespace", release)
    hooks = yaml.safe_load_all(installing.run("get", "hooks", RELEASE, "--namespace", release))
    (deadline,) = (one["spec"]["activeDeadlineSeconds"] for one in hooks if one["kind"] == "Job")
    assert deadline < HELM_WAITS_SECONDS
    with (
        FakeKubelet(chartserver, release, pulls=False),
        pytest.raises(HelmFailed, match=OUT_OF_TIME),
    ):
        installing.run("uninstall", RELEASE, "--namespace", release)
    assert image(chartserver, release) == f"bellwether:{current(chart)}", "nothing is deleted"
    with FakeKubelet(chartserver, release) as kubelet:
        installing.run("uninstall", RELEASE, "--namespace", release)
    assert [ran.status for ran in kubelet.ran] == [0]
    assert left_of(chartserver, release) == []


@pytest.mark.slow
def test_a_release_whose_hook_failed_can_be_repaired_or_removed_without_the_hook(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str
):
    installing.run("install", RELEASE, chart, "--namespace", release)
    with FakeKubelet(chartserver, release, pulls=False), pytest.raises(HelmFailed, match=OUT_OF_TIME):
        installing.run("uninstall", RELEASE, "--namespace", release)
    repaired = installing.given({"image": {"tag": "repaired"}})
    with pytest.raises(HelmFailed, match="has no deployed releases"):
        installing.run("upgrade", RELEASE, chart, "--namespace", release, *repaired)
    installing.run("rollback", RELEASE, "1", "--namespace", release)
    installing.run("upgrade", RELEASE, chart, "--namespace", release, *repaired)
    assert image(chartserver, release) == "bellwether:repaired"

    with FakeKubelet(chartserver, release, pulls=False), pytest.raises(HelmFailed, match=OUT_OF_TIME):
        installing.run("uninstall", RELEASE, "--namespace", release)
    installing.run("uninstall", RELEASE, "--namespace", release, "--no-hooks")
    assert left_of(chartserver, release) == [f"job.batch/{RELEASE}-bellwether-uninstall"]
    kept = json.loads(chartserver.kubectl("get", "jobs", "-n", release, "-o", "json"))["items"][0]["spec"]
    assert kept["ttlSecondsAfterFinished"] == 24 * 3600, "Kubernetes removes it"


@pytest.mark.slow
def test_helm_test_asks_the_operator_itself(
    installing: Helm, chart: Path, chartserver: ApiServer, release: str, tmp_path: Path
):
    """The operator of the Deployment runs outside, as its own account; the test's pod is played by what it runs."""
    values = {"watchNamespaces": [release]}
    installing.run("install", RELEASE, chart, "--namespace", release, *installing.given(values))
    until_served(chartserver)
    ports = HeldPorts()  # until the end: while no server listens there an outgoing connection could take one
    metrics, health = ports.take(), ports.take()
    account = f"{RELEASE}-bellwether-operator"

    def outside(arguments: Sequence[str]) -> list[str]:
        swapped = {
            "--metrics-port": str(metrics),
            "--health-port": str(health),
            "--operator": f"http://127.0.0.1:{health}",
        }
        return [f"{k}={swapped[k]}" if (k := a.partition("=")[0]) in swapped else a for a in arguments]

    found = json.loads(chartserver.kubectl("get", "deployment", account, "-n", release, "-o", "json"))
    arguments = found["spec"]["template"]["spec"]["containers"][0]["args"]
    operator = ManagedProcess(
        "operator",
        fake_kubelet.command(outside(arguments)),
        log=tmp_path / "operator.log",
        environment=fake_kubelet.environment(chartserver, release, account),
    )
    try:
        with FakeKubelet(chartserver, release, outside) as kubelet:
            with pytest.raises(HelmFailed):
                installing.run("test", RELEASE, "--namespace", release)
            operator.start()
            installing.run("test", RELEASE, "--namespace", release)
    finally:
        operator.kill()
        ports.release()
    early, late = kubelet.ran
    assert (early.status, late.status) == (exit_status.FOUND, 0), late.output
    assert "FAILED  operator" in early.output
    assert "this account has all permissions of the operator" in late.output
    assert f"http://127.0.0.1:{health}/readyz: 200" in late.output


def current(chart: Path) -> str:
    return str(yaml.safe_load((chart / "Chart.yaml").read_text())["version"])


def create(server: ApiServer, namespace: str, body: dict[str, Any]) -> None:
    server.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(body))


def spec_of(server: ApiServer, namespace: str) -> dict[str, Any]:
    found = json.loads(server.kubectl("get", "leadershippolicy", "orders", "-n", namespace, "-o", "json"))
    spec: dict[str, Any] = found["spec"]
    return spec


def image(server: ApiServer, namespace: str) -> str:
    wanted = "jsonpath={.spec.template.spec.containers[0].image}"
    named = server.kubectl("get", "deployment", f"{RELEASE}-bellwether-operator", "-n", namespace, "-o", wanted)
    return named.removeprefix(f"{REGISTRY}/")


def knows_scope(server: ApiServer) -> bool:
    found = json.loads(server.kubectl("get", "crd", "leadershippolicies.bellwether.dev", "-o", "json"))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return "scope" in schema["properties"]["spec"]["properties"]


def definitions_of(server: ApiServer) -> list[str]:
    found = server.kubectl("get", "crd", "-o", "name").split()
    return [name.partition("/")[2] for name in found if name.endswith(".bellwether.dev")]


def remove_definitions(server: ApiServer) -> None:
    if names := definitions_of(server):
        server.kubectl("delete", "crd", *names, "--timeout=60s")


def until_served(server: ApiServer) -> None:
    """Wait until kinds that Helm has defined are found: it does not wait for that."""
    asked = ("get", ",".join(definitions_of(server)), "--all-namespaces", "--output=name")
    until(lambda: server.kubectl(*asked), 60, so=done, ignoring=(KubectlFailed,))


def left_of(server: ApiServer, namespace: str) -> list[str]:
    """What an uninstalled release has left behind, but for definitions, which it is to leave."""
    kinds = "deployments,services,serviceaccounts,configmaps,roles,rolebindings,poddisruptionbudgets,jobs,pods,secrets"
    wide = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    found = server.kubectl("get", kinds, "-n", namespace, "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name")
    found += server.kubectl("get", wide, "-l", f"app.kubernetes.io/instance={RELEASE}", "-o", "name")
    return found.split()

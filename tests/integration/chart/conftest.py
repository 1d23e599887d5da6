"""What the tests of the chart share: Helm, the chart, values that are good, a real API server under Pod Security."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from realparts.helm import Helm

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

HERE = Path(__file__).parent
CHART = HERE.parents[2] / "helm" / "bellwether"
GOOD = sorted((HERE / "good").glob("*.yaml"))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm without a cluster; shared, so that what several tests look at is rendered once."""
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def chart() -> Path:
    return CHART


@pytest.fixture(params=GOOD, ids=lambda path: path.stem)
def good(request: pytest.FixtureRequest) -> Path:
    """Every file of good values in turn."""
    path: Path = request.param
    return path


@pytest.fixture(scope="package")
def chartserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A real API server of these tests' own: they install and remove definitions, which all namespaces share."""
    from realparts.apiserver import ApiServer

    with ApiServer(tmp_path_factory.mktemp("chartserver")) as server:
        yield server


@pytest.fixture(scope="module")
def definitions(chartserver: ApiServer) -> None:
    """Those of Bellwether and of Prometheus' operator."""
    from realparts import prometheus_definitions

    chartserver.apply(CHART.parents[1] / "crds", prometheus_definitions.folder())


@pytest.fixture
def installing(tmp_path: Path, chartserver: ApiServer) -> Helm:
    """Helm on that API server."""
    return Helm(tmp_path / "installing", chartserver.kubeconfig)


@pytest.fixture
def restricted(chartserver: ApiServer) -> str:
    """A namespace that refuses every pod that Pod Security's level ``restricted`` refuses."""
    name = f"chart-{uuid.uuid4().hex[:10]}"
    # With its label from the first: admission may know a namespace for a while without a label that it got later.
    metadata = {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    chartserver.kubectl("create", "-f", "-", stdin=json.dumps(body))
    return name

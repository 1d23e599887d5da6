"""What the tests of the chart share: Helm, the chart, values that are good, a real API server under Pod Security."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from realparts.helm import Helm

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

HERE = Path(__file__).parent
CHART = HERE.parents[2] / "helm" / "bellwether"
GOOD = sorted((HERE / "good").glob("*.yaml"))


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Helm without a cluster."""
    return Helm(tmp_path / "helm")


@pytest.fixture
def chart() -> Path:
    return CHART


@pytest.fixture(params=GOOD, ids=lambda path: path.stem)
def good(request: pytest.FixtureRequest) -> Path:
    """Every file of good values in turn."""
    path: Path = request.param
    return path


@pytest.fixture
def installing(tmp_path: Path, apiserver: ApiServer) -> Helm:
    """Helm on the session's API server."""
    return Helm(tmp_path / "installing", apiserver.kubeconfig)


@pytest.fixture
def restricted(apiserver: ApiServer) -> str:
    """A namespace that refuses every pod that Pod Security's level ``restricted`` refuses."""
    name = apiserver.create_namespace(f"chart-{uuid.uuid4().hex[:10]}")
    apiserver.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    return name

"""What the tests against a real API server share: a client, the CRDs, a namespace of their own."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer

ROOT = Path(__file__).parents[3]


@pytest.fixture
def api(apiserver: ApiServer) -> KubernetesClient:
    return connect(apiserver.kubeconfig)


@pytest.fixture
def namespace(apiserver: ApiServer) -> str:
    return apiserver.create_namespace(f"test-{uuid.uuid4().hex[:10]}")


@pytest.fixture
def crds(apiserver: ApiServer) -> None:
    apiserver.apply(ROOT / "crds")

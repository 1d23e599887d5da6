"""What the tests against a real API server share: a client, the CRDs, a namespace of their own."""

from __future__ import annotations

import json
import ssl
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes.api_client import KubernetesClient, connect
from waiting import limit

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


@pytest.fixture(scope="module")
def dry_run(apiserver: ApiServer) -> Iterator[Callable[[str, str, str], tuple[Any, str]]]:
    """Try to create an object (namespace, plural, text) under strict validation: as the server has it, or its refusal.

    All over one connection.
    """
    context = ssl.create_default_context(cafile=str(apiserver.ca))
    headers = {"Authorization": f"Bearer {apiserver.token()}", "Content-Type": "application/yaml"}

    def tried(namespace: str, plural: str, text: str) -> tuple[Any, str]:
        path = f"/apis/bellwether.dev/v1alpha1/namespaces/{namespace}/{plural}?dryRun=All&fieldValidation=Strict"
        connection.request("POST", path, text.encode(), headers)
        with connection.getresponse() as answer:
            body = json.loads(answer.read())
        assert answer.status in (201, 400, 422), body
        return (body, "") if answer.status == 201 else (None, str(body["message"]))

    host = apiserver.url.removeprefix("https://")
    with closing(HTTPSConnection(host, context=context, timeout=limit(10))) as connection:
        yield tried

"""Brokers that trust no one, an API server, and Secrets for trusted accounts."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from realparts.apiserver import ApiServer
    from realparts.secured import Acl, SecuredKafka
    from testkit.processes.sites import Site

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    from realparts.kafka import create_topics
    from realparts.secured import SecuredKafka

    with SecuredKafka(tmp_path_factory.mktemp("secured")) as running:
        create_topics(running.kafka.bootstrap, {"orders": 6})
        yield running


@pytest.fixture(scope="session")
def crds(apiserver: ApiServer) -> None:
    apiserver.apply(ROOT / "crds")


@pytest.fixture
def site(crds: None, apiserver: ApiServer, secured: SecuredKafka, tmp_path: Path) -> Iterator[Site]:
    """A namespace of the secured cluster in which nothing runs."""
    from testkit.processes.sites import Site

    made = Site(apiserver, secured.kafka, tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session")
def roles() -> Mapping[str, tuple[Acl, ...]]:
    """What the documentation grants to each part: the KafkaUsers of docs/security/kafka-acls.md."""
    from realparts.secured import Acl

    text = (ROOT / "docs" / "security" / "kafka-acls.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    users = [one for block in blocks for one in yaml.safe_load_all(block) if one["kind"] == "KafkaUser"]
    return {
        user["metadata"]["name"]: tuple(
            Acl(operation, acl["resource"]["type"].capitalize(), acl["resource"].get("name", "kafka-cluster"))
            for acl in user["spec"]["authorization"]["acls"]
            for operation in acl["operations"]
        )
        for user in users
    }


@pytest.fixture
def user(secured: SecuredKafka) -> Iterator[str]:
    """A SCRAM user of the test's own, whose password is ``pw-0`` before its name, with no permission yet."""
    name = f"user-{uuid.uuid4().hex[:8]}"
    secured.user(name, f"pw-0-{name}")
    yield name
    secured.revoke(name)


@pytest.fixture
def put(site: Site) -> Callable[..., None]:
    """Make or replace a Secret in the site's namespace; values are text, bytes or files."""

    def put(name: str, data: Mapping[str, str | bytes | Path]) -> None:
        import json

        values = {key: value.read_bytes() if isinstance(value, Path) else value for key, value in data.items()}
        encoded = {
            key: base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
            for key, value in values.items()
        }
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}
        # Replaced as a whole, as tools that renew a Secret do it; never as arguments of a process.
        apply = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        site.server.kubectl("-n", site.namespace, *apply, stdin=json.dumps(body))

    return put


@pytest.fixture
def scram(secured: SecuredKafka, user: str, put: Callable[..., None]) -> dict[str, Any]:
    """A policy's spec.kafka for the test's user, by a Secret in Strimzi's shape, which is made here."""
    put("cluster-ca-cert", {"ca.crt": secured.authority.path})
    put("user", strimzi_user(user, f"pw-0-{user}"))
    return {
        "bootstrapServers": secured.bootstrap,
        "tls": {"caSecretName": "cluster-ca-cert"},
        "userSecretName": "user",
    }


def strimzi_user(name: str, password: str) -> dict[str, str | bytes | Path]:
    """What Strimzi's user operator puts into the Secret of a user with a password."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {"password": password, "sasl.jaas.config": f'{module} required username="{name}" password="{password}";'}


@pytest.fixture
def renewed(put: Callable[..., None], user: str) -> Callable[[str], None]:
    """Put another password of the test's user into its Secret."""
    return lambda password: put("user", strimzi_user(user, password))

"""An API server of their own, as cluster-wide roles and admission would bind other tests, too; its audit log tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer
    from realparts.kafka import KafkaCluster
    from testkit.kubernetes.service_accounts import Crew

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedApiServer]:
    """An API server with both kinds that keeps account of every call."""
    from realparts.auditing import AuditedApiServer

    with AuditedApiServer(tmp_path_factory.mktemp("audited")) as server:
        server.apply(ROOT / "crds")
        yield server


@pytest.fixture
def crew(audited: AuditedApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Crew]:
    """Accounts with the chart's rights in the namespace of one policy; nothing runs yet."""
    from testkit.kubernetes.service_accounts import Crew

    made = Crew(audited, breakable_kafka, tmp_path)
    try:
        yield made
    finally:
        breakable_kafka.mend()
        made.close()


@pytest.fixture
def crew_everywhere(audited: AuditedApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Crew]:
    """The same with rights in all namespaces."""
    from testkit.kubernetes.service_accounts import Crew

    made = Crew(audited, breakable_kafka, tmp_path, everywhere=True)
    try:
        yield made
    finally:
        breakable_kafka.mend()
        made.close()

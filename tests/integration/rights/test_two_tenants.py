"""Two tenants of one installation: whatever one of them writes, the other's broker is demoted as before.

Real API server, real brokers, one operator for all namespaces with the permissions that the chart grants. Tenant A has
the chart's edit role and may write Secrets and ConfigMaps in its own namespace, as the cluster role edit allows.
"""

from __future__ import annotations

import base64
import statistics
import time
import urllib.request
import uuid
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import (
    BROKER_HEALTHS,
    CONFIG_MAPS,
    LEADER_REBALANCES,
    LEASES,
    POLICIES,
    SECRETS,
    SIGNAL_SOURCES,
    Resource,
)
from bellwether.core.model.undo_record import FORMAT_VERSION
from testkit.kafka.accidental_broker import ACCIDENTS, QUIET, AccidentalBroker
from testkit.kubernetes import api_objects
from testkit.kubernetes.adverse_owners import (
    CURES,
    MEBIBYTE,
    AdverseOwner,
    cure_seconds,
    cured_site,
    secrets_of,
)
from testkit.kubernetes.service_accounts import CREDENTIALS
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from testkit.kubernetes.service_accounts import Crew

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

OWN = "own"
CANARY = "canary-4f1c-of-the-operator"
MEMORY_LIMIT = 1024 * MEBIBYTE  # the chart's limit for the operator


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A Kafka cluster that is tenant A's own: one broker, no topic."""
    from realparts.kafka import KafkaCluster

    with KafkaCluster(1, directory=tmp_path / "own-kafka", proxied=False) as cluster:
        yield cluster


def tenant_of(crew: Crew, stack: ExitStack, *kinds: str) -> AdverseOwner:
    """Tenant A, with a namespace of its own, in which it may write these kinds, too."""
    namespace = crew.server.create_namespace(f"tenant-a-{uuid.uuid4().hex[:8]}")
    crew.namespaces.append(namespace)
    return AdverseOwner(crew, stack, namespace, *kinds)


def attack(tenant: AdverseOwner, crew: Crew, own_kafka: KafkaCluster) -> None:
    """Everything that a tenant can write: hostile Kafkas, Secrets, ConfigMaps, annotations, other people's cluster."""
    site = crew.site
    tenant.flood({"liar": str(site.status()["clusterId"]), "crowd": "a-cluster-of-tenant-a"}, CREDENTIALS)
    tenant.policy("thief", site.kafka.bootstrap)
    bomb = base64.b64encode(zlib.compress(bytes(400 * MEBIBYTE), 9)).decode()
    tenant.write(
        CONFIG_MAPS,
        f"{object_names.undo_record('own')}.0",
        metadata={"labels": {"bellwether.dev/policy": "own", "bellwether.dev/undo-record": "shard"}},
        data={"format": str(FORMAT_VERSION), "epoch": "0"},
        binaryData={"entries": bomb},
    )
    tenant.policy("own", own_kafka.bootstrap)
    wide = {"bellwether.dev/approve-plan": "x" * 100_000, "bellwether.dev/rebalance": "y" * 100_000}
    tenant.policy("annotated", tenant.address, annotations=wide)


def peak_memory(pid: int) -> int:
    """The largest resident memory of a process so far, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def test_whatever_one_tenant_writes_the_other_is_cured_as_before(
    crew_everywhere: Crew, own_kafka: KafkaCluster
) -> None:
    crew, site = crew_everywhere, crew_everywhere.site
    operator, voice = cured_site(crew, AWS_ACCESS_KEY_ID=CANARY, AWS_SECRET_ACCESS_KEY=CANARY, GOOGLE_API_KEY=CANARY)
    quiet = [cure_seconds(crew, voice) for _ in range(CURES)]
    with ExitStack() as stack:
        tenant = tenant_of(crew, stack)
        attack(tenant, crew, own_kafka)
        attacked = [cure_seconds(crew, voice) for _ in range(CURES)]
        thief = lambda: _ready(tenant, "thief")  # noqa: E731 - asked again and again
        site.until(lambda: thief().get("reason") == "ClusterClaimed", 60, "the thief is refused", thief)
        received = bytes(tenant.received)

    ratio = statistics.median(attacked) / statistics.median(quiet)
    shown = [[round(s, 1) for s in seconds] for seconds in (quiet, attacked)]
    site.tell(f"cure of tenant B, quiet {shown[0]} s, attacked {shown[1]} s: {ratio:.2f} times; {tenant.refused}")
    assert ratio < 4
    assert peak_memory(operator.pid) < MEMORY_LIMIT
    assert [s for s in (CANARY.encode(), *secrets_of(crew)) if s in received] == []
    assert received, "the operator never connected to tenant A: the attack was none"


def test_kafka_that_answers_as_accidents_do_costs_its_policy_alone(crew_everywhere: Crew) -> None:
    crew, site = crew_everywhere, crew_everywhere.site
    port = site.free_port()
    with AccidentalBroker() as kafka, ExitStack() as stack:
        operator, voice = cured_site(crew, "--health-port", str(port))
        tenant = tenant_of(crew, stack)
        tenant.policy("accidents", kafka.address)
        cures: dict[str, list[float]] = {accident: [] for accident in (QUIET, *ACCIDENTS)}
        for number, accident in enumerate(one for some in ACCIDENTS for one in (QUIET, some)):
            kafka.happen(accident)
            changed = {"spec": {"demotion": {"dwellSeconds": number}}}  # it is reconciled at once
            tenant.api.merge(POLICIES, tenant.namespace, "accidents", changed)
            site.until(lambda: kafka.met, 60, f"the operator meets {accident}")
            cures[accident] += [cure_seconds(crew, voice) for _ in range(2)]
            assert _answers(port, "/healthz")
    shown = {accident: [round(s, 1) for s in seconds] for accident, seconds in cures.items()}
    quiet, attacked = cures.pop(QUIET), [s for seconds in cures.values() for s in seconds]
    ratio, peak = statistics.median(attacked) / statistics.median(quiet), peak_memory(operator.pid) / MEBIBYTE
    site.tell(f"cures in s: {shown}: {ratio:.2f} times; operator {peak:.0f} MiB")
    assert operator.alive
    assert ratio <= 1.5
    assert peak < 512


FLOODS: dict[Resource, Callable[[int], dict[str, Any]]] = {
    POLICIES: lambda _: {"mode": "Enforce", "kafka": {"bootstrapServers": ["127.0.0.1:1"]}},
    BROKER_HEALTHS: lambda number: {"policyRef": {"name": OWN}, "brokerId": number},
    SIGNAL_SOURCES: lambda _: api_objects.at_prometheus()["spec"],
    LEADER_REBALANCES: lambda _: {"policy": OWN},
    CONFIG_MAPS: lambda _: {},
    SECRETS: lambda _: {},
    LEASES: lambda _: {},
}
"""Specs of what a tenant may write, by its number."""


@pytest.mark.parametrize("kind", FLOODS, ids=lambda kind: kind.kind)
def test_flood_of_large_objects_leaves_cures_of_another_policy(crew_everywhere: Crew, kind: Resource) -> None:
    """80 MiB of them, of a policy of their own, seen by an operator that runs and listed by one that starts.

    Each object has nearly as much as the API server takes. A cure is there and back.
    """
    crew, site, port = crew_everywhere, crew_everywhere.site, crew_everywhere.site.free_port()
    operator, voice = cured_site(crew)
    labels = {"bellwether.dev/policy": OWN, "bellwether.dev/prober": "true"}
    large = {"labels": labels, "annotations": {"padding": "x" * (250 << 10)}}

    def there_and_back() -> list[float]:
        took = []
        for _ in range(CURES):
            began = time.monotonic()
            cure_seconds(crew, voice)
            took.append(time.monotonic() - began)
        return took

    with AccidentalBroker() as kafka, ExitStack() as stack:
        tenant = tenant_of(crew, stack, "secrets,configmaps,leases,leaderrebalances")
        sources = {"signalSources": [{"name": "large-0"}]}
        spec = {"mode": "Enforce", "kafka": {"bootstrapServers": [kafka.address]}, "detection": sources}
        tenant.write(POLICIES, OWN, spec=spec)
        site.until(lambda: kafka.met, 60, "the operator reads the tenant's Kafka")
        quiet = there_and_back()

        def write(number: int) -> None:
            tenant.write(kind, f"large-{number}", metadata=large, spec=FLOODS[kind](number))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(320)))
        assert tenant.refused == []
        flooded, peaks = there_and_back(), [peak_memory(operator.pid)]
        operator.stop()
        operator = crew.operator("--health-port", str(port))
        ready = site.until(lambda: _answers(port, "/readyz"), 120, "the operator is ready")
        listed = there_and_back()
        peaks.append(peak_memory(operator.pid))
    ratio = statistics.median(flooded + listed) / statistics.median(quiet)
    shown = [[round(seconds, 1) for seconds in some] for some in (quiet, flooded, listed)]
    memory = [peak // MEBIBYTE for peak in peaks]
    site.tell(f"{kind.kind}: quiet {shown[0]} s, flooded {shown[1]} s, started again {shown[2]} s: {ratio:.2f} times")
    site.tell(f"{kind.kind}: ready after {ready:.1f} s; operators {memory[0]} and {memory[1]} MiB")
    assert ratio <= 1.5
    assert max(memory) < 512


def _answers(port: int, path: str) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=limit(10)) as answer:
        return bool(answer.status == 200)


def _ready(tenant: AdverseOwner, name: str) -> dict[str, Any]:
    found = (tenant.api.get(POLICIES, tenant.namespace, name).get("status") or {}).get("conditions") or []
    return next((dict(c) for c in found if c["type"] == "Ready"), {})

"""Two installations of adverse owners on one API server: no right, no name and no flood of one reaches the other.

Real API server with the RBAC and admission of both releases, real brokers, an operator for each with its own account.
A's owner has the chart's edit role and may write Secrets, ConfigMaps and Leases in A's namespaces.
"""

from __future__ import annotations

import base64
import socket
import statistics
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, SECRETS, Resource, connect
from bellwether.core.signals import Reading
from bellwether.ports.errors import BellwetherError
from testkit.kafka.scripted_broker import ScriptedBroker, dripping
from testkit.kubernetes.chart_accounts import OPERATOR
from testkit.kubernetes.service_accounts import Crew
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

CURES = 3
MEBIBYTE = 1 << 20
LARGE_LEASES = 40


@pytest.fixture
def other(audited: AuditedApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Crew]:
    """A second release of the same name, with its own namespaces and the same Kafka cluster."""
    folder = tmp_path / "other"
    folder.mkdir()
    made = Crew(audited, breakable_kafka, folder)
    try:
        yield made
    finally:
        made.close()


def namespaces(crew: Crew) -> set[str]:
    return {crew.home, *crew.namespaces}


def test_no_right_of_one_reaches_the_other(crew: Crew, other: Crew) -> None:
    for one, another in ((crew, other), (other, crew)):
        bindings = [o for o in one.accounts.objects if o["kind"].endswith("RoleBinding")]
        assert [b for b in bindings if b["kind"] == "ClusterRoleBinding"] == []
        accounts = {(s["namespace"], s["name"]) for b in bindings for s in b["subjects"]}
        assert len(accounts) >= 5
        for home, account in accounts:
            grants = one.accounts.grants(f"{home}/{account}")
            assert {grant.namespace for grant in grants} <= namespaces(one)
            # What it may do in its own namespaces, in those of the other, and there by any name.
            elsewhere = {replace(g, namespace=where, names=()) for g in grants for where in namespaces(another)}
            elsewhere |= {replace(g, namespace="", names=()) for g in grants}
            one.accounts.until_allowed(f"system:serviceaccount:{home}:{account}", elsewhere, allowed=False)


def test_their_objects_share_no_name(crew: Crew, other: Crew) -> None:
    names = [
        {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in one.accounts.objects}
        for one in (crew, other)
    ]
    assert set.intersection(*names) == set()


class Owner:
    """A's owner, who writes in the namespace of A's policies."""

    def __init__(self, crew: Crew, stack: ExitStack) -> None:
        self.namespace = crew.site.namespace
        user = f"eve-{self.namespace}"
        kubectl = crew.site.kubectl
        roles = (o["metadata"]["name"] for o in crew.accounts.objects if o["kind"] == "ClusterRole")
        edit = next(name for name in roles if name.endswith("-edit"))
        kubectl("create", "rolebinding", "policies", f"--clusterrole={edit}", f"--user={user}")
        verbs, kinds = "--verb=get,list,create,update,patch,delete", "--resource=secrets,configmaps,leases"
        kubectl("create", "role", "objects", verbs, kinds)
        kubectl("create", "rolebinding", "objects", "--role=objects", f"--user={user}")
        self.api = connect(crew.server.kubeconfig_for(user))
        self.received = bytearray()
        self.address = stack.enter_context(ScriptedBroker(raw=self._keep)).address
        self.refused: list[str] = []

    def _keep(self, client: socket.socket) -> None:
        while some := client.recv(65536):
            self.received += some

    def write(self, kind: Resource, name: str, **body: Any) -> None:
        """Create an object; what the API server refuses is noted."""
        metadata = {"name": name, "namespace": self.namespace, **body.pop("metadata", {})}
        try:
            self.api.create(kind, self.namespace, kind.typed({"metadata": metadata, **body}))
        except BellwetherError as error:
            self.refused.append(f"{kind.kind} {name}: {str(error)[:200]}")

    def policy(self, name: str, bootstrap: str, **kafka: Any) -> None:
        """A policy that enforces, on any address."""
        self.write(
            POLICIES, name, spec={"mode": "Enforce", "kafka": {"bootstrapServers": bootstrap.split(","), **kafka}}
        )


def huge_frame(client: socket.socket) -> None:
    """Announce the longest frame that there is, and send 20 MiB of it."""
    client.recv(4096)
    client.sendall(struct.pack(">i", 2**31 - 1))
    for _ in range(20):
        client.sendall(bytes(MEBIBYTE))


def many_brokers(cluster_id: str) -> Callable[[Any], Any]:
    """Metadata of 20,000 brokers of a cluster that has the type ``cluster_id``."""
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=n, host="a", port=1, rack=None) for n in range(20_000)]
    return lambda _: MetadataResponse(
        throttle_time_ms=0, brokers=brokers, cluster_id=cluster_id, controller_id=1, topics=[], error_code=0
    )


def flood(owner: Owner, cluster_id: str, stack: ExitStack) -> None:
    """What A can write: hostile Kafkas, one with the id of B's, Secrets, large Leases of probers, BrokerHealths."""
    for name, raw in {"dripping": dripping, "huge": huge_frame}.items():
        owner.policy(name, stack.enter_context(ScriptedBroker(raw=raw)).address)
    for name, claimed in {"liar": cluster_id, "crowd": "a-cluster-of-a", "prober": "prober-main.canary.x"}.items():
        owner.policy(name, stack.enter_context(ScriptedBroker({MetadataRequest: many_brokers(claimed)})).address)
    owner.policy("listener", owner.address)
    pem = base64.b64encode(b"-----BEGIN A-----\n" * (900 * 1024 // 18)).decode()
    owner.write(SECRETS, "pem", data={"ca.crt": pem})
    owner.policy("pem", owner.address, tls={"caSecretName": "pem"})
    for number in range(LARGE_LEASES):
        large = {"labels": {"bellwether.dev/prober": "true"}, "annotations": {"x": "x" * 250_000}}
        owner.write(LEASES, f"large-{number}", metadata=large, spec={})
    for broker in range(50):
        override = {"state": "Demoted", "reason": "z" * 256}
        spec = {"policyRef": {"name": "main"}, "brokerId": broker, "override": override}
        owner.write(BROKER_HEALTHS, f"main-{broker}", spec=spec)


def cure_seconds(crew: Crew, voice: Any) -> float:
    """Seconds from a broker's failure to its last leader; then it recovers."""
    site = crew.site
    before = site.orders()
    voice.says(1, Reading.FAILING)
    took = site.until(lambda: site.displaced(1, before), 60, "broker 1 leads nothing", site.orders)
    voice.calls_well(1)
    site.until_restored(before)
    return took


def sole(crew: Crew) -> tuple[str, str]:
    """Reason and message of the condition on other installations."""
    said = condition(crew.site.status(), "SoleInstallation")
    return said.get("reason", ""), said.get("message", "")


def test_flood_and_second_claim_of_one_leave_cures_of_the_other(crew: Crew, other: Crew) -> None:
    b, a = crew, other
    site = b.site
    b.operator()
    site.topics()
    # Without flap damping: a broker that is demoted time after time is given its leaders back later and later.
    promotion = {"stabilizationSeconds": 2, "maxStabilizationSeconds": 0, "waves": {"skipUpToLeaders": 1000}}
    detection = {"externalReachability": {"vantages": ["zone-a"]}}
    site.policy(kafka=b.secured(), detection=detection, demotion={"dwellSeconds": 0}, promotion=promotion)
    site.until_reported()
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    site.until(lambda: site.verdict(1)[0] == "Healthy", 60, "broker 1 is healthy", lambda: site.verdict(1))

    quiet = [cure_seconds(b, voice) for _ in range(CURES)]
    with ExitStack() as stack:
        owner = Owner(a, stack)
        a.operator()
        a.policy(mode="Enforce", kafka=a.secured())
        flood(owner, str(site.status()["clusterId"]), stack)
        attacked = [cure_seconds(b, voice) for _ in range(CURES)]
        a.site.until(lambda: sole(a)[0] == "ClusterClaimed", 90, "A names B's installation", a.site.logs)
        site.until(lambda: sole(b)[0] == "ClusterClaimed", 90, "B names A's installation", site.logs)
        received = bytes(owner.received)

    assert (b.home in sole(a)[1], a.home in sole(b)[1]) == (True, True)
    assert a.site.ready()[0] == "ClusterClaimed"
    assert site.ready()[0] != "ClusterClaimed"
    assert len(site.marks.places()) == 2
    a.site.demote(2, "A's person asks for it")
    a.site.until(lambda: a.site.health(2).get("verdict"), 30, "A judges all the same", a.site.logs)
    assert site.led_by(2) > 0

    ratio = statistics.median(attacked) / statistics.median(quiet)
    shown = [[round(s, 1) for s in seconds] for seconds in (quiet, attacked)]
    site.tell(f"cure of B, quiet {shown[0]} s, while A floods {shown[1]} s: {ratio:.2f} times; {owner.refused}")
    assert ratio < 3
    assert [s for s in secrets(b) if s in received] == []
    assert received, "the operator never connected to A's address: the flood was none"


def secrets(crew: Crew) -> list[bytes]:
    known = crew.site.kafka.security
    assert known is not None
    users = yaml.safe_load(crew.accounts.kubeconfig(OPERATOR).read_text())["users"]
    return [known.username.encode(), known.password.encode(), *(user["user"]["token"].encode() for user in users)]

"""An adverse owner of policies: what they may write in a namespace, hostile Kafkas, and cures of others meanwhile."""

from __future__ import annotations

import base64
import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES, SECRETS, Resource, connect
from bellwether.core.signals import Reading
from bellwether.ports.errors import BellwetherError
from testkit.kafka.scripted_broker import ScriptedBroker, dripping
from testkit.kubernetes.chart_accounts import OPERATOR

if TYPE_CHECKING:
    from testkit.kubernetes.service_accounts import Crew

CURES = 3
MEBIBYTE = 1 << 20


class AdverseOwner:
    """Has the chart's edit role in a namespace, writes ``kinds`` there, and keeps all that its address is sent."""

    def __init__(self, crew: Crew, stack: ExitStack, namespace: str, kinds: str = "secrets,configmaps") -> None:
        self.namespace, self._stack = namespace, stack
        self.api = connect(self._permitted(crew, f"eve-{namespace}", kinds))
        self.received = bytearray()
        self.address = stack.enter_context(ScriptedBroker(raw=self._keep)).address
        self.refused: list[str] = []

    def _permitted(self, crew: Crew, user: str, kinds: str) -> Path:
        kubectl, where = crew.server.kubectl, ("-n", self.namespace)
        roles = (o["metadata"]["name"] for o in crew.accounts.objects if o["kind"] == "ClusterRole")
        edit = next(name for name in roles if name.endswith("-edit"))
        kubectl("create", "rolebinding", "policies", f"--clusterrole={edit}", f"--user={user}", *where)
        verbs = "--verb=get,list,create,update,patch,delete"
        kubectl("create", "role", "objects", verbs, f"--resource={kinds}", *where)
        kubectl("create", "rolebinding", "objects", "--role=objects", f"--user={user}", *where)
        return crew.server.kubeconfig_for(user)

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

    def policy(self, name: str, bootstrap: str, *, annotations: dict[str, str] | None = None, **kafka: Any) -> None:
        """A policy that enforces, on any address."""
        spec = {"mode": "Enforce", "kafka": {"bootstrapServers": bootstrap.split(","), **kafka}}
        self.write(POLICIES, name, metadata={"annotations": annotations or {}}, spec=spec)

    def flood(self, liars: dict[str, str], secret: str) -> None:
        """Hostile Kafkas, those of ``liars`` with the cluster id given there; a large Secret; BrokerHealths."""
        for name, raw in {"dripping": dripping, "huge": _huge_frame}.items():
            self.policy(name, self._stack.enter_context(ScriptedBroker(raw=raw)).address)
        for name, claimed in liars.items():
            liar = ScriptedBroker({MetadataRequest: _many_brokers(claimed)})
            self.policy(name, self._stack.enter_context(liar).address)
        self.policy("listener", self.address)
        pem = base64.b64encode(b"-----BEGIN A-----\n" * (900 * 1024 // 18)).decode()
        self.write(SECRETS, secret, data={"ca.crt": pem})
        self.policy("pem", self.address, tls={"caSecretName": secret})
        for broker in range(50):
            override = {"state": "Demoted", "reason": "z" * 256}
            spec = {"policyRef": {"name": "main"}, "brokerId": broker, "override": override}
            self.write(BROKER_HEALTHS, f"main-{broker}", spec=spec)


def _huge_frame(client: socket.socket) -> None:
    """Announce the longest frame that there is, and send 20 MiB of it."""
    client.recv(4096)
    client.sendall(struct.pack(">i", 2**31 - 1))
    for _ in range(20):
        client.sendall(bytes(MEBIBYTE))


def _many_brokers(cluster_id: str) -> Callable[[Any], Any]:
    """Metadata of 20,000 brokers of a cluster that has the type ``cluster_id``."""
    brokers = [MetadataResponse.MetadataResponseBroker(node_id=n, host="a", port=1, rack=None) for n in range(20_000)]
    return lambda _: MetadataResponse(
        throttle_time_ms=0, brokers=brokers, cluster_id=cluster_id, controller_id=1, topics=[], error_code=0
    )


def cured_site(crew: Crew, *arguments: str, **environment: str) -> tuple[Any, Any]:
    """The operator, and the voice of a vantage of its site, whose brokers are all healthy."""
    site = crew.site
    operator = crew.operator(*arguments, **environment)
    site.topics()
    detection = {"externalReachability": {"vantages": ["zone-a"]}}
    # Without flap damping: a broker that is demoted time after time is given its leaders back later and later.
    promotion = {"stabilizationSeconds": 2, "maxStabilizationSeconds": 0, "waves": {"skipUpToLeaders": 1000}}
    site.policy(kafka=crew.secured(), detection=detection, demotion={"dwellSeconds": 0}, promotion=promotion)
    site.until_reported()
    voice = site.voice("zone-a")
    voice.calls_well(1, 2, 3)
    site.until(lambda: site.verdict(1)[0] == "Healthy", 60, "broker 1 is healthy", lambda: site.verdict(1))
    return operator, voice


def cure_seconds(crew: Crew, voice: Any) -> float:
    """Seconds from a broker's failure to its last leader; then it recovers."""
    site = crew.site
    before = site.orders()
    voice.says(1, Reading.FAILING)
    took = site.until(lambda: site.displaced(1, before), 60, "broker 1 leads nothing", site.orders)
    voice.calls_well(1)
    site.until_restored(before)
    return took


def secrets_of(crew: Crew) -> list[bytes]:
    """User, password and tokens of an installation."""
    known = crew.site.kafka.security
    assert known is not None
    users = yaml.safe_load(crew.accounts.kubeconfig(OPERATOR).read_text())["users"]
    return [known.username.encode(), known.password.encode(), *(user["user"]["token"].encode() for user in users)]

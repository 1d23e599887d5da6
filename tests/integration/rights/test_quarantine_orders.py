"""Who may order a hold: by the chart's roles alone, without any admission policy, the operator and no prober."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, KubernetesClient, connect
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.objects.quarantine_orders import BrokerOrders, LeaseOrders
from bellwether.core.quarantine.agent import HoldOrder, OrderRead
from bellwether.ports.errors import Terminal
from testkit.kubernetes.chart_accounts import FULL, OPERATOR, Accounts
from testkit.values.builders import after
from testkit.values.quarantine_inputs import ordered

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.chart]

SIDECARS, PROBER = "brokers", f"{FULL}-prober-replication"
ORDER = ordered(1, renewed_at=after(3))


@dataclass
class Scene:
    """An operator in ``home``, probers of a policy in ``policies``, and an order to hold broker 1."""

    accounts: Accounts
    admin: KubernetesClient
    home: str
    policies: str

    @property
    def orders(self) -> LeaseOrders:
        """Orders as the operator's token writes them."""
        return LeaseOrders(self.by(OPERATOR), self.home, f"{self.policies}/main", "operator-a")

    def by(self, account: str, pod: str = "") -> KubernetesClient:
        """A client with a token of the account."""
        return self.accounts.client(account, pod)

    def lease(self, broker: int = 1) -> str:
        """Name of the order to hold a broker."""
        return object_names.quarantine_order(self.policies, "main", broker)


@pytest.fixture(scope="module")
def scene(audited: AuditedApiServer) -> Iterator[Scene]:
    home, policies = (audited.create_namespace(f"{name}-{uuid.uuid4().hex[:8]}") for name in ("home", "policies"))
    account = {"name": SIDECARS, "namespace": home, "policy": "main", "policyNamespace": policies, "brokerIds": [1]}
    values = {
        "watchNamespaces": [policies],
        "admission": {"enabled": False},
        "probers": [{"kind": "Replication"}],
        "sidecars": {"accounts": [account], "quarantineAgent": {"enabled": True}},
    }
    made = Scene(Accounts(audited, home, values), connect(audited.kubeconfig), home, policies)
    made.accounts.make(SIDECARS)
    made.orders.keep({1: ORDER, 2: ordered(2)})
    yield made
    made.accounts.remove()


Forge = Callable[[Scene, KubernetesClient], object]


def create(scene: Scene, api: KubernetesClient) -> object:
    body = scene.admin.get(LEASES, scene.home, scene.lease())
    body["metadata"] = {"name": scene.lease(3), "annotations": body["metadata"]["annotations"]}
    return api.create(LEASES, scene.home, body)


def renew(scene: Scene, api: KubernetesClient) -> object:
    body = scene.admin.get(LEASES, scene.home, scene.lease())
    body["spec"]["renewTime"] = "2030-01-01T00:00:00.000000Z"
    return api.replace(LEASES, scene.home, body)


def prolong(scene: Scene, api: KubernetesClient) -> object:
    return api.merge(LEASES, scene.home, scene.lease(), {"spec": {"leaseDurationSeconds": 86400}})


FORGED: dict[str, tuple[str, Forge]] = {
    "give an order": ("create", create),
    "renew an order": ("update", renew),
    "prolong an order": ("patch", prolong),
    "remove an order": ("delete", lambda s, a: a.delete(LEASES, s.home, s.lease())),
    "list the orders": ("list", lambda s, a: a.list(LEASES, s.home)),
}


@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize(("account", "pod"), [(PROBER, ""), (SIDECARS, "kafka-1"), (SIDECARS, "")])
def test_without_admission_no_prober_may(scene: Scene, what: str, account: str, pod: str) -> None:
    verb, forge = FORGED[what]
    before = scene.admin.list(LEASES, scene.home)
    with pytest.raises(Terminal, match=f"lacks the verb '{verb}' on leases"):
        forge(scene, scene.by(account, pod))
    assert scene.admin.list(LEASES, scene.home) == before


def test_lease_of_that_name_in_probers_own_namespace_orders_nothing(scene: Scene) -> None:
    body = scene.admin.get(LEASES, scene.home, scene.lease())
    body["metadata"] = {"name": scene.lease(), "annotations": body["metadata"]["annotations"]}
    scene.by(PROBER).create(LEASES, scene.policies, {**body, "spec": {**body["spec"], "holderIdentity": "forged"}})
    mine = BrokerOrders(scene.by(SIDECARS, "kafka-1"), scene.home, scene.policies, "main", 1)
    assert mine.read() == OrderRead(HoldOrder(1, 1, after(3), 600.0, 12.0))


def test_an_agent_reads_the_order_of_its_own_broker_and_no_other_lease_there(scene: Scene) -> None:
    agent = scene.by(SIDECARS, "kafka-1")
    assert BrokerOrders(agent, scene.home, scene.policies, "main", 1).read().command is not None
    for name in (scene.lease(2), "bellwether-cluster-x7f3"):
        with pytest.raises(Terminal, match="lacks the verb 'get' on leases") as refused:
            agent.get(LEASES, scene.home, name)
        assert not isinstance(refused.value, NotFound)


def test_the_operator_renews_ends_and_removes_its_orders(scene: Scene) -> None:
    orders = scene.orders
    assert orders.take_over()[1] == ORDER
    for order in (replace(ORDER, renewed_at=after(6)), replace(ORDER, ended_at=after(9))):
        orders.keep({1: order, 2: ordered(2)})
        assert scene.orders.take_over()[1] == order
    orders.keep({2: ordered(2)})
    assert set(scene.orders.take_over()) == {2}
    orders.keep({1: ORDER, 2: ordered(2)})

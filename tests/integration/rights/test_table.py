"""One table says what each process needs: the chart grants exactly that, and the page for people holds every line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import Object
from bellwether.adapters.kubernetes.permissions import OPERATOR as OPERATORS
from bellwether.adapters.kubernetes.permissions import (
    PROBER,
    QUARANTINE_AGENT,
    SAMPLER,
    SOURCE_PROBER,
    Need,
    Only,
    Where,
)
from chartvalues.rights import table
from testkit.kubernetes.chart_accounts import FULL, OPERATOR, granted, rendered
from testkit.kubernetes.chart_accounts import SAMPLER as SAMPLERS

pytestmark = pytest.mark.chart

PAGE = Path(__file__).parents[3] / "docs" / "security" / "permissions.md"
HOME, POLICIES = "ops", "kafka"
WHERE = {Where.POLICIES: POLICIES, Where.LEASES: HOME, Where.CLUSTER: ""}
EVERYWHERE = {"watchNamespaces": [], "watchAllNamespaces": True}


def values(**changed: Any) -> dict[str, Any]:
    """Everything is wanted."""
    kinds = [{"kind": "Reachability", "vantage": "zone-a"}, {"kind": "Replication"}, {"kind": "Prometheus"}]
    plugin = {"kind": "Plugin", "plugin": "TlsVersion", "vantage": "zone-a"}
    return {
        "watchNamespaces": [POLICIES],
        "rbac": {"secretNames": ["kafka-user"]},
        "spark": {"enabled": True, "namespaces": [POLICIES]},
        "strimzi": {"enabled": True},
        "maintenance": {"watchPods": True},
        "probers": [*kinds, plugin],
        "sidecars": {"accounts": [{"name": "brokers", "policy": "main", "policyNamespace": POLICIES}]},
        "load": {"stores": {"default": {"namespaces": ["*"], "uri": "s3://samples"}}},
        "sampler": {"enabled": True},
        **changed,
    }


def needed(needs: tuple[Need, ...], *left_out: Only) -> set[tuple[str, str, str, str]]:
    """Group, resource, verb, namespace."""
    return {
        (need.group, need.resource, verb, WHERE[need.where])
        for need in needs
        if need.only not in left_out
        for verb in need.verbs
    }


RENDERED: dict[str, list[Object]] = {}


def objects(**changed: Any) -> list[Object]:
    """The chart with these values, rendered once for all tests."""
    key = json.dumps(changed)
    RENDERED[key] = RENDERED.get(key) or rendered(values(**changed), HOME)
    return RENDERED[key]


def given(account: str, **changed: Any) -> set[tuple[str, str, str, str]]:
    return {(g.group, g.resource, g.verb, g.namespace) for g in granted(objects(**changed), account)}


def test_the_operator_is_granted_its_table_in_the_watched_namespaces_and_its_own() -> None:
    assert given(OPERATOR) == needed(OPERATORS, Only.EVERYWHERE)


def test_with_all_namespaces_its_rights_are_everywhere_but_for_leases() -> None:
    less = {"spark": {"enabled": False}, "strimzi": {"enabled": False}, "maintenance": {"watchPods": False}}
    found = given(OPERATOR, **EVERYWHERE, **less)
    everywhere = {
        (group, resource, verb, "" if namespace == POLICIES else namespace)
        for group, resource, verb, namespace in needed(OPERATORS, Only.JOBS, Only.STRIMZI, Only.RESTARTS)
        if (resource, namespace) != ("configmaps", HOME)  # which all namespaces have in them
    }
    assert found == everywhere


@pytest.mark.parametrize(
    "account",
    [
        f"{FULL}-prober-reachability-zone-a",
        f"{FULL}-prober-replication",
    ],
)
def test_a_prober_that_asks_kafka_is_granted_its_table_in_its_policys_namespace(account: str) -> None:
    assert given(account) == needed(PROBER)


def test_prober_of_sources_reads_them_and_writes_their_status_in_addition() -> None:
    assert given(f"{FULL}-prober-plugin-tlsversion-zone-a") == needed(PROBER) | needed(SOURCE_PROBER)
    assert given(f"{FULL}-prober-prometheus") == needed(PROBER, Only.STRIMZI) | needed(SOURCE_PROBER)


def test_a_sidecar_reads_no_secret_and_serves_one_policy() -> None:
    assert given("brokers") == needed(PROBER, Only.SECRETS, Only.STRIMZI, Only.SEVERAL)


@pytest.mark.parametrize("account", [f"{FULL}-prober-replication", SAMPLERS])
def test_with_all_namespaces_probers_and_sampler_have_their_rights_everywhere(account: str) -> None:
    needs = SAMPLER if account == SAMPLERS else PROBER
    assert given(account, **EVERYWHERE) == {(group, resource, verb, "") for group, resource, verb, _ in needed(needs)}


def test_a_quarantine_agent_reads_its_order_in_the_operators_namespace_and_gets_nothing_else() -> None:
    account = {"name": "brokers", "policy": "main", "policyNamespace": POLICIES}
    agent = {"sidecars": {"accounts": [account], "quarantineAgent": {"enabled": True}}}
    prober = needed(PROBER, Only.SECRETS, Only.STRIMZI, Only.SEVERAL)
    assert given("brokers", **agent) == prober | needed(QUARANTINE_AGENT)
    assert given("brokers", **agent, admission={"enabled": False}) == prober | needed(QUARANTINE_AGENT)


def test_quarantine_agent_whose_brokers_are_known_reads_their_orders_alone() -> None:
    account = {"name": "brokers", "policy": "main", "policyNamespace": POLICIES, "brokerIds": [0, 12]}
    agent = {"sidecars": {"accounts": [account], "quarantineAgent": {"enabled": True}}}
    grants = [g for g in granted(objects(**agent), "brokers") if g.namespace == HOME]
    names = tuple(object_names.quarantine_order(POLICIES, "main", broker) for broker in (0, 12))
    assert [(g.resource, g.verb, g.names) for g in grants] == [("leases", "get", names)]


def test_the_webhook_that_adds_sidecars_is_granted_nothing() -> None:
    account = {"name": "brokers", "policy": "main", "policyNamespace": POLICIES}
    injected = {"accounts": [account], "inject": True, "injection": "webhook", "podSelector": {"app": "kafka"}}
    found = objects(sidecars=injected)
    (webhook,) = [o for o in found if o["kind"] == "Deployment" and "-sidecar-webhook-" in o["metadata"]["name"]]
    pod = webhook["spec"]["template"]["spec"]
    assert granted(found, pod["serviceAccountName"]) == []
    assert pod["automountServiceAccountToken"] is False


def test_the_sampler_is_granted_its_table() -> None:
    assert given(SAMPLERS) == needed(SAMPLER)


def test_without_secrets_plans_and_strimzi_nothing_is_granted_for_them() -> None:
    off = {"enabled": False}
    bare = {"rbac": {}, "spark": off, "strimzi": off, "maintenance": {"watchPods": False}}
    unwanted = (Only.SECRETS, Only.JOBS, Only.STRIMZI, Only.RESTARTS)
    assert given(OPERATOR, **bare) == needed(OPERATORS, Only.EVERYWHERE, *unwanted)
    assert given(f"{FULL}-prober-replication", **bare) == needed(PROBER, *unwanted)
    assert given(SAMPLERS, **bare) == needed(SAMPLER, *unwanted)


def test_secrets_are_granted_by_name() -> None:
    grants = [g for g in granted(objects(), OPERATOR) if g.resource == "secrets"]
    assert [(g.verb, g.names) for g in grants] == [("get", ("kafka-user",)), ("get", ("bellwether",))]


TABLES = {
    "operator": OPERATORS,
    "prober": PROBER,
    "prober of sources": SOURCE_PROBER,
    "quarantine agent": QUARANTINE_AGENT,
    "sampler": SAMPLER,
}


@pytest.mark.parametrize("needs", TABLES.values(), ids=TABLES)
def test_the_page_holds_every_line_of_the_table(needs: tuple[Need, ...]) -> None:
    rows = "\n".join(row(need) for need in needs)
    assert rows in PAGE.read_text()


def test_the_page_holds_no_other_line() -> None:
    lines = {line for line in PAGE.read_text().splitlines() if line.startswith("| `")}
    assert lines == {row(need) for needs in TABLES.values() for need in needs}


@pytest.mark.parametrize("everywhere", [False, True])
def test_page_prints_the_rights_of_the_rendered_chart(everywhere: bool) -> None:
    assert table(rendered({"watchAllNamespaces": everywhere}, "bellwether", "bellwether")) in PAGE.read_text()


def row(need: Need) -> str:
    where = f"{need.where}, where {need.only}" if need.only else str(need.where)
    return f"| `{need.resource}` | {need.group or 'core'} | {', '.join(need.verbs)} | {where} | {need.why} |"

"""What policies that name a Strimzi cluster need as well: it suffices, and each verb that is taken away is missed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.permissions import OPERATOR as TABLE
from bellwether.adapters.kubernetes.permissions import SAMPLER as SAMPLERS
from bellwether.adapters.kubernetes.permissions import Need, Only
from testkit.kubernetes.chart_accounts import OPERATOR, SAMPLER
from testkit.kubernetes.service_accounts import Crew
from testkit.kubernetes.strimzi_fixture import CA, StrimziSite
from testkit.kubernetes.strimzi_objects import CLUSTER
from testkit.processes.sites import POLICY

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]


@pytest.fixture
def crew(audited: AuditedApiServer, breakable_kafka: KafkaCluster, tmp_path: Path) -> Iterator[Crew]:
    from realparts import strimzi

    audited.apply(strimzi.definitions())
    made = Crew(audited, breakable_kafka, tmp_path, strimzi={"enabled": True})
    try:
        StrimziSite(made.site, breakable_kafka).everything()
        made.site.topics({made.site.topic: 6})
        yield made
    finally:
        made.close()


def verbs(table: tuple[Need, ...]) -> list[tuple[str, str, str]]:
    return [(n.group, n.resource, verb) for n in table if n.only is Only.STRIMZI for verb in n.verbs]


def begin(crew: Crew, cluster: str = CLUSTER) -> None:
    crew.policy(kafka={"strimzi": {"clusterName": cluster}})
    crew.operator()


def test_the_operator_needs_each_verb_on_strimzis_objects(crew: Crew) -> None:
    begin(crew)
    crew.site.until_reported()
    refused = {(call.verb, call.resource, call.name) for call in crew.calls(OPERATOR) if call.forbidden}
    assert refused == {("get", "secrets", CA)}, "no Secret of the cluster is named in the release"
    needed = verbs(TABLE)
    assert {(g.group, g.resource, g.verb) for g in crew.unused(OPERATOR)} & set(needed) == {
        ("kafka.strimzi.io", "kafkas", "list")
    }
    for group, resource, verb in needed:
        if (resource, verb) == ("kafkas", "list"):
            continue
        crew.site.processes[-1].stop()  # which gives its Lease up
        with crew.accounts.without(OPERATOR, group, resource, verb, crew.site.namespace):
            crew.operator()
            lack = f"lacks the verb '{verb}' on {resource}"
            crew.site.until(lambda w=lack: w in crew.site.ready()[1], 60, lack, crew.site.logs)  # type: ignore[misc]
            assert not crew.site.settled()
        crew.site.until_reported()


def test_without_the_right_to_list_no_existing_cluster_is_named(crew: Crew) -> None:
    with crew.accounts.without(OPERATOR, "kafka.strimzi.io", "kafkas", "list", crew.site.namespace):
        begin(crew, "no-such")
        crew.site.until(
            lambda: "Kafka no-such does not exist" in crew.site.ready()[1], 60, "it is named", crew.site.logs
        )
        assert f"existing: {CLUSTER}" not in crew.site.ready()[1]
    crew.site.until(lambda: f"existing: {CLUSTER}" in crew.site.ready()[1], 60, "the others are named", crew.site.logs)


def test_the_sampler_needs_each_verb_on_strimzis_objects(crew: Crew, tmp_path: Path) -> None:
    crew.policy(kafka={"strimzi": {"clusterName": CLUSTER}})
    assert crew.site.api.get(POLICIES, crew.site.namespace, POLICY)
    kubeconfig = crew.accounts.kubeconfig(SAMPLER)
    command = ("sample", "--policy", POLICY, "-n", crew.site.namespace, "--store", str(tmp_path / "s"), "--once")
    for group, resource, verb in verbs(SAMPLERS):
        with crew.accounts.without(SAMPLER, group, resource, verb):
            done = crew.ran(kubeconfig, *command)
        assert done.returncode == 1
        assert f"lacks the verb '{verb}' on {resource}" in " ".join(done.stderr.split())
    assert crew.ran(kubeconfig, *command).returncode == 0
    # Only the sampler of several policies lists them.
    assert {(g.resource, g.verb) for g in crew.unused(SAMPLER) if g.group} == {("leadershippolicies", "list")}

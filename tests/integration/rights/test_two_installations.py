"""Two installations of adverse owners on one API server: no right, no name and no flood of one reaches the other.

Real API server with the RBAC and admission of both releases, real brokers, an operator for each with its own account.
A's owner has the chart's edit role and may write Secrets, ConfigMaps and Leases in A's namespaces.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES
from testkit.kubernetes.adverse_owners import CURES, AdverseOwner, cure_seconds, cured_site, secrets_of
from testkit.kubernetes.service_accounts import Crew
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.auditing import AuditedApiServer
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

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


def sole(crew: Crew) -> tuple[str, str]:
    """Reason and message of the condition on other installations."""
    said = condition(crew.site.status(), "SoleInstallation")
    return said.get("reason", ""), said.get("message", "")


def test_flood_and_second_claim_of_one_leave_cures_of_the_other(crew: Crew, other: Crew) -> None:
    b, a = crew, other
    site = b.site
    _, voice = cured_site(b)
    quiet = [cure_seconds(b, voice) for _ in range(CURES)]
    with ExitStack() as stack:
        owner = AdverseOwner(a, stack, a.site.namespace, "secrets,configmaps,leases")
        a.operator()
        a.policy(mode="Enforce", kafka=a.secured())
        mine = str(site.status()["clusterId"])
        owner.flood({"liar": mine, "crowd": "a-cluster-of-a", "prober": "prober-main.canary.x"}, "pem")
        for number in range(LARGE_LEASES):
            large = {"labels": {"bellwether.dev/prober": "true"}, "annotations": {"x": "x" * 250_000}}
            owner.write(LEASES, f"large-{number}", metadata=large, spec={})
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
    assert [s for s in secrets_of(b) if s in received] == []
    assert received, "the operator never connected to A's address: the flood was none"

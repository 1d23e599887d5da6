"""Each verb of probers and sampler is taken away once: nothing is said of a broker, and the log tells why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bellwether.adapters.kubernetes.api_client import LEASES, SIGNAL_SOURCES
from bellwether.adapters.kubernetes.permissions import PROBER, QUARANTINE_AGENT, SAMPLER, SOURCE_PROBER, Only, Where
from testkit.kubernetes import api_objects, chart_accounts
from testkit.kubernetes.missing_permissions import Key, Lack, needs, nothing
from testkit.kubernetes.service_accounts import CREDENTIALS, RULES, SIDECARS, Crew
from testkit.processes.sites import POLICY

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.chart, pytest.mark.slow]

LP, BH, LE, SS = "leadershippolicies", "brokerhealths", "leases", "signalsources"
P = Where.POLICIES


def start_storage(crew: Crew) -> None:
    crew.healths(crew.policy(), 1)
    crew.prober(SIDECARS, "storage", "--directory", str(crew.disk(1)), pod="kafka-1")


def start_rules(crew: Crew) -> None:
    rules = {"url": "https://127.0.0.1:1", "bearerTokenSecretName": CREDENTIALS, "rules": [RULE]}
    source = api_objects.source("prom", crew.site.namespace, prometheus={**rules, "periodSeconds": 1})
    crew.site.api.create(SIGNAL_SOURCES, crew.site.namespace, source)
    crew.healths(crew.policy(detection={"signalSources": [{"name": "prom"}]}), 1)
    crew.prober(RULES, "prometheus", policy=None)


RULE = {"name": "down", "query": "up", "threshold": "1"}


def measured(crew: Crew) -> bool:
    return bool(crew.entry(1, "StorageLatency"))


def start_and_measure(crew: Crew) -> None:
    start_storage(crew)
    crew.site.until(lambda: measured(crew), 60, "it speaks", crew.site.logs)


def asked(crew: Crew) -> bool:
    said = crew.entry(1, "Prometheus").get("message", "lacks")
    return "lacks" not in said


def ready(crew: Crew) -> bool:
    (found,) = crew.site.api.list(SIGNAL_SOURCES, crew.site.namespace)
    return bool(found["status"]["conditions"][0]["reason"] != "NoProber")


def fresh(crew: Crew) -> bool:
    (found,) = crew.site.api.list(LEASES, crew.site.namespace)
    age = datetime.now(UTC) - datetime.fromisoformat(found["spec"]["renewTime"])  # noqa: TID251 - the API's own clock
    return bool(found["spec"].get("holderIdentity")) and age < timedelta(seconds=5)


LACKS: dict[Key, tuple[str, Lack]] = {
    (P, LP, "get"): (SIDECARS, Lack(measured, start_storage)),
    (P, LP, "list"): (RULES, Lack(asked, start_rules)),
    (P, BH, "get"): (SIDECARS, Lack(measured, start_storage)),
    (P, BH, "list"): (RULES, Lack(asked, start_rules)),
    (P, f"{BH}/status", "patch"): (SIDECARS, Lack(measured, start_storage)),
    (P, LE, "get"): (SIDECARS, Lack(measured, start_storage)),
    (P, LE, "create"): (SIDECARS, Lack(measured, start_storage)),
    (P, LE, "update"): (SIDECARS, Lack(fresh, nothing, start_and_measure)),
    (P, "secrets", "get"): (RULES, Lack(asked, start_rules, recovers=False)),
    (P, SS, "list"): (RULES, Lack(asked, start_rules)),
    (P, f"{SS}/status", "patch"): (RULES, Lack(ready, start_rules)),
}
NEEDS = (*PROBER, *SOURCE_PROBER)


def test_every_verb_of_a_prober_is_taken_away_here() -> None:
    assert set(LACKS) == set(needs(need for need in NEEDS if need.only is not Only.STRIMZI))


@pytest.mark.parametrize("key", LACKS, ids=[f"{verb} {resource}" for _, resource, verb in LACKS])
def test_a_prober_needs(crew: Crew, key: Key) -> None:
    account, lack = LACKS[key]
    lack.shown(crew, account, key, needs(NEEDS)[key])


def start_agent(crew: Crew) -> None:
    crew.healths(crew.policy(quarantine={"mode": "Enabled"}), 1)
    crew.agent(1)


def ready_to_hold(crew: Crew) -> bool:
    return crew.entry(1, "Quarantine").get("reading") == "Passing"


def test_a_quarantine_agent_needs_to_read_its_order(crew: Crew) -> None:
    ((key, group),) = needs(QUARANTINE_AGENT).items()
    Lack(ready_to_hold, start_agent).shown(crew, SIDECARS, key, group)


def test_the_sampler_needs_each_of_its_verbs(crew: Crew, tmp_path: Path) -> None:
    crew.site.topics({crew.site.topic: 6})
    crew.policy(kafka=crew.secured())
    kubeconfig = crew.accounts.kubeconfig(chart_accounts.SAMPLER)
    command = ("sample", "--policy", POLICY, "-n", crew.site.namespace, "--store", str(tmp_path / "s"), "--once")
    for (_, resource, verb), group in needs(
        need for need in SAMPLER if need.only not in (Only.STRIMZI, Only.SEVERAL)
    ).items():
        with crew.accounts.without(chart_accounts.SAMPLER, group, resource, verb):
            done = crew.ran(kubeconfig, *command)
        assert done.returncode == 1
        assert f"lacks the verb '{verb}' on {resource}" in " ".join(done.stderr.split())
    assert crew.ran(kubeconfig, *command).returncode == 0

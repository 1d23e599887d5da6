"""``bellwether diff``: what changed policies would do, as text and JSON, and the exit status for CI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import LEADER_REBALANCES, POLICIES, SIGNAL_SOURCES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.cli.main import main
from bellwether.cli.planning.policy_inputs import PolicyInputs
from bellwether.core.signals import Reading
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from testkit.simulation.memory_site import MemorySite


class Live:
    """Policies in the API, and a cluster of three brokers, the first of which fails at both vantages."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.site = MemorySite(MemoryCluster({1: "a", 2: "b", 3: "c"}))
        self.site.cluster.create_topic("orders", assignment=[[1, 2, 3], [1, 3, 2], [2, 3, 1], [3, 1, 2]])
        for broker in (1, 2, 3):
            self.site.signals.say(broker, Reading.FAILING if broker == 1 else Reading.PASSING)

    @contextmanager
    def opened(self, api: MemoryApi, policy: LeadershipPolicy, *_: Any) -> Iterator[PolicyInputs]:
        audit_log = ConfigMapAuditLog(api, "default", "main", self.site.clock)
        yield PolicyInputs(policy, (), None, self.site.process(), audit_log, ("restarts are not known",))


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    live = Live()
    monkeypatch.setattr("bellwether.cli.policies.diff.connect", lambda _: (live.api, "default"))
    monkeypatch.setattr("bellwether.cli.planning.policy_inputs.open_policy", live.opened)
    return live


def diff(*bodies: api_objects.Body, options: tuple[str, ...] = ()) -> Result:
    text = "---\n".join(yaml.safe_dump(body) for body in bodies)
    return CliRunner().invoke(main, ["diff", "-f", "-", *options], input=text)


def test_enforcing_shows_who_is_demoted_and_which_leaders_move(live: Live):
    live.api.put(POLICIES, api_objects.policy())
    done = diff(api_objects.policy(mode="Enforce"))
    assert done.exit_code == 4, done.output
    lines = done.stdout.splitlines()
    assert_wording(lines[:3])
    current, changed = done.stdout.split("  with the changed policy:\n")
    assert_wording(current, changed)
    assert "orders-0 [1, 2, 3] -> [2, 3, 1], leader 1 -> 2" in changed or "leader 1 -> 3" in changed
    assert [line.split() for line in lines if line.startswith("  1 ")] == [["1", "2", "2", "0"]]
    assert live.api.writes == []
    assert live.site.cluster.snapshot().leaders()[1] == 2


def test_a_change_that_moves_nothing_else_ends_with_status_0(live: Live):
    live.api.put(POLICIES, api_objects.policy())
    done = diff(api_objects.policy(promotion={"stabilizationSeconds": 7}))
    assert done.exit_code == 0
    assert "spec.promotion.stabilizationSeconds: 60 -> 7" in done.stdout


def test_changed_source_is_compared_by_fields_and_by_judgement(live: Live):
    rule = {"name": "flush", "query": "up", "threshold": "200"}
    for resource, body in (
        (SIGNAL_SOURCES, api_objects.source("prom", prometheus={"url": "http://p", "rules": [rule]})),
        (POLICIES, api_objects.naming("prom", mode="Enforce")),
    ):
        live.api.put(resource, body)
    live.site.signals.say(1, Reading.PASSING)
    live.site.signals.say(2, Reading.FAILING, type="Prometheus", sources=["flush"])
    suspecting = {**rule, "onFailing": "Suspect"}
    changed = api_objects.source("prom", prometheus={"url": "http://p", "rules": [suspecting]})
    done = diff(api_objects.naming("prom", mode="Enforce"), changed, options=("-o", "json"))
    (found,) = json.loads(done.stdout)
    assert [change["field"] for change in found["settings"]] == ["SignalSource prom.prometheus.rules"]
    assert (found["current"]["demoted"], found["changed"]["demoted"]) == ([2], [])


def test_changed_rebalance_is_compared_by_fields(live: Live):
    live.api.put(POLICIES, api_objects.policy(mode="Enforce"))
    live.api.put(LEADER_REBALANCES, api_objects.rebalance(approval="Automatic"))
    done = diff(api_objects.policy(mode="Enforce"), api_objects.rebalance(), options=("-o", "json"))
    (found,) = json.loads(done.stdout)
    assert found["settings"] == [
        {"field": f"LeaderRebalance {api_objects.LOADS}.approval", "before": "Automatic", "after": "Manual"}
    ]


def test_json_has_each_move_and_the_leaders_before_and_after(live: Live):
    live.api.put(POLICIES, api_objects.policy())
    (found,) = json.loads(diff(api_objects.policy(mode="Enforce"), options=("-o", "json")).stdout)
    again = diff(api_objects.policy(mode="Enforce"), options=("-o", "yaml"))
    assert yaml.safe_load(again.stdout) == [found]
    assert (found["current"]["leadersMoved"], found["notes"]) == (0, ["restarts are not known"])
    assert (found["changed"]["demoted"], found["changed"]["leadersMoved"]) == ([1], 2)
    assert {c["partition"] for c in found["changed"]["changes"] if c["leaderBefore"] != c["leader"]} == {
        "orders-0",
        "orders-1",
    }
    assert found["leaders"][0] == {"broker": 1, "now": 2, "current": 2, "changed": 0}


def test_a_new_policy_is_compared_with_no_policy(live: Live):
    done = diff(api_objects.policy(mode="Enforce"))
    assert done.exit_code == 4
    assert done.stdout.startswith("policy default/main: new\n")
    assert "current policy" not in done.stdout


def test_a_new_policy_for_a_managed_cluster_is_refused(live: Live):
    managed = api_objects.policy("other")
    live.api.put(POLICIES, {**managed, "status": {"clusterId": live.site.cluster.snapshot().cluster_id}})
    done = diff(api_objects.policy(mode="Enforce"))
    assert done.exit_code == 1
    assert_wording(done.stderr)


def test_an_override_in_the_files_is_part_of_the_change(live: Live):
    live.api.put(POLICIES, api_objects.policy(mode="Enforce"))
    override = {"state": "Promoted", "reason": "keep"}
    done = diff(api_objects.policy(mode="Enforce"), api_objects.health(1, override=override), options=("-o", "json"))
    (found,) = json.loads(done.stdout)
    assert (found["current"]["demoted"], found["changed"]["demoted"], done.exit_code) == ([1], [], 4)


def test_files_with_errors_are_refused_before_anything_is_read(live: Live, tmp_path: Path):
    done = diff(api_objects.policy(mode="enforce"))
    assert done.exit_code == 1
    assert_wording(done.stderr)
    folder = [tmp_path / name for name in ("b.yaml", "a.yaml")]
    for file in folder:
        file.write_text("kind: LeadershipPolicy\n")
    several = CliRunner().invoke(main, ["diff", *(word for file in folder for word in ("-f", str(file)))]).stderr
    assert several.index("a.yaml:1") < several.index("b.yaml:1")
    assert diff({"kind": "Secret"}).exit_code == 1
    assert CliRunner().invoke(main, ["diff", "-f", str(tmp_path / "none.yaml")]).exit_code == 1
    assert diff(api_objects.policy(), options=("--for", "soon")).exit_code == 2

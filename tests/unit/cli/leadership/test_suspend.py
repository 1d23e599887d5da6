"""``suspend`` and ``resume`` of one policy and of all, and what no operator has confirmed."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.cli.leadership import wait as verb
from bellwether.cli.main import main
from bellwether.ports.errors import Terminal
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording


class Operated(MemoryApi):
    """An API whose operator reads every policy at once, while it ``runs``."""

    runs = True

    def merge(self, *arguments, **more):
        changed = super().merge(*arguments, **more)
        if self.runs:
            namespace, name = changed["metadata"]["namespace"], changed["metadata"]["name"]
            seen = {"status": {"observedGeneration": changed["metadata"]["generation"]}}
            super().merge(POLICIES, namespace, name, seen, sub="status")
        return changed


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Operated:
    made = Operated()
    for namespace, name in (("kafka", "orders"), ("kafka", "payments"), ("other", "logs")):
        body = api_objects.policy(name, mode="Enforce")
        body["metadata"]["namespace"] = namespace
        body["status"] = {"brokers": {"demoted": 1}}
        made.put(POLICIES, body)
    made.serve_commands(monkeypatch)
    monkeypatch.setattr(verb, "POLL_SECONDS", 0.0)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def suspended(api: MemoryApi) -> set[str]:
    return {p["metadata"]["name"] for p in api.all(POLICIES) if p["spec"].get("suspend")}


def test_a_policy_is_suspended_and_the_way_back_is_printed(api: Operated):
    found = run("suspend", "--policy", "orders", "-n", "kafka")

    assert found.exit_code == 0
    assert_wording(found.output)
    assert suspended(api) == {"orders"}


def test_a_policy_that_is_resumed_acts_in_its_mode(api: Operated):
    run("suspend", "--policy", "orders", "-n", "kafka")

    assert_wording(run("resume", "--policy", "orders", "-n", "kafka").output)
    assert suspended(api) == set()


def test_everything_stops_with_one_command(api: Operated):
    found = run("suspend", "--all")

    assert found.exit_code == 0
    assert len(found.output.splitlines()) == 3
    assert suspended(api) == {"orders", "payments", "logs"}


def test_all_policies_of_a_namespace_are_those_of_no_other(api: Operated):
    run("suspend", "--all", "-n", "kafka")

    assert suspended(api) == {"orders", "payments"}


def test_a_policy_that_may_not_be_changed_does_not_keep_the_others_going(
    api: Operated, monkeypatch: pytest.MonkeyPatch
):
    merge = api.merge

    def some(resource, namespace, name, patch, **more):
        if namespace == "other":
            raise Terminal("user jo lacks the verb 'patch'")
        return merge(resource, namespace, name, patch, **more)

    monkeypatch.setattr(api, "merge", some)
    found = run("suspend", "--all")

    assert found.exit_code == 1
    assert_wording(found.output)
    assert suspended(api) == {"orders", "payments"}


def test_what_no_operator_has_read_is_not_taken_for_done(api: Operated):
    api.runs = False
    found = run("suspend", "--all", "--wait", "0")

    assert found.exit_code == 3
    assert_wording(found.output)
    assert suspended(api) == {"orders", "payments", "logs"}


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        pytest.param(
            ["--policy", "order", "-n", "kafka"], 1, "no LeadershipPolicy order; it has: orders, payments", id="policy"
        ),
        pytest.param(["-n", "kafka"], 1, "orders, payments", id="several"),
        pytest.param(["--all", "-n", "kafak"], 1, "namespace kafak has no LeadershipPolicy", id="namespace"),
        pytest.param(["--policy", "orders", "--all"], 2, "--policy orders excludes --all", id="both"),
    ],
)
def test_a_mistake_changes_nothing_and_names_what_exists(api: Operated, arguments: list[str], status: int, said: str):
    found = run("suspend", *arguments)

    assert found.exit_code == status
    assert said in found.output
    assert suspended(api) == set()

"""``demote``, ``promote`` and ``release`` through the operator: what is written, awaited and printed; exit status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.cli.leadership import broker_lookup, overrides, wait
from bellwether.cli.main import main
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording

pytestmark = pytest.mark.usefixtures("api")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def words(found: Result) -> str:
    """The output on one line."""
    return " ".join(found.output.split())


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    """A policy of brokers 1 to 3, none of which is judged yet."""
    made = MemoryApi()
    conditions = [condition("Ready", "True", "UpToDate"), condition("Settled", "True", "UpToDate")]
    policy = {**api_objects.policy(mode="Enforce"), "status": {"conditions": conditions, "brokers": {"demoted": 0}}}
    made.put(POLICIES, policy)
    for broker in (1, 2, 3):
        health = api_objects.health(broker)
        health["metadata"]["labels"] = {"bellwether.dev/policy": "main"}
        made.put(BROKER_HEALTHS, health)
    made.serve_commands(monkeypatch)
    monkeypatch.setattr(wait, "time", SimpleNamespace(sleep=lambda _: None, monotonic=wait.time.monotonic))
    return made


def condition(type_: str, status: str, reason: str, message: str = "so the operator says") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def says(api: MemoryApi, reason: str, leaders: int, *, broker: int = 1, state: str = "Healthy", why: str = "") -> None:
    """The operator reports of a broker; every reason but these demotes."""
    leads = reason in ("UpToDate", "DwellPending", "CapReached", "RestoringInWaves")
    status = {
        "conditions": [condition("Demoted", str(not leads), reason, why or "so the operator says")],
        "leaders": leaders,
        "preferredLeaders": leaders,
        "verdict": {"state": state},
    }
    api.merge(BROKER_HEALTHS, "default", f"main-{broker}", {"status": status})


def settles(api: MemoryApi, *, demoted: int = 0, work: str = "", held: bool = False) -> None:
    """The operator reports of the policy, after it has of its brokers."""
    settled = condition(
        "Settled", str(not work), "MovesBlocked" if held else "UpToDate", work or "every order is as wanted"
    )
    status = {"conditions": [condition("Ready", "True", "UpToDate"), settled], "brokers": {"demoted": demoted}}
    api.merge(POLICIES, "default", "main", {"status": status})


def plays(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], None]) -> None:
    """What the operator does while the command waits; a longer wait finds the time over."""
    now, script = [0.0], list(acts)

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if script:
            script.pop(0)()

    monkeypatch.setattr(wait, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: now[0]))


def override_on(api: MemoryApi, broker: int = 1) -> dict | None:
    return api.get(BROKER_HEALTHS, "default", f"main-{broker}")["spec"].get("override")


def test_an_override_is_set_and_its_effect_awaited(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "UpToDate", 2)
    plays(
        monkeypatch,
        lambda: says(api, "OverrideDemoted", 2, why="disk swap"),
        lambda: says(api, "OverrideDemoted", 0, why="disk swap"),
    )
    found = run("demote", 1, "--policy", "main", "--reason", "disk swap")
    assert found.exit_code == 0
    override = override_on(api)
    assert override is not None
    assert (override["state"], override["reason"], "until" in override) == ("Demoted", "disk swap", False)
    assert override["by"]
    assert_wording(found.output.splitlines())


@pytest.mark.parametrize(("blocked", "status"), [(["OutOfScope"], 0), (["OnlyReplica", "OutOfScope"], 3)])
def test_leaders_out_of_scope_are_not_waited_for(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, blocked: list[str], status: int
):
    def settled() -> None:
        says(api, "OverrideDemoted", 2, why="disk swap")
        settles(api, demoted=1, held=True)
        counted = [{"reason": reason, "count": 1, "message": "so it is"} for reason in blocked]
        api.merge(POLICIES, "default", "main", {"status": {"blockedByReason": counted}})

    says(api, "UpToDate", 4)
    plays(monkeypatch, settled)
    found = run("demote", 1, "--policy", "main", "--reason", "disk swap")
    assert found.exit_code == status, found.output
    if not status:
        last = "broker 1 is demoted (OverrideDemoted); it leads 2 partitions out of scope (spec.scope)"
        assert found.output.splitlines()[-1] == last


@pytest.mark.parametrize("reason", ["OverrideDemoted", "InMaintenance"])
def test_the_status_of_an_earlier_override_is_not_taken_for_this_one(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, reason: str
):
    says(api, reason, 0, why="disk swap")
    plays(monkeypatch, lambda: says(api, "OverrideDemoted", 0, why="new kernel"))
    found = run("demote", 1, "--policy", "main", "--reason", "new kernel")
    assert (found.exit_code, "; new kernel" in found.output) == (0, True)
    assert found.output.splitlines()[-1] == "broker 1 is demoted (OverrideDemoted)"


def test_a_reconcile_that_ends_between_two_looks_is_not_taken_for_the_one_before_it(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch
):
    says(api, "UpToDate", 0)
    settles(api, work="2 partitions are being moved")
    reads = broker_lookup.find_health

    def overtaken(*asked: Any) -> Any:
        found = reads(*asked)
        if found["spec"].get("override"):  # the command waits by now
            says(api, "UpToDate", 2)
            settles(api)
        return found

    monkeypatch.setattr(broker_lookup, "find_health", overtaken)
    found = run("promote", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(words(found))


def test_whom_signals_have_demoted_is_said_to_be_so(api: MemoryApi):
    says(api, "StorageSlow", 0, state="Sick", why="its disk is slow")
    found = run("demote", 1, "--policy", "main", "--reason", "disk swap")
    assert found.exit_code == 0
    assert_wording(words(found))


def test_leaders_that_are_left_behind_are_exit_status_3(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "OverrideDemoted", 2)
    plays(monkeypatch)
    found = run("demote", 1, "--policy", "main", "--wait", 5)
    assert found.exit_code == 3
    assert_wording(words(found))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"mode": "Observe"}, "the policy is in mode Observe", id="observing"),
        pytest.param({"suspend": True}, "the policy is suspended", id="suspended"),
    ],
)
def test_a_policy_that_does_not_act_is_named_at_once(api: MemoryApi, spec: dict, said: str):
    api.merge(POLICIES, "default", "main", {"spec": spec})
    found = run("demote", 1, "--policy", "main")
    assert (found.exit_code, said in words(found)) == (3, True)
    assert override_on(api) is not None


def test_a_policy_in_trouble_is_named_while_waiting(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "UpToDate", 2)
    ready = condition("Ready", "False", "ClusterUnreachable", "no bootstrap server answers")
    api.merge(POLICIES, "default", "main", {"status": {"conditions": [ready]}})
    plays(monkeypatch)
    found = run("promote", 1, "--policy", "main", "--wait", 2)
    assert found.exit_code == 3
    assert_wording(words(found))


def test_a_kubernetes_api_that_is_away_for_a_moment_ends_nothing(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "UpToDate", 2)

    def goes() -> None:
        api.away = True

    def returns() -> None:
        api.away = False
        says(api, "OverrideDemoted", 0, why="bellwether demote")

    plays(monkeypatch, goes, returns)
    found = run("demote", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(found.output)


@pytest.mark.parametrize(
    ("others", "warns"),
    [
        pytest.param({}, False, id="the others lead"),
        pytest.param({2: "OverrideDemoted"}, True, id="another one was demoted by a person"),
        pytest.param({2: "StorageSlow"}, True, id="another one was demoted by signals"),
    ],
)
def test_a_demotion_that_leaves_half_of_the_brokers_is_warned_of(api: MemoryApi, others: dict[int, str], warns: bool):
    for broker, reason in others.items():
        says(api, reason, 0, broker=broker)
    found = run("demote", 1, "--policy", "main", "--wait", 0)
    assert found.exit_code == 0
    assert ("with broker 1 demoted, 2 of 3 brokers cannot lead or are sick" in words(found)) is warns


def test_a_sick_broker_that_leads_counts_for_the_warning(api: MemoryApi):
    says(api, "CapReached", 4, broker=3, state="Sick")
    assert "2 of 3 brokers" in words(run("demote", 1, "--policy", "main", "--wait", 0))


@pytest.mark.parametrize(("given", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d", 86400)])
def test_an_override_ends_at_its_time(api: MemoryApi, given: str, seconds: int):
    began = datetime.now(UTC)  # noqa: TID251 - the command reads the real clock
    assert run("demote", 1, "--policy", "main", "--for", given, "--wait", 0).exit_code == 0
    override = override_on(api)
    assert override is not None
    until = datetime.fromisoformat(override["until"])
    assert abs((until - began).total_seconds() - seconds) < 30


def test_promoting_waits_until_the_leaders_are_back(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "StorageSlow", 0, state="Sick")
    settles(api, demoted=1)
    plays(
        monkeypatch,
        # The brokers' statuses are written first: what the policy says is then still of the turn before.
        lambda: says(api, "UpToDate", 0, state="Sick"),
        lambda: settles(api, work="4 partitions are being moved"),
        lambda: says(api, "UpToDate", 3, state="Sick"),
        lambda: settles(api),
    )
    found = run("promote", 1, "--policy", "main")
    assert found.exit_code == 0
    override = override_on(api)
    assert override is not None
    assert (override["state"], override["reason"]) == ("Promoted", "bellwether promote")
    assert_wording(found.output.splitlines()[3:])


def test_leaders_that_are_held_back_are_exit_status_3(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    says(api, "UpToDate", 3)
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"preferredLeaders": 4}})
    settles(api, held=True)
    plays(monkeypatch)
    assert run("promote", 1, "--policy", "main", "--wait", 3).exit_code == 3
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"leaders": 4}})
    assert run("promote", 1, "--policy", "main", "--wait", 3).exit_code == 0


def test_releasing_takes_the_override_away_and_tells_who_leads_again(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    run("demote", 1, "--policy", "main", "--wait", 0)
    says(api, "OverrideDemoted", 0)
    settles(api, demoted=1)
    plays(monkeypatch, lambda: says(api, "UpToDate", 2), lambda: settles(api))
    found = run("release", 1, "--policy", "main")
    assert found.exit_code == 0
    assert override_on(api) is None
    assert words(found).startswith(
        f"broker 1: removed the override of {overrides.whoami()}: bellwether demote broker 1"
    )
    assert found.output.splitlines()[-1] == (
        "broker 1 is released: it leads 2 partitions (0 before); its signals decide again"
    )


@pytest.mark.parametrize(
    ("before", "after", "why", "state"),
    [
        ("OverrideDemoted", "StorageSlow", "its disk is slow", "Sick"),
        ("InMaintenance", "Stabilizing", "its maintenance is over", "Healthy"),
    ],
)
def test_releasing_says_why_a_broker_stays_demoted(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch, before: str, after: str, why: str, state: str
):
    run("demote", 1, "--policy", "main", "--wait", 0)
    says(api, before, 0, state=state)
    plays(monkeypatch, lambda: says(api, after, 0, state=state, why=why))
    found = run("release", 1, "--policy", "main")
    assert found.exit_code == 0
    assert f"broker 1 stays demoted ({after}: {why})" in words(found)


def test_releasing_a_promoted_sick_broker_waits_for_what_signals_do(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    run("promote", 1, "--policy", "main", "--wait", 0)
    says(api, "UpToDate", 2, state="Sick")
    plays(
        monkeypatch,
        lambda: says(api, "DwellPending", 2, state="Sick"),
        lambda: says(api, "StorageSlow", 0, state="Sick", why="its disk is slow"),
    )
    assert "stays demoted (StorageSlow" in words(run("release", 1, "--policy", "main"))
    run("promote", 1, "--policy", "main", "--wait", 0)
    says(api, "CapReached", 2, state="Sick", why="the cap is 1")
    found = run("release", 1, "--policy", "main")
    assert "broker 1 is sick and not demoted (CapReached: the cap is 1)" in words(found)


def in_waves(api: MemoryApi, reason: str = "RestoringInWaves") -> None:
    """The policy's leaders are in the middle of a wave, or wait for the next one."""
    policy = api.find(POLICIES, "default", "main")
    assert policy is not None
    policy["status"]["conditions"] = [condition("Ready", "True", reason), condition("Settled", "False", reason)]
    api.put(POLICIES, policy)


def test_releasing_waits_for_the_first_wave_and_not_for_the_last(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    run("demote", 1, "--policy", "main", "--wait", 0)
    in_waves(api, "LeadersMoving")
    wave = "wave 1 of 3: 10 % of its leaders may be restored"
    says(api, "RestoringInWaves", 0, why=wave)
    plays(monkeypatch, lambda: says(api, "RestoringInWaves", 3, why=wave), lambda: in_waves(api))
    found = run("release", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(found.output.splitlines()[-1])


def test_what_the_operator_said_of_the_override_is_not_repeated_once_it_is_removed(
    api: MemoryApi, monkeypatch: pytest.MonkeyPatch
):
    run("demote", 1, "--policy", "main", "--wait", 0, "--reason", "disk swap")
    says(api, "OverrideDemoted", 0, why="disk swap")
    generation = api.get(BROKER_HEALTHS, "default", "main-1")["metadata"]["generation"]
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"observedGeneration": generation}})

    def read() -> None:
        says(api, "UpToDate", 2)
        api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"observedGeneration": generation + 1}})

    plays(monkeypatch, lambda: None, read)
    found = run("release", 1, "--policy", "main")
    assert_wording(found.output.splitlines()[1:])


def test_promoting_a_sick_broker_warns_of_what_clients_get(api: MemoryApi):
    verdict = {"state": "Sick", "reason": "StorageSlow", "message": "its disk is slow"}
    api.merge(BROKER_HEALTHS, "default", "main-1", {"status": {"verdict": verdict}})
    found = run("promote", 1, 2, "--policy", "main", "--wait", 0)
    assert_wording(found.stderr.splitlines())


def test_promoting_does_not_wait_for_the_waves_of_another_broker(api: MemoryApi):
    in_waves(api)
    says(api, "RestoringInWaves", 3, broker=2)
    says(api, "UpToDate", 2)
    found = run("promote", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(words(found))


def test_releasing_a_broker_without_override_says_so():
    found = run("release", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(found.output)


def test_releasing_says_when_the_override_had_ended_before(api: MemoryApi):
    override = {"state": "Demoted", "reason": "disk swap", "until": "2026-01-01T00:00:00Z"}
    api.merge(BROKER_HEALTHS, "default", "main-1", {"spec": {"override": override}})
    says(api, "UpToDate", 2)
    found = run("release", 1, "--policy", "main")
    assert found.exit_code == 0
    assert_wording(words(found))


@pytest.mark.parametrize("verb", ["demote", "promote", "release"])
@pytest.mark.parametrize(
    ("broker", "policy", "said"),
    [
        pytest.param(1, "none", "namespace default has no LeadershipPolicy none; it has: main", id="no policy"),
        pytest.param(9, "main", "policy default/main has no broker 9; it has: 1, 2, 3", id="no broker"),
    ],
)
def test_what_is_not_there_is_named(verb: str, broker: int, policy: str, said: str):
    found = run(verb, broker, "--policy", policy)
    assert found.exit_code == 1
    assert said in words(found)


@pytest.mark.parametrize("verb", ["demote", "promote", "release"])
def test_a_cluster_that_was_never_seen_is_why_no_broker_is_known(api: MemoryApi, verb: str):
    ready = condition("Ready", "False", "ClusterClaimed", "policy default/other already manages it")
    api.put(POLICIES, {**api_objects.policy("second"), "status": {"conditions": [ready]}})
    found = run(verb, 1, "--policy", "second")
    assert found.exit_code == 1
    assert_wording(words(found))
    assert "none yet" not in found.output


def test_a_person_without_a_name_is_given_by_user_id(api: MemoryApi, monkeypatch: pytest.MonkeyPatch):
    def nameless() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr(overrides.getpass, "getuser", nameless)
    run("demote", 1, "--policy", "main", "--wait", 0)
    override = override_on(api)
    assert override is not None
    assert override["by"].startswith("uid ")

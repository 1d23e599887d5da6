"""``bellwether history``: what was moved, when, why and on whose request, for a person and for programs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.objects.audit_log import ConfigMapAuditLog
from bellwether.cli.diagnosis import history as verb
from bellwether.cli.main import main
from bellwether.core.model.quarantine_order import QuarantineChange
from bellwether.core.reporting.audit import AuditEntry, AuditOutcome, BrokerChange, MoveSummary, PlanStep
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording

FALL = BrokerChange(2, True, "signals", "StorageSlow", "80 ms", ("StorageLatency b2: Failing: 80 ms",))
MOVES = MoveSummary(3, 40, 20, 0, "0123456789abcdef", {2: 20}, {1: 12, 3: 8}, ("orders-0: [2, 1, 3] -> [1, 3, 2]",))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    made = ManualClock()
    monkeypatch.setattr(verb, "SystemClock", lambda: made)
    return made


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> MemoryApi:
    made = MemoryApi()
    made.serve_commands(monkeypatch)
    return made


@pytest.fixture
def trail(api: MemoryApi, clock: ManualClock) -> ConfigMapAuditLog:
    """A fall at 0 s, the end of it at 3600 s, a load plan at 7200 s, and a look at 10800 s."""
    made = ConfigMapAuditLog(api, "default", "main", clock)
    fall = AuditEntry(
        clock.now(), "c", 4, changes=(FALL,), moves=MOVES, outcome=AuditOutcome(40, 20, 0, {"NoAnswer": 2})
    )
    made.conclude(fall)
    clock.advance(3600)
    rise = BrokerChange(2, False, "override by ann", "OverridePromoted", "the disk is new")
    made.conclude(replace(fall, at=clock.now(), changes=(rise,), moves=None, outcome=AuditOutcome()))
    clock.advance(3600)
    step = PlanStep("fedcba9876543210", "field manager kubectl-annotate", 30, 90)
    made.conclude(AuditEntry(clock.now(), "c", 5, plan=step))
    clock.advance(3600)
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["history", "--policy", "main", *arguments])


@pytest.mark.usefixtures("trail")
def test_a_person_reads_it_from_top_to_bottom():
    found = run()
    assert found.exit_code == 0
    assert_wording(found.stdout.splitlines())


@pytest.mark.usefixtures("trail")
@pytest.mark.parametrize(
    ("since", "count"),
    [("90m", 1), ("2h", 2), ("7d", 3), ("2026-01-01T01:00:00Z", 2), ("2026-01-01T01:30:00", 1), ("2026-01-02", 0)],
)
def test_only_what_came_after_a_time(since: str, count: int):
    assert len(json.loads(run("--since", since, "-o", "json").stdout)) == count


@pytest.mark.usefixtures("trail")
@pytest.mark.parametrize(("broker", "count"), [("2", 2), ("3", 1), ("9", 0)])
def test_only_what_names_a_broker(broker: str, count: int):
    assert len(json.loads(run("--broker", broker, "-o", "json").stdout)) == count


@pytest.mark.usefixtures("trail")
def test_where_nothing_matches_it_says_how_much_there_is():
    assert_wording(run("--broker", "9").stdout)


@pytest.mark.usefixtures("clock")
def test_a_policy_that_does_not_exist_is_not_a_quiet_night(api: MemoryApi):
    api.put(POLICIES, api_objects.policy("orders"))
    found = run()
    assert found.exit_code == 1
    assert_wording(found.output)


def test_a_quarantine_is_shown_with_its_start_and_end(api: MemoryApi, clock: ManualClock):
    trail = ConfigMapAuditLog(api, "default", "main", clock)
    started = QuarantineChange(2, False, "QuarantinePending", "ordered to hold for at most 600 s")
    ended = QuarantineChange(2, True, "QuarantineEnded", "it is no longer demoted", 41.2)
    never = replace(ended, reason="AgentUnavailable", message="its agent has not held it", held=None)
    for change in (started, ended, never):
        trail.conclude(AuditEntry(clock.now(), "c", 4, quarantines=(change,), outcome=AuditOutcome()))
        clock.advance(60)
    found = run("--broker", "2")
    assert_wording(found.stdout.splitlines(), run("--broker", "1").stdout)


@pytest.mark.usefixtures("clock")
def test_where_nothing_was_moved_it_says_so(api: MemoryApi):
    api.put(POLICIES, api_objects.policy())
    found = run()
    assert found.exit_code == 0
    assert_wording(found.stdout)


@pytest.mark.usefixtures("trail")
@pytest.mark.parametrize("since", ["yesterday", "2", "-3h", "2026-13-01"])
def test_an_invalid_time_is_refused_with_the_valid_forms(since: str):
    found = run("--since", since)
    assert found.exit_code == 2
    assert "--since" in found.output
    assert "2h or 7d" in " ".join(found.output.split())


def test_what_repeated_itself_is_counted(api: MemoryApi, clock: ManualClock):
    trail = ConfigMapAuditLog(api, "default", "main", clock)
    entry = AuditEntry(clock.now(), "c", 4, moves=MOVES, outcome=AuditOutcome(0, 0), times=7, last=clock.now())
    trail.conclude(entry)
    assert_wording(run().stdout)

"""``bellwether check``: one line for each thing that an installation needs, and what to do about what is wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, LEASES, POLICIES, Object, Resource
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.leases import micro_time
from bellwether.adapters.kubernetes.permissions import REVIEWS
from bellwether.api.v1alpha1.status.status_conditions import UNSEEN
from bellwether.cli.diagnosis import check as verb
from bellwether.cli.main import main
from bellwether.ports.errors import Transient
from realparts.ports import HeldPorts
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording

CLUSTER = "c1uster"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = {"type": "Ready", "status": "True", "reason": "UpToDate", "message": "every leader is where it should be"}


class Reviewed(MemoryApi):
    """Grants everything but some verbs."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        if resource is REVIEWS:
            return {"status": {"allowed": body["spec"]["resourceAttributes"]["verb"] not in self.refused}}
        return super().create(resource, namespace, body)


class Waiting:
    """A clock whose sleeps do something."""

    def __init__(self, on_sleep: Any = lambda: None) -> None:
        self.seconds = 0.0
        self.on_sleep = on_sleep

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.on_sleep()


def run(monkeypatch: pytest.MonkeyPatch, api: MemoryApi, *arguments: str, clock: Waiting | None = None) -> Result:
    api.serve_commands(monkeypatch)
    monkeypatch.setattr(verb, "SystemClock", lambda: clock or Waiting())
    return CliRunner().invoke(main, ["check", "--lease-namespace", "ops", *arguments])


def a_policy(api: MemoryApi, name: str = "main", **status: Any) -> None:
    status = {"conditions": [READY], **status} if status else {}
    api.put(POLICIES, {"metadata": {"name": name, "namespace": "kafka"}, "spec": {}, "status": status})


def a_lease(api: MemoryApi, holder: str, seconds_ago: float = 1) -> None:
    metadata = {"name": object_names.cluster_lease(CLUSTER), "namespace": "ops"}
    renewed = micro_time(NOW - timedelta(seconds=seconds_ago))
    api.put(LEASES, {"metadata": metadata, "spec": {"holderIdentity": holder, "renewTime": renewed}})


@contextmanager
def an_operator(status: int, words: str) -> Iterator[str]:
    """Something that answers /readyz."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(words.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def told(done: Result) -> str:
    """The lines on policies and Leases, and what failed."""
    return "\n".join(line for line in done.output.splitlines() if line.startswith("FAILED") or "  leases:" in line)


def test_a_fresh_installation_without_policies_is_well(monkeypatch: pytest.MonkeyPatch):
    with an_operator(200, "ready") as address:
        done = run(monkeypatch, Reviewed(), "--operator", address)
    assert done.exit_code == 0, done.output
    assert "FAILED" not in done.output
    for words in (
        "leadershippolicies are served as bellwether.dev/v1alpha1",
        "this account has all permissions of the operator",
        "/readyz: 200 ready",
        "no LeadershipPolicy exists",
    ):
        assert words in done.output


@pytest.mark.parametrize(
    ("status", "holder", "seconds_ago"),
    [
        pytest.param({"clusterId": CLUSTER}, None, 0, id="no Lease"),
        pytest.param({"clusterId": CLUSTER}, "", 0, id="no holder"),
        pytest.param({"clusterId": CLUSTER}, "operator-1", 3600, id="not renewed"),
        pytest.param({"clusterId": CLUSTER, "operator": "bellwether/operator-1"}, None, 0, id="in another namespace"),
        pytest.param({}, None, 0, id="no status"),
        pytest.param({"conditions": [UNSEEN]}, None, 0, id="never reconciled"),
    ],
)
def test_a_policy_without_an_active_operator_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, status: dict[str, Any], holder: str | None, seconds_ago: int
):
    api = Reviewed()
    a_policy(api, **status)
    if holder is not None:
        a_lease(api, holder, seconds_ago=seconds_ago)
    done = run(monkeypatch, api)
    assert done.exit_code == 4
    assert_wording(told(done))


def test_without_policies_and_without_a_url_nothing_shows_an_operator(monkeypatch: pytest.MonkeyPatch):
    done = run(monkeypatch, Reviewed())
    assert done.exit_code == 4
    assert_wording(told(done))
    assert "set --operator" in done.output


def test_a_status_written_before_the_operator_ended_shows_no_operator(monkeypatch: pytest.MonkeyPatch):
    api = Reviewed()
    a_policy(api, conditions=[{"type": "Ready", "reason": "ConnectionFailed", "message": "no broker answers"}])
    done = run(monkeypatch, api)
    assert done.exit_code == 4
    assert "FAILED  operator: no Lease" in done.output


def test_a_policy_whose_cluster_was_never_seen_says_why_and_is_no_fault_of_the_installation(
    monkeypatch: pytest.MonkeyPatch,
):
    api = Reviewed()
    a_policy(api, conditions=[{"type": "Ready", "reason": "ConnectionFailed", "message": "no broker answers"}])
    with an_operator(200, "ready") as address:
        done = run(monkeypatch, api, "--operator", address)
    assert done.exit_code == 0
    assert "Kafka cluster not contacted yet: ConnectionFailed: no broker answers" in done.output


def test_a_policy_with_a_removed_field_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch):
    api = Reviewed()
    said = "LeadershipPolicy main: spec.kafka.clientId: is always bellwether: remove it"
    a_policy(api, clusterId=CLUSTER, conditions=[{"type": "Ready", "reason": "InvalidPolicy", "message": said}])
    a_lease(api, "operator-1")
    assert_wording(told(run(monkeypatch, api)))


def test_each_missing_definition_and_permission_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch):
    api = Reviewed("delete")
    api.refuse("list", BROKER_HEALTHS, NotFound("no such kind"))
    done = run(monkeypatch, api)
    assert done.exit_code == 4
    assert "FAILED  CRDs: brokerhealths are not served: install the CRDs" in done.output
    assert "FAILED  permissions: missing: 'delete' on brokerhealths in API group bellwether.dev" in done.output
    assert "ok      CRDs: leadershippolicies are served" in done.output


def test_an_operator_that_is_not_ready_or_does_not_answer_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    with an_operator(503, "the API server is away\n") as address:
        done = run(monkeypatch, Reviewed(), "--operator", address)
    assert done.exit_code == 4
    assert "FAILED  operator" in done.output
    assert "/readyz: 503 the API server is away" in done.output
    with HeldPorts() as ports:
        done = run(monkeypatch, Reviewed(), "--operator", f"http://127.0.0.1:{ports.take()}")
    assert "is not reachable (ConnectionError): check the operator's pods" in done.output


def test_an_absent_api_server_is_reported_without_a_traceback(monkeypatch: pytest.MonkeyPatch):
    api = Reviewed()
    for resource in (POLICIES, BROKER_HEALTHS):
        api.refuse("list", resource, Transient("Kubernetes API: not reachable (connection refused)"))
    done = run(monkeypatch, api)
    assert done.exit_code == 4
    assert_wording(told(done))


def test_it_waits_until_all_is_well_and_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch):
    api = Reviewed()
    a_policy(api, clusterId=CLUSTER)
    clock = Waiting()

    def taken() -> None:
        if clock.seconds >= 6:
            a_lease(api, "operator-0", seconds_ago=-6)

    clock.on_sleep = taken
    assert run(monkeypatch, api, "--wait", "60", clock=clock).exit_code == 0
    assert clock.seconds == 6

    never = Waiting()
    assert run(monkeypatch, Reviewed("list"), "--wait", "10", clock=never).exit_code == 4
    assert 10 <= never.seconds < 14

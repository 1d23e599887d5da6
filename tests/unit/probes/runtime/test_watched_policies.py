"""A process serves the policies that exist, each on its own: who comes, goes, fails or hangs concerns no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.object_lists import LARGEST_OBJECT
from bellwether.destinations import NOT_LOCAL
from bellwether.ports.errors import Transient
from bellwether.probes.runtime import watched_policies
from bellwether.probes.runtime.watched_policies import Named, PolicyList, Selection, WatchedPolicies
from testkit.kubernetes.api_objects import policy
from testkit.kubernetes.memory_api import MemoryApi
from testkit.messages import assert_wording
from waiting import limit, until


def put(api: MemoryApi, *names: str, namespace: str = "kafka") -> None:
    for name in names:
        body = policy(name)
        body["metadata"]["namespace"] = namespace
        api.put(POLICIES, body)


def listed(api: MemoryApi, selection: Selection, default: str = "kafka") -> set[Named]:
    return set(PolicyList(api, default, selection).read())


class TestPolicyList:
    """Which policies are served."""

    def test_without_a_name_it_has_every_policy_of_its_namespaces(self) -> None:
        api = MemoryApi()
        put(api, "orders", "payments")
        put(api, "logs", namespace="other")
        both = {("kafka", "orders"), ("kafka", "payments")}
        assert listed(api, Selection(NOT_LOCAL)) == both
        assert listed(api, Selection(NOT_LOCAL, namespaces=("other",))) == {("other", "logs")}
        assert listed(api, Selection(NOT_LOCAL, everywhere=True)) == both | {("other", "logs")}

    def test_a_policy_that_is_too_large_hides_no_others(self) -> None:
        api = MemoryApi()
        put(api, "orders", "x" * LARGEST_OBJECT)
        assert listed(api, Selection(NOT_LOCAL)) == {("kafka", "orders")}

    def test_a_named_policy_is_served_before_it_exists(self) -> None:
        assert listed(MemoryApi(), Selection(NOT_LOCAL, policy="orders")) == {("kafka", "orders")}

    @pytest.mark.parametrize("parts", [1, 2, 5])
    def test_every_policy_falls_into_exactly_one_part(self, parts: int) -> None:
        api = MemoryApi()
        names = [f"policy-{n}" for n in range(20)]
        put(api, *names)
        found = [listed(api, Selection(NOT_LOCAL, shard=(part, parts))) for part in range(1, parts + 1)]
        assert sorted(key for part in found for key in part) == sorted(("kafka", name) for name in names)
        assert all(found)

    def test_what_cannot_be_read_is_served_as_it_was(self) -> None:
        api = MemoryApi()
        put(api, "orders")
        policies = PolicyList(api, "kafka", Selection(NOT_LOCAL))
        assert_wording(policies.unread())
        before = policies.read()
        assert policies.unread() == []
        api.refuse("list", POLICIES, Transient("away"))
        assert policies.read() == before == {("kafka", "orders")}


class Work:
    """A run that works until it is stopped, or as a test wants."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop
        self.begun = threading.Event()
        self.error: Exception | None = None
        self.stuck_seconds = 0.0

    def run(self) -> None:
        self.begun.set()
        self.stop.wait()
        if self.error is not None:
            raise self.error

    def problems(self, bound_seconds: float) -> list[str]:
        return [f"stuck for {self.stuck_seconds:g} s"] if self.stuck_seconds > bound_seconds else []


class Scene:
    """Policies that a test chooses, and the runs that were begun for them."""

    def __init__(self) -> None:
        self.wanted: frozenset[Named] = frozenset()
        self.runs: dict[Named, list[Work]] = {}
        self.policies = WatchedPolicies(lambda: self.wanted, self.begin, SystemClock())
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.policies.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def begin(self, namespace: str, name: str, stop: threading.Event) -> Work:
        work = Work(stop)
        self.runs.setdefault((namespace, name), []).append(work)
        return work

    def want(self, *names: str) -> None:
        self.wanted = frozenset(("kafka", name) for name in names)

    def run(self, name: str, number: int = 0) -> Work:
        until(lambda: len(self.runs.get(("kafka", name), [])) > number)
        work = self.runs["kafka", name][number]
        assert work.begun.wait(limit(10))
        return work

    def end(self) -> None:
        self.stop.set()
        self.thread.join(limit(10))
        assert not self.thread.is_alive()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setattr(watched_policies, "LIST_SECONDS", 0.05)
    monkeypatch.setattr(watched_policies, "AGAIN_SECONDS", 0.05)
    scene = Scene()
    yield scene
    scene.end()


class TestWatchedPolicies:
    """What becomes of their runs."""

    def test_policies_start_and_end_while_others_go_on(self, scene: Scene) -> None:
        scene.want("a")
        first = scene.run("a")
        scene.want("a", "b")
        second = scene.run("b")
        scene.want("b")
        until(first.stop.is_set)
        assert not second.stop.is_set()
        scene.want("a", "b")
        assert scene.run("a", 1) is not first
        scene.end()
        assert second.stop.is_set()

    def test_run_that_fails_is_begun_again_and_others_go_on(self, scene: Scene) -> None:
        scene.want("a", "b")
        failing, other = scene.run("a"), scene.run("b")
        failing.error = RuntimeError("as a test wants")
        failing.stop.set()
        scene.run("a", 1)
        assert not other.stop.is_set()
        assert len(scene.runs["kafka", "b"]) == 1

    def test_one_stuck_policy_of_several_interrupts_others_only_after_long(self, scene: Scene) -> None:
        scene.want("a", "b")
        one, other = scene.run("a"), scene.run("b")
        one.stuck_seconds = 200
        assert scene.policies.problems() == []
        other.stuck_seconds = 300
        assert scene.policies.problems() == ["stuck for 200 s", "stuck for 300 s"]
        other.stuck_seconds, one.stuck_seconds = 0, watched_policies.PATIENCE_SECONDS + 1
        assert scene.policies.problems() == ["stuck for 901 s"]

    def test_single_policy_that_is_stuck_needs_restart_at_once(self, scene: Scene) -> None:
        scene.want("a")
        scene.run("a").stuck_seconds = 200
        assert scene.policies.problems() == ["stuck for 200 s"]

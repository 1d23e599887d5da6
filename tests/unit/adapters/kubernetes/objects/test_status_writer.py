"""Status is written when it is news, and again when another client has overwritten it."""

from __future__ import annotations

from typing import Any

import pytest

from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.adapters.kubernetes.objects.status_writer import StatusWriter
from bellwether.ports.errors import Transient
from testkit.kubernetes import api_objects
from testkit.kubernetes.memory_api import MemoryApi

MINE = {"epoch": 2, "message": "all well"}
STALE = {"epoch": 1, "message": "demoted"}


class Desk:
    """Two processes that write the status of one policy and of one of its brokers."""

    def __init__(self) -> None:
        self.api = MemoryApi()
        self.api.put(POLICIES, api_objects.policy())
        self.api.put(BROKER_HEALTHS, api_objects.health())
        self.mine, self.other = StatusWriter(self.api), StatusWriter(self.api)

    def policy(self) -> dict[str, Any]:
        return self.api.get(POLICIES, "default", "main")

    def health(self) -> dict[str, Any]:
        return self.api.get(BROKER_HEALTHS, "default", "main-1")


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_another_process_wrote_over_is_written_again(desk: Desk):
    desk.mine.write_policy("default", "main", MINE)
    desk.other.write_policy("default", "main", STALE)
    assert desk.mine.overwritten(POLICIES, desk.policy())
    assert desk.mine.write_policy("default", "main", MINE)
    assert desk.policy()["status"] == MINE


def test_without_that_news_the_same_status_is_not_written_again(desk: Desk):
    desk.mine.write_policy("default", "main", MINE)
    desk.other.write_policy("default", "main", STALE)
    assert not desk.mine.write_policy("default", "main", MINE)


def test_what_is_written_over_is_found_once(desk: Desk):
    desk.mine.write_policy("default", "main", MINE)
    desk.other.write_policy("default", "main", STALE)
    assert desk.mine.overwritten(POLICIES, desk.policy())
    assert not desk.mine.overwritten(POLICIES, desk.policy())


def test_own_writes_are_not_taken_for_foreign_ones(desk: Desk):
    desk.mine.write_policy("default", "main", STALE)
    late = desk.policy()
    desk.mine.write_policy("default", "main", MINE)
    assert not desk.mine.overwritten(POLICIES, late), "an older view that comes late"
    assert not desk.mine.overwritten(POLICIES, desk.policy())


def test_a_status_that_was_put_back_meanwhile_is_left(desk: Desk):
    desk.mine.write_policy("default", "main", MINE)
    desk.other.write_policy("default", "main", STALE)
    seen = desk.policy()
    desk.other.write_policy("default", "main", MINE)
    desk.api.writes.clear()
    assert desk.mine.overwritten(POLICIES, seen)
    assert not desk.mine.write_policy("default", "main", MINE)
    assert desk.api.writes == []


def test_a_changed_spec_is_not_a_changed_status(desk: Desk):
    desk.mine.write_policy("default", "main", MINE)
    desk.api.merge(POLICIES, "default", "main", {"spec": {"mode": "Observe"}})
    assert not desk.mine.overwritten(POLICIES, desk.policy())


def test_entries_of_probers_are_not_overwrites(desk: Desk):
    desk.mine.write_broker_health("default", "main", 1, {"leaders": 3})
    health = desk.health()
    health["status"]["signals"] = [{"type": "Manual"}]
    health["metadata"]["resourceVersion"] = "999"
    assert not desk.mine.overwritten(BROKER_HEALTHS, health)
    health["status"]["leaders"] = 4
    assert desk.mine.overwritten(BROKER_HEALTHS, health)


def test_a_process_that_has_written_nothing_leaves_others_alone(desk: Desk):
    desk.other.write_policy("default", "main", STALE)
    assert not desk.mine.overwritten(POLICIES, desk.policy())
    desk.mine.write_policy("default", "main", MINE)
    desk.mine.forget("default", "main")
    desk.other.write_policy("default", "main", {**STALE, "epoch": 3})
    assert not desk.mine.overwritten(POLICIES, desk.policy())


def test_what_a_list_shows_is_neither_read_again_nor_written(desk: Desk):
    desk.other.write_broker_health("default", "main", 1, MINE)
    desk.mine.saw(BROKER_HEALTHS, desk.health())
    version = desk.health()["metadata"]["resourceVersion"]
    desk.api.refuse("get", BROKER_HEALTHS, Transient("it need not be asked"))
    assert not desk.mine.write_broker_health("default", "main", 1, MINE)
    desk.api.refuse("get", BROKER_HEALTHS, None)
    assert desk.health()["metadata"]["resourceVersion"] == version


def test_news_is_written_over_what_a_list_showed(desk: Desk):
    desk.other.write_broker_health("default", "main", 1, STALE)
    desk.mine.saw(BROKER_HEALTHS, desk.health())
    assert desk.mine.write_broker_health("default", "main", 1, MINE)
    assert desk.health()["status"] == MINE


def test_what_was_written_since_the_list_is_found(desk: Desk):
    desk.other.write_broker_health("default", "main", 1, MINE)
    desk.mine.saw(BROKER_HEALTHS, desk.health())
    desk.other.write_broker_health("default", "main", 1, STALE)
    assert not desk.mine.write_broker_health("default", "main", 1, MINE)
    assert desk.mine.overwritten(BROKER_HEALTHS, desk.health())
    assert desk.mine.write_broker_health("default", "main", 1, MINE)

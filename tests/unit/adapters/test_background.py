"""A task next to the reconcile: it begins at once, is waited for, and what it raised is raised."""

from __future__ import annotations

import threading

import pytest

from bellwether.adapters.background import in_thread
from bellwether.ports.errors import Fenced


def test_a_task_runs_while_its_starter_goes_on():
    went_on, done = threading.Event(), threading.Event()

    def task() -> None:
        assert went_on.wait(10)
        done.set()

    wait = in_thread(task)
    went_on.set()
    wait()
    assert done.is_set()


def test_what_it_raised_is_raised_where_it_is_waited_for():
    def task() -> None:
        raise Fenced("another process leads")

    wait = in_thread(task)
    with pytest.raises(Fenced, match="another process leads"):
        wait()

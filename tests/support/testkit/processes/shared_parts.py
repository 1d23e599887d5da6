"""Real parts that several tests share: a test whose part has died fails at once and names it, and idle ones are ended.

In: pytest's hooks. Out: a failure before a test whose fixtures hold a dead process, instead of one wait after the other
for a broker that is gone. Tests that need other parts go on. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from realparts.processes import ManagedProcess, kill_all, started
from testkit.processes.xdist_groups import needs_real_parts


class SharedParts:
    """The hooks, and which processes each fixture that outlives a test has started."""

    def __init__(self) -> None:
        self._parts: dict[str, list[ManagedProcess]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        """Note what a fixture starts."""
        before = set(started())
        made = yield
        if fixturedef.scope != "function":
            self._parts[fixturedef.argname] = [p for p in started() if p not in before]
        return made

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        """Its parts have been stopped."""
        self._parts.pop(fixturedef.argname, None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Fail a test that would wait for a dead part."""
        names = getattr(item, "fixturenames", ())
        for part in (p for name in names for p in self._parts.get(name, ()) if p.died):
            pytest.fail(
                f"{part.name} has died (status {part.status}) before this test, which needs it; its log is {part.log},"
                f" and ends so:\n{part.tail(5)}",
                pytrace=False,
            )
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """End all parts as soon as no later test needs one: idle brokers cost a worker a tenth of a core."""
        if nextitem is not None and needs_real_parts(item.nodeid) and not needs_real_parts(nextitem.nodeid):
            kill_all()

"""The catalogue of messages: what the product writes for people, pinned once, in ``tests/messages``.

A test gives each message to ``assert_wording``; the catalogue has it under the test's name, one file for each part of
``tests/unit``. ``pytest --update-golden`` writes what the tests of that run give: read the difference. Reasons, fields
and figures that decide stay in the test. Registered by ``tests/conftest.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import pytest
import yaml

Wording = str | list[str] | dict[str, str]

_running: CheckedTest | None = None


def assert_wording(*messages: str | Sequence[str] | Set[str] | Mapping[Any, str]) -> None:
    """Each message, or all of a list, a set or a mapping, is as in the catalogue."""
    assert _running is not None, "assert_wording is for tests below tests/unit"
    for message in messages:
        _running.check(message)


class CheckedTest:
    """One test's messages, in the order in which it gives them."""

    def __init__(self, known: Sequence[Wording], where: str, *, update: bool) -> None:
        self._known, self._where, self._update = known, where, update
        self.given: list[Wording] = []

    def check(self, message: str | Sequence[str] | Set[str] | Mapping[Any, str]) -> None:
        """Compare the next message, or note it down for the catalogue."""
        given = plain(message)
        self.given.append(given)
        if not self._update:
            at = len(self.given) - 1
            assert at < len(self._known), f"{self._where} lacks this message; --update-golden adds it: {given!r}"
            assert given == self._known[at], f"not as in {self._where}; --update-golden accepts it"

    def end(self) -> None:
        """A message that the test no longer gives leaves the catalogue."""
        assert self._update or len(self.given) == len(self._known), (
            f"{self._where} has {len(self._known)} messages, the test gave {len(self.given)}; see --update-golden"
        )


class Catalogue:
    """A plug-in of pytest that knows which test runs."""

    def __init__(self, tests: Path, *, update: bool) -> None:
        self._tests, self._update = tests, update
        self._read: dict[Path, dict[str, Any]] = {}
        self._changed: set[Path] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Compare what the test says with what the catalogue has, and note it down where that is asked for."""
        global _running  # noqa: PLW0603 - a message is checked deep inside of a test's own functions
        if not item.path.is_relative_to(self._tests / "unit"):
            return (yield)
        path, name = self._tests / "messages" / area(item.path.relative_to(self._tests / "unit")), item.path.stem
        test = item.nodeid.partition("::")[2]
        entries = self._entries(path).get(name, {})
        known = entries.get(test, [])
        where = f"{path.relative_to(self._tests.parent)}: {name}: {test}"
        _running = checked = CheckedTest(known if isinstance(known, list) else [known], where, update=self._update)
        try:
            result = yield
            checked.end()
        finally:
            _running = None
        if self._update and (checked.given or test in entries):
            self._note(path, name, test, checked.given)
        return result

    def _entries(self, path: Path) -> dict[str, Any]:
        if path not in self._read:
            self._read[path] = yaml.load(path.read_text(), yaml.CSafeLoader) or {} if path.exists() else {}
        return self._read[path]

    def _note(self, path: Path, name: str, test: str, given: list[Wording]) -> None:
        entries = self._entries(path).setdefault(name, {})
        entries.pop(test, None)
        if given:
            entries[test] = given[0] if len(given) == 1 and isinstance(given[0], str) else given
        self._changed.add(path)

    def pytest_sessionfinish(self) -> None:
        """Write what has changed."""
        for path in self._changed:
            path.parent.mkdir(exist_ok=True)
            whole = {name: entries for name, entries in self._entries(path).items() if entries}
            path.write_text(yaml.dump(whole, Dumper=_Dumper, allow_unicode=True, width=116))


def plain(message: str | Sequence[str] | Set[str] | Mapping[Any, str]) -> Wording:
    """A message, or several, as the catalogue has them."""
    if isinstance(message, Mapping):
        return {str(key): str(value) for key, value in message.items()}
    if isinstance(message, Set):
        return sorted(map(str, message))
    return message if isinstance(message, str) else [str(one) for one in message]


def area(test: Path) -> str:
    """The file of the catalogue for a test file, given below ``tests/unit``."""
    return "-".join(test.parent.parts[:2] or ("reconcile",)) + ".yaml"


class _Dumper(yaml.SafeDumper):
    """Several lines are written as such."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)

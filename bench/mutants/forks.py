"""Test mutants in forks of one pytest process: each fork replaces a function's code, and runs the tests that enter it.

A plugin of pytest. It runs all tests once to see which functions each of them enters, and how long it takes; a mutant
then meets the tests that enter its function: those of its own module first, the fastest first.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pickle
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest

from mutants.mutations import Mutation
from mutants.runs import LIMIT_SECONDS, SOURCE, Found, stage

ORDER = tuple(Found)


@dataclass(frozen=True)
class Entered:
    """One test: how long it took, in seconds of CPU time, and the functions that it entered, by file and first line."""

    seconds: float
    functions: frozenset[tuple[str, int]]


class Forks:
    """The collected tests, and what they enter."""

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._items = items
        self._readers: dict[int, int] = {}
        self.entered: dict[str, Entered] = {}

    def learn(self) -> str:
        """Run every test once, properties in a process of their own; the first that fails, or an empty text."""
        slow = [item for item in self._items if item.nodeid.startswith("tests/properties/")]
        fast = [item for item in self._items if item not in slow]
        readers = [_in_a_fork(lambda part=part: _learn(part)) for part in (fast, slow) if part]
        for _, reader in readers:
            found = pickle.loads(_read(reader) or pickle.dumps("a test process"))  # noqa: S301 - our own fork wrote it
            os.wait()
            if isinstance(found, str):
                return found
            self.entered.update(found)
        return ""

    def begin(self, module: Path, made: Mutation) -> int:
        """Start the tests of one mutant, in a process of that id."""
        assert made.function is not None
        where, lines = str(SOURCE / module), made.function
        able = [i for i in self._items if any(f == where and n in lines for f, n in self.entered[i.nodeid].functions)]
        able.sort(key=lambda i: (ORDER.index(stage(i.nodeid, module)), self.entered[i.nodeid].seconds))

        def attempt() -> bytes:
            resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_SECONDS, LIMIT_SECONDS))
            replace_code(importlib.import_module(_dotted(module)), made.tree, lines.start)
            return _first_failing(able).encode()

        pid, reader = _in_a_fork(attempt)
        self._readers[pid] = reader
        return pid

    def next_result(self) -> tuple[int, str | None]:
        """The process that ends next, and the test that failed: empty if none did, None at the limit of CPU time."""
        pid, status = os.wait()
        test = _read(self._readers.pop(pid)).decode()
        code = os.waitstatus_to_exitcode(status)
        if code > 0:
            raise RuntimeError("a process that was to test a mutant failed by itself")
        return pid, None if code else test


def replace_code(module: ModuleType, tree: ast.Module, line: int) -> None:
    """Give the functions of a module that begin on that line the code of the tree. Raises LookupError without any."""
    codes = {(c.co_qualname, c.co_firstlineno): c for c in _codes(compile(tree, str(module.__file__), "exec"))}
    found = [f for f in _functions(module, module.__name__) if f.__code__.co_firstlineno == line]
    if not found:
        raise LookupError(f"no function begins at {module.__file__}:{line}")
    for function in found:
        function.__code__ = codes[function.__code__.co_qualname, line]


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _functions(holder: ModuleType | type, module: str) -> Iterator[FunctionType]:
    """Functions and methods, also those behind a property, a cache or another decorator."""
    for held in list(vars(holder).values()):
        value = held
        if isinstance(held, staticmethod | classmethod):
            value = held.__func__
        elif isinstance(held, property):
            value = held.fget
        elif isinstance(held, cached_property):
            value = held.func
        if inspect.isclass(value):
            if value.__module__ == module and value is not holder:
                yield from _functions(value, module)
            continue
        function = inspect.unwrap(value) if callable(value) else None
        if isinstance(function, FunctionType) and function.__module__ == module:
            yield function


def _learn(items: Sequence[pytest.Item]) -> bytes:
    prefix, entered, now = f"{SOURCE}{os.sep}", {}, set[tuple[str, int]]()

    def trace(frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename.startswith(prefix):
            now.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    for item, after in zip(items, [*items[1:], None], strict=True):
        now.clear()
        begun = time.process_time()
        sys.settrace(trace)
        failed = _fails(item, after)
        sys.settrace(None)
        if failed:
            return pickle.dumps(item.nodeid)
        entered[item.nodeid] = Entered(time.process_time() - begun, frozenset(now))
    return pickle.dumps(entered)


def _first_failing(items: Sequence[pytest.Item]) -> str:
    return next((i.nodeid for i, after in zip(items, [*items[1:], None], strict=True) if _fails(i, after)), "")


def _fails(item: pytest.Item, after: pytest.Item | None) -> bool:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
    return bool(item.session.testsfailed)


def _in_a_fork(work: Any) -> tuple[int, int]:
    """Run the work in a fork without output: its process, and where it writes the result."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        os.close(reader)
        for output in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
        with os.fdopen(writer, "wb") as answer:
            answer.write(work())
        status = 0
    finally:
        os._exit(status)


def _read(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as answer:
        return answer.read()


def _dotted(module: Path) -> str:
    return ".".join(["bellwether", *module.with_suffix("").parts])

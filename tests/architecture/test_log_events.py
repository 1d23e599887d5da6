"""Log events are searchable keys: the first argument of each log call is a fixed snake_case word, details are fields.

An event may reach the log call through a parameter named ``event``: then the calls of that function are checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sourcetree import ROOT

FOLDERS = ("operator", "spark")
KEY = re.compile(r"[a-z][a-z0-9_]*")
LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
LOGGERS = frozenset({"log", "_log", "logger", "audit_log", "get_logger", "getLogger"})


def bad_events(root: Path) -> list[str]:
    """Log calls whose event is not a fixed key, as ``file:line: event``."""
    found = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            found += [
                f"{name}:{event.lineno}: {ast.unparse(event)}"
                for event in events(ast.parse(path.read_text(encoding="utf-8")))
                if not (isinstance(event, ast.Constant) and KEY.fullmatch(str(event.value)))
            ]
    return found


def events(tree: ast.Module) -> Iterator[ast.expr]:
    """Every expression that is logged as an event in this module."""
    for function, call in log_calls(tree):
        event = call.args[0] if call.args else call
        if isinstance(event, ast.Name) and function is not None:
            yield from values(tree, function, event)
        else:
            yield event


def values(tree: ast.Module, function: ast.FunctionDef, event: ast.Name) -> Iterator[ast.expr]:
    """What a local name of the function may be: what is assigned to it, or passed for it."""
    assigned = [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == event.id
    ]
    parameters = [p.arg for p in function.args.args if p.arg != "self"]
    if event.id in parameters:
        place = parameters.index(event.id)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_of(node.func) == function.name]
        assigned += [call.args[place] if len(call.args) > place else call for call in calls]
    for value in assigned or [event]:
        yield from (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)


def log_calls(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
    """Each log call with the innermost function around it."""
    around: dict[ast.AST, ast.FunctionDef] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            around.update(dict.fromkeys(ast.walk(function), function))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            of = node.func.value.func if isinstance(node.func.value, ast.Call) else node.func.value
            if name_of(of) in LOGGERS:
                yield around.get(node), node


def name_of(node: ast.expr) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def test_every_log_event_is_a_key() -> None:
    assert bad_events(ROOT) == []


GOOD = """
log.info("leaders_moved", count=3)
structlog.get_logger(__name__).warning("token_sent_unencrypted")
other.error("not a log call")

class Watch:
    def once(self, event, **fields):
        self._log.warning(event, **fields)

    def run(self, failed):
        self.once("read_failed", error="it is down")
        state = "started" if failed else "stopped"
        self._log.info(state)
"""


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('"leaders_moved"', '"3 leaders moved"', "2: '3 leaders moved'"),
        ('"leaders_moved"', 'f"moved_{number}"', "2: f'moved_{number}'"),
        ('"token_sent_unencrypted"', '"TokenSent"', "3: 'TokenSent'"),
        ('"read_failed"', '"cannot be read"', "11: 'cannot be read'"),
        ('"stopped"', '"has stopped"', "12: 'has stopped'"),
        ("info(state)", "info(failed)", "13: failed"),
    ],
)
def test_a_sentence_is_found(tmp_path: Path, old: str, new: str, line: str) -> None:
    found = bad_events(written(tmp_path, GOOD.replace(old, new)))
    assert found == [f"operator/bellwether/watch.py:{line}"]


def written(root: Path, text: str) -> Path:
    path = root / "operator" / "bellwether" / "watch.py"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return root

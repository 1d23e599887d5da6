"""What comes from a tenant or from outside is read with a limit and parsed in linear time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from sourcetree import ROOT, sources

ALLOWED = {
    "operator/bellwether/adapters/kubernetes/api_client.py: json.loads": "the API server's own response",
    "operator/bellwether/adapters/kubernetes/api_errors.py: json.loads": "of a message that is cut to 4,096 characters",
    "operator/bellwether/adapters/kubernetes/api_errors.py: DOTALL": "of a message that is cut to 4,096 characters",
    "operator/bellwether/cli/diagnosis/remedies.py: json.loads": "a file of the package itself",
    "operator/bellwether/cli/output.py: json.loads": "what the command itself has written",
    "operator/bellwether/adapters/kubernetes/admission_server.py: request.read": "aiohttp reads up to client_max_size",
    "spark/bellwether_load/jobs/engines.py: pickle.loads": "what the job's own tasks have written",
    "operator/bellwether/quarantine/broker_process.py: DOTALL": "the administrator's own pattern",
}
_RECEIVERS = re.compile(
    r"(response|answer|reply|request|stream|body|sock|socket|connection|file|pipe|stdout|stderr|urlopen)$"
)
_WHOLE = {"read", "readall", "readlines", "getvalue"}


def unbounded(source: str) -> Iterator[tuple[int, str]]:
    """Line and kind of what reads or parses without a limit."""
    tree = ast.parse(source)
    guarded = {id(node) for block in ast.walk(tree) if _catches_recursion(block) for node in ast.walk(block)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, _last_word(node.func.value)
        arguments = len(node.args) + len(node.keywords)
        if name == "decompress" and (owner in ("zlib", "gzip", "bz2", "lzma") or arguments < 2):
            yield node.lineno, f"{owner}.decompress"
        elif name in _WHOLE and not arguments and _RECEIVERS.search(owner):
            yield node.lineno, f"{owner}.{name}"
        elif name in ("loads", "load") and owner == "json" and id(node) not in guarded:
            yield node.lineno, "json.loads"
        elif owner == "re" and _dot_matches_all(node):
            yield node.lineno, "DOTALL"
        elif owner in ("pickle", "marshal", "yaml") and name in ("load", "loads"):
            yield node.lineno, f"{owner}.{name}"


def _catches_recursion(node: ast.AST) -> bool:
    return isinstance(node, ast.Try) and any(
        isinstance(word, ast.Name) and word.id == "RecursionError"
        for handler in node.handlers
        if handler.type is not None
        for word in ast.walk(handler.type)
    )


def _dot_matches_all(call: ast.Call) -> bool:
    """Whether ``.`` of a pattern takes whole texts, which makes nested or repeated searches quadratic."""
    flags = {word.attr for argument in call.args[1:] for word in ast.walk(argument) if isinstance(word, ast.Attribute)}
    flags |= {word.attr for keyword in call.keywords for word in ast.walk(keyword) if isinstance(word, ast.Attribute)}
    texts = [word.value for word in ast.walk(call) if isinstance(word, ast.Constant) and isinstance(word.value, str)]
    return bool(flags & {"S", "DOTALL"}) or any(re.match(r"\(\?[a-z]*s", text) for text in texts)


def _last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_word(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@cache
def found_in(root: Path) -> dict[str, list[str]]:
    """Unbounded reads by ``file: kind``, with their lines."""
    found: dict[str, list[str]] = {}
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        if name.startswith(("operator/", "spark/")):
            for line, kind in unbounded(path.read_text(encoding="utf-8")):
                found.setdefault(f"{name}: {kind}", []).append(str(line))
    return found


def test_nothing_is_read_or_parsed_without_a_limit() -> None:
    found = {where: lines for where, lines in found_in(ROOT).items() if not where.startswith(tuple(ALLOWED))}
    assert found == {}, "read with a size, use adapters.json_codec, or say in ALLOWED why it is bounded"


def test_every_exception_is_still_needed() -> None:
    found = found_in(ROOT)
    assert [one for one in ALLOWED if not any(where.startswith(one) for where in found)] == []


@pytest.mark.parametrize(
    "source",
    [
        "zlib.decompress(data)",
        "zlib.decompressobj().decompress(data)",
        "gzip.decompress(data)",
        "urlopen(url).read()",
        "self._response.read()",
        "file.read()",
        "json.loads(text)",
        "try:\n    json.loads(text)\nexcept ValueError:\n    pass",
        "re.compile(rb'-----BEGIN (.*?)-----(.*?)-----END', re.S)",
        "re.search('(?s)a.*b', text)",
        "re.findall('a.*b', text, flags=re.DOTALL | re.I)",
        "pickle.loads(data)",
        "yaml.load(text)",
    ],
)
def test_what_was_found_in_attacks_is_found(source: str) -> None:
    assert list(unbounded(source))


@pytest.mark.parametrize(
    "source",
    [
        "zlib.decompressobj().decompress(data, 100)",
        "response.read(100)",
        "reader.read()",
        "json.dumps(value)",
        "try:\n    json.loads(text)\nexcept (ValueError, RecursionError):\n    pass",
        "re.compile('[a-z]+', re.I)",
        "yaml.safe_load(text)",
    ],
)
def test_what_is_bounded_is_not(source: str) -> None:
    assert not list(unbounded(source))

"""Pure packages import only what is listed here: nothing that does IO, reads a clock or knows a client."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sourcetree import ROOT, sources

PURE: Mapping[str, str] = {
    "bellwether/core": """
        __future__ bisect collections dataclasses datetime enum fnmatch functools hashlib heapq itertools math
        operator shlex statistics typing bellwether.core
    """,
    "bellwether/core/settings/schedule.py": "cronsim",
    "bellwether/recording/traces": """
        __future__ collections dataclasses datetime hashlib json math pydantic re typing bellwether.adapters.json_codec
        bellwether.core bellwether.recording.traces
    """,
    "bellwether_load/verify": """
        __future__ collections dataclasses fractions numpy pyarrow typing
        bellwether.core.settings.objective bellwether.core.stored_documents bellwether_load.plan.certificate
        bellwether_load.plan.checks bellwether_load.plan.digests bellwether_load.plan.evidence
        bellwether_load.plan.forecast bellwether_load.plan.partition_rows bellwether_load.plan.plan_losses
        bellwether_load.plan.problem bellwether_load.plan.rebalance_plan
        bellwether_load.verify
    """,
}
"""What each package may import, its modules included; a file may import what its package may."""


def imports(root: Path) -> Iterator[tuple[str, int, str]]:
    """File, line and full name of everything that a pure package imports; a relative name keeps its dots."""
    for path in sources(root):
        _, _, place = path.relative_to(root).as_posix().partition("/")  # below operator or spark
        if any(_within(place, pure, "/") for pure in PURE):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from ((place, node.lineno, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    module = "." * node.level + (node.module or "")
                    yield from ((place, node.lineno, f"{module}.{alias.name}") for alias in node.names)


def allowances(place: str, name: str) -> list[tuple[str, str]]:
    """Every entry of ``PURE``, as place and module, that lets a file import a name."""
    pure = [(where, module) for where, listed in PURE.items() for module in listed.split()]
    return [(where, module) for where, module in pure if _within(place, where, "/") and _within(name, module, ".")]


def impure_imports(root: Path) -> list[str]:
    """What pure packages import and may not, as ``file:line name``."""
    return [f"{place}:{line} {name}" for place, line, name in imports(root) if not allowances(place, name)]


def _within(name: str, whole: str, separator: str) -> bool:
    return name == whole or name.startswith(whole + separator)


def test_pure_packages_import_only_what_they_may() -> None:
    assert impure_imports(ROOT) == []


def test_everything_that_is_allowed_is_in_use() -> None:
    used = {allowance for place, _, name in imports(ROOT) for allowance in allowances(place, name)}
    listed = {(where, module) for where, modules in PURE.items() for module in modules.split()}
    assert listed - used == set()


@pytest.mark.parametrize(
    ("module", "statement", "name"),
    [
        ("core/model/cluster.py", "import http.client", "http.client"),
        ("core/model/cluster.py", "import pathlib", "pathlib"),
        ("core/model/cluster.py", "import sqlite3", "sqlite3"),
        ("core/model/cluster.py", "import aiohttp", "aiohttp"),
        ("core/model/cluster.py", "import cronsim", "cronsim"),
        ("core/model/cluster.py", "from time import monotonic", "time.monotonic"),
        ("core/model/cluster.py", "from bellwether import ports", "bellwether.ports"),
        ("core/model/cluster.py", "from ... import ports", "....ports"),
        ("core/model/cluster.py", "def late(): import socket", "socket"),
        ("core/reasons.py", "import os", "os"),
        ("recording/traces/trace_lines.py", "import time", "time"),
        ("verify/load_bounds.py", "import scipy", "scipy"),
        ("verify/load_bounds.py", "from bellwether.core import reasons", "bellwether.core.reasons"),
    ],
)
def test_an_import_that_is_not_allowed_is_named(tmp_path: Path, module: str, statement: str, name: str) -> None:
    place = Path("spark", "bellwether_load") if module.startswith("verify/") else Path("operator", "bellwether")
    source = (ROOT / place / module).read_text(encoding="utf-8")
    copy = tmp_path / place / module
    copy.parent.mkdir(parents=True)
    copy.write_text(f"{source}{statement}\n", encoding="utf-8")
    assert impure_imports(tmp_path) == [f"{place.name}/{module}:{len(source.splitlines()) + 1} {name}"]

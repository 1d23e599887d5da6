"""Files of policies: read them, folders included, and check what is in them object by object and together.

In: names of files. Out: the valid policies and BrokerHealths, and problems with their places. Used by ``bellwether
lint``, ``diff``, ``simulate`` and ``replay``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.cli.policies.file_set_checks import FoundPolicy, check_together
from bellwether.cli.policies.gitops_files import in_kustomization, objects_in, unread
from bellwether.cli.policies.object_checks import ERROR, NOTE, WARNING, FoundObject, Problem, check_object, is_ours
from bellwether.cli.policies.yaml_documents import (
    Position,
    YamlProblem,
    content_of,
    documents_of,
    read_bounded,
    text_of,
)
from bellwether.core.listing import counted
from bellwether.foreign_text import printable_lines

SUFFIXES = (".yaml", ".yml", ".json")
FILE_LIMIT = 5000
STDIN = "-"
T = TypeVar("T")


def _expanded(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each file once, folders as their files, with an error for what is none."""
    seen: set[str] = set()
    for name in files:
        path = Path(name)
        found, error = [name], ""
        if name != STDIN and path.is_dir():
            found = sorted(str(one) for one in path.rglob("*") if one.suffix in SUFFIXES and one.is_file())
            if not found:
                found, error = [name], f"the folder has no file that ends in {', '.join(SUFFIXES)}"
            elif len(found) > FILE_LIMIT:
                found, error = [name], f"the folder has more than {FILE_LIMIT} files, the limit: name a smaller one"
        elif name != STDIN and not path.exists():
            error = "there is no such file"
        for one in found:
            if one not in seen:
                seen.add(one)
                yield one, error


@dataclass
class CheckedFiles:
    """The valid objects of all files, and the problems by their places."""

    names: set[str] = field(default_factory=set)
    objects: int = 0
    policies: list[FoundPolicy] = field(default_factory=list)
    sources: list[FoundObject] = field(default_factory=list)
    rebalances: list[FoundObject] = field(default_factory=list)
    healths: list[BrokerHealth] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """The problems that make an object invalid."""
        return [p for p in self.problems if p.severity == ERROR]

    def table(self, problems: Sequence[Problem]) -> str:
        """One line for each of these problems, as compilers write it, and a summary without terminal control codes: a
        file may come from an untrusted source.
        """
        lines = [f"{p.file}:{p.at.line}:{p.at.column}: {p.severity}: {p.message} [{p.rule}]" for p in problems]
        counts = Counter(p.severity for p in problems)
        notes = f", {counts[NOTE]} not checked" if counts[NOTE] else ""
        summary = (
            (len(self.names), "file"),
            (self.objects, "object"),
            (counts[ERROR], "error"),
            (counts[WARNING], "warning"),
        )
        lines.append(", ".join(counted(*one) for one in summary) + notes)
        return printable_lines("\n".join(lines))


def only_policy(path: Path) -> LeadershipPolicy:
    """The one policy of a file, with its objects there. Raises ValueError with what is wrong, as lint says it."""
    return _only(path, "LeadershipPolicies", [one.policy for one in _valid(path).policies])


def only_rebalance(path: Path) -> LeaderRebalance:
    """The one LeaderRebalance of a file. Raises ValueError likewise."""
    return _only(path, "LeaderRebalances", [LeaderRebalance.read(one.value) for one in _valid(path).rebalances])


def _valid(path: Path) -> CheckedFiles:
    checked = check_files([str(path)])
    if checked.errors:
        raise ValueError(checked.table(checked.errors))
    return checked


def _only(path: Path, kind: str, found: list[T]) -> T:
    if len(found) != 1:
        raise ValueError(f"{path} has {len(found)} {kind}: it must have one")
    return found[0]


def in_namespace(objects: Iterable[FoundObject], namespace: str) -> list[Mapping[str, Any]]:
    """The objects for a namespace; one that is not written may be any."""
    return [one.value for one in objects if one.namespace in ("", namespace)]


def check_files(names: Iterable[str], racks: frozenset[str] | None = None) -> CheckedFiles:
    """Read and check files, those of folders included, alone and together."""
    checked = CheckedFiles()
    others: list[FoundObject] = []
    for name, error in _expanded(names):
        rule = "file"
        try:
            if error:
                raise YamlProblem(error)
            text = text_of(read_bounded(sys.stdin.buffer) if name == STDIN else content_of(Path(name)))
            rule = "yaml"
            for document in documents_of(text):
                if not isinstance(document.value, Mapping | list):
                    text = "is not a Kubernetes object: it must have apiVersion, kind and metadata"
                    raise YamlProblem(text, document.start)
                for found in objects_in(name, document):
                    if isinstance(found, Problem):
                        checked.problems.append(found)
                    else:
                        _add(checked, found, others)
        except YamlProblem as problem:
            checked.problems.append(unread(name, problem, Position(1, 1), rule))
        checked.names.add(name)
    checked.policies = [one.with_objects(checked.sources, checked.rebalances) for one in checked.policies]
    checked.problems += check_together(checked.policies, checked.sources, checked.rebalances, others, racks)
    checked.problems.sort(key=lambda p: (p.file, p.at, p.severity))
    return checked


def _add(checked: CheckedFiles, found: FoundObject, others: list[FoundObject]) -> None:
    """Check one object, and keep it where it is valid, or among the others."""
    if not is_ours(found.value):
        if not found.patch:
            others.append(found)
        return
    checked.objects += 1
    valid, wrong = check_object(found, whole=not found.patch)
    if valid is None and in_kustomization(found.file):
        wrong = check_object(found, whole=False)[1]
    checked.problems += [*_duplicates(found), *wrong]
    if found.patch:
        return
    if isinstance(valid, LeadershipPolicy):
        checked.policies.append(FoundPolicy(found, valid))
    elif isinstance(valid, BrokerHealth):
        checked.healths.append(valid)
    elif isinstance(valid, SignalSource):
        checked.sources.append(found)
    elif isinstance(valid, LeaderRebalance):
        checked.rebalances.append(found)


def _duplicates(found: FoundObject) -> Iterator[Problem]:
    depth = len(found.prefix)
    for place, at in found.document.duplicates:
        if place[:depth] == found.prefix:
            text = f"{place[-1]} is written twice, and only the last one counts: remove one"
            yield Problem(found.file, at, ERROR, "yaml", text, found.title)

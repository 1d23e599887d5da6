"""Files of policies: read them, folders included, and check what is in them object by object and together.

In: names of files. Out: the valid policies and BrokerHealths, and problems with their places. Used by ``bellwether
lint``, ``diff`` and ``simulate``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bellwether.api.v1alpha1.base_model import API_VERSION
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.cli.policies.file_set_checks import FoundPolicy, check_together
from bellwether.cli.policies.gitops_files import as_list, chart_values, is_patch, unchecked
from bellwether.cli.policies.object_checks import (
    ERROR,
    NOTE,
    WARNING,
    FoundObject,
    Problem,
    check_object,
    is_ours,
)
from bellwether.cli.policies.yaml_documents import (
    Document,
    Position,
    YamlProblem,
    content_of,
    documents_of,
    read_bounded,
    text_of,
)

SUFFIXES = (".yaml", ".yml", ".json")
FILE_LIMIT = 5000
STDIN = "-"
_ENTRY = frozenset({"name", "namespace", "labels", "annotations", "spec"})
"""Fields of an entry of the chart's values ``policies`` and ``signalSources``."""


def problem_table(problems: Sequence[Problem], files: Sequence[str]) -> str:
    """One line for each problem, as compilers write it, and a summary."""
    lines = [f"{p.file}:{p.at.line}:{p.at.column}: {p.severity}: {p.message} [{p.rule}]" for p in problems]
    counts = Counter(p.severity for p in problems)
    notes = f", {counts[NOTE]} not checked" if counts[NOTE] else ""
    return "\n".join([*lines, f"{len(files)} files, {counts[ERROR]} errors, {counts[WARNING]} warnings{notes}"])


def read_all(files: Iterable[str]) -> tuple[list[tuple[str, str]], list[Problem]]:
    """Names and texts of the files, those of folders included, and of files that cannot be read why."""
    texts: list[tuple[str, str]] = []
    problems = []
    for name, error in _expanded(files):
        try:
            if error:
                raise YamlProblem(error)
            content = read_bounded(sys.stdin.buffer) if name == STDIN else content_of(Path(name))
            texts.append((name, text_of(content)))
        except YamlProblem as problem:
            at = problem.at or Position(1, 1)
            problems.append(Problem(name, at, ERROR, "file", problem.message))
    return texts, problems


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
    """The valid objects of all files, and the problems."""

    policies: list[FoundPolicy] = field(default_factory=list)
    sources: list[FoundObject] = field(default_factory=list)
    healths: list[BrokerHealth] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def sources_for(self, namespace: str) -> list[Mapping[str, Any]]:
        """The SignalSources for a namespace; one that is not written may be any."""
        return [one.value for one in self.sources if one.namespace in ("", namespace)]


def check_files(texts: Iterable[tuple[str, str]], racks: frozenset[str] | None = None) -> CheckedFiles:
    """Check files, given by name and text, alone and together."""
    checked = CheckedFiles()
    others: list[FoundObject] = []
    for name, text in texts:
        try:
            for document in documents_of(text):
                for found in _objects(name, document):
                    if not is_ours(found.value):
                        others.append(found)
                        for place, what in unchecked(found.value):
                            checked.problems.append(found.problem(NOTE, "unchecked", place, f"not checked: {what}"))
                        continue
                    checked.problems += _duplicates(found)
                    valid, wrong = check_object(found, patch=name != STDIN and is_patch(name))
                    checked.problems += wrong
                    if isinstance(valid, LeadershipPolicy):
                        checked.policies.append(FoundPolicy(found, valid))
                    elif isinstance(valid, BrokerHealth):
                        checked.healths.append(valid)
                    elif isinstance(valid, SignalSource):
                        checked.sources.append(found)
        except YamlProblem as problem:
            at = problem.at or Position(1, 1)
            checked.problems.append(Problem(name, at, ERROR, "yaml", problem.message))
    checked.policies = [one.with_sources(checked.sources) for one in checked.policies]
    checked.problems += check_together(checked.policies, checked.sources, others, racks)
    return checked


def _objects(name: str, document: Document) -> Iterator[FoundObject]:
    """The objects of a document: itself, the items of a List, values of the chart inside, and their policies."""
    value = document.value
    if isinstance(value, list):
        return  # another tool's file
    if not isinstance(value, Mapping):
        raise YamlProblem("is not a Kubernetes object: it must have apiVersion, kind and metadata", document.start)
    if value.get("kind") == "List" and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            if isinstance(item, Mapping):
                yield FoundObject(name, document, item, ("items", index))
        return
    yield FoundObject(name, document, value)
    for values, place in chart_values(value):
        if place:
            yield FoundObject(name, document, values, place)
        for value_name, kind in (("policies", "LeadershipPolicy"), ("signalSources", "SignalSource")):
            for index, entry in enumerate(as_list(values.get(value_name))):
                # Otherwise of another chart.
                if isinstance(entry, Mapping) and "spec" in entry and not set(entry) - _ENTRY:
                    yield FoundObject(name, document, _of_values(entry, kind), (*place, value_name, index))


def _of_values(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The object that the chart makes of an entry of its values ``policies`` and ``signalSources``."""
    metadata = {key: entry[key] for key in sorted(_ENTRY - {"spec"}) if entry.get(key)}
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
    return {**head, "spec": entry["spec"]}


def _duplicates(found: FoundObject) -> Iterator[Problem]:
    depth = len(found.prefix)
    for place, at in found.document.duplicates:
        if place[:depth] == found.prefix:
            text = f"{place[-1]} is written twice, and only the last one counts: remove one"
            yield Problem(found.file, at, ERROR, "yaml", text, found.title)

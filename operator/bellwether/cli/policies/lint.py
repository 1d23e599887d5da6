"""``bellwether lint``: judge policy files offline, as the API server would and beyond it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bellwether.cli import exit_status

if TYPE_CHECKING:
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.cli.policies.file_set_checks import FoundPolicy
    from bellwether.cli.policies.object_checks import FoundObject, Problem
    from bellwether.cli.policies.yaml_documents import Document

SUFFIXES = (".yaml", ".yml", ".json")
FILE_LIMIT = 5000
STDIN = "-"
_ENTRY = frozenset({"name", "namespace", "labels", "annotations", "spec"})
"""Fields of an entry of the chart's values ``policies`` and ``signalSources``."""


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--cluster",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Description of the cluster (as for `bellwether simulate`): racks that no broker is in are errors.",
)
@click.option("--strict", is_flag=True, help="Exit with status 4 for warnings, too.")
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "sarif", "junit"]),
    default="table",
    show_default=True,
    help="Output format; sarif and junit are for CI.",
)
def lint(files: tuple[str, ...], cluster: Path | None, strict: bool, output: str) -> None:
    """Check policy FILES without a cluster.

    FILES are YAML or JSON files, folders, or - for the standard input. Each LeadershipPolicy and BrokerHealth is judged
    as the API server would judge it, with line and column. Then the files are judged together: two policies for one
    cluster; vantages without probers, if there are Deployments of probers or values of the chart among the files;
    Secrets that are missing, lack the purpose label or are not in rbac.secretNames, if there are Secrets or values
    among them. Policies in values of the chart are checked, too; other objects are ignored.

    \b
    Exit status:
      0  no errors
      1  --cluster is no cluster description
      4  errors, or with --strict warnings
    """
    from bellwether.cli.policies.lint_output import FORMATS
    from bellwether.cli.policies.object_checks import ERROR, NOTE

    contents, problems = read_all(files)
    problems += check_files(contents, _racks(cluster) if cluster is not None else None).problems
    problems.sort(key=lambda p: (p.file, p.at, p.severity))
    names = [name for name, _ in contents]
    shown = FORMATS[output](problems, sorted({*names, *(p.file for p in problems)}))
    click.echo(shown if output != "table" else _plain(shown))
    if any((strict and p.severity != NOTE) or p.severity == ERROR for p in problems):
        raise click.exceptions.Exit(exit_status.FOUND)


def read_all(files: Iterable[str]) -> tuple[list[tuple[str, str]], list[Problem]]:
    """Names and texts of the files, those of folders included, and of files that cannot be read why."""
    from bellwether.cli.policies.object_checks import ERROR, Problem
    from bellwether.cli.policies.yaml_documents import Position, YamlProblem, content_of, read_bounded, text_of

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
    from bellwether.api.v1alpha1.broker_health import BrokerHealth
    from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
    from bellwether.api.v1alpha1.signal_source import SignalSource
    from bellwether.cli.policies.file_set_checks import FoundPolicy, check_together
    from bellwether.cli.policies.gitops_files import is_patch, unchecked
    from bellwether.cli.policies.object_checks import ERROR, NOTE, Problem, check_object, is_ours
    from bellwether.cli.policies.yaml_documents import Position, YamlProblem, documents_of

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
    from bellwether.cli.policies.gitops_files import chart_values
    from bellwether.cli.policies.object_checks import FoundObject
    from bellwether.cli.policies.yaml_documents import YamlProblem

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
            entries = values.get(value_name)
            for index, entry in enumerate(entries if isinstance(entries, list) else []):
                # Otherwise of another chart.
                if isinstance(entry, Mapping) and "spec" in entry and not set(entry) - _ENTRY:
                    yield FoundObject(name, document, _of_values(entry, kind), (*place, value_name, index))


def _of_values(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The object that the chart makes of an entry of its values ``policies`` and ``signalSources``."""
    from bellwether.api.v1alpha1.base_model import API_VERSION

    metadata = {key: entry[key] for key in sorted(_ENTRY - {"spec"}) if entry.get(key)}
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata}
    return {**head, "spec": entry["spec"]}


def _duplicates(found: FoundObject) -> Iterator[Problem]:
    from bellwether.cli.policies.object_checks import ERROR, Problem

    depth = len(found.prefix)
    for place, at in found.document.duplicates:
        if place[:depth] == found.prefix:
            text = f"{place[-1]} is written twice, and only the last one counts: remove one"
            yield Problem(found.file, at, ERROR, "yaml", text, found.title)


def _racks(cluster: Path) -> frozenset[str]:
    """The racks of a cluster description. Raises ClickException if it is none."""
    from bellwether.cli.policies.yaml_documents import YamlProblem, content_of, documents_of, text_of
    from bellwether.simulation.cluster_description import cluster_of

    try:
        values = [document.value for document in documents_of(text_of(content_of(cluster)))]
        if len(values) != 1:
            raise YamlProblem(f"has {len(values)} documents: a cluster description has one")
        return frozenset(broker.rack for broker in cluster_of(values[0]).brokers.values() if broker.rack)
    except (YamlProblem, ValueError) as error:
        raise click.ClickException(f"--cluster {cluster}: {error}") from None


def _plain(text: str) -> str:
    """Without terminal control codes: a file may come from an untrusted source."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)

"""Print lint problems as table, JSON, SARIF 2.1.0 or JUnit XML."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from xml.etree import ElementTree

from bellwether import __version__
from bellwether.cli.policies.object_checks import ERROR, NOTE, WARNING, Problem

RULES = {
    "duplicate": "The same object is in two places.",
    "file": "The file cannot be read.",
    "kind": "Kind or apiVersion is unknown.",
    "metadata": "The metadata is invalid.",
    "one-policy": "Two policies manage one Kafka cluster.",
    "rack": "No broker is in the rack.",
    "schema": "A field is unknown, missing or has an invalid value.",
    "secret": "A Secret is missing, or the operator may not read it.",
    "unchecked": "Policies may be here, and are not checked.",
    "status": "The status is written by the operator.",
    "vantage": "A vantage and its probers do not match.",
    "yaml": "The file is not valid YAML.",
}
"""Checks by name, as in SARIF."""


def as_table(problems: Sequence[Problem], files: Sequence[str]) -> str:
    """One line for each problem, as compilers write it, and a summary."""
    lines = [f"{p.file}:{p.at.line}:{p.at.column}: {p.severity}: {p.message} [{p.rule}]" for p in problems]
    counts = Counter(p.severity for p in problems)
    notes = f", {counts[NOTE]} not checked" if counts[NOTE] else ""
    return "\n".join([*lines, f"{len(files)} files, {counts[ERROR]} errors, {counts[WARNING]} warnings{notes}"])


def as_json(problems: Sequence[Problem], files: Sequence[str]) -> str:
    """The problems as JSON."""
    found = [
        {
            "file": p.file,
            "line": p.at.line,
            "column": p.at.column,
            "severity": p.severity,
            "rule": p.rule,
            "object": p.object,
            "field": p.field,
            "message": p.message,
        }
        for p in problems
    ]
    return json.dumps({"files": list(files), "problems": found}, indent=2, ensure_ascii=False)


def as_sarif(problems: Sequence[Problem], files: Sequence[str]) -> str:  # noqa: ARG001 - one signature for all formats
    """The problems as SARIF 2.1.0, for code scanning."""
    results: list[dict[str, Any]] = []
    for p in problems:
        region = {"startLine": p.at.line, "startColumn": p.at.column}
        artifact = {"uri": PurePath(p.file).as_posix()}
        results.append(
            {
                "ruleId": p.rule,
                "level": p.severity,
                "message": {"text": p.message},
                "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
            }
        )
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    driver = {"name": "bellwether lint", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def as_junit(problems: Sequence[Problem], files: Sequence[str]) -> str:
    """JUnit XML with a test case for each file; it fails if the file has errors."""
    by_file: dict[str, list[Problem]] = {file: [] for file in files}
    for p in problems:
        by_file.setdefault(p.file, []).append(p)
    failing = sum(any(p.severity == ERROR for p in found) for found in by_file.values())
    counts = {"name": "bellwether lint", "tests": str(len(by_file)), "failures": str(failing), "errors": "0"}
    suite = ElementTree.Element("testsuite", counts)
    for file, found in by_file.items():
        case = ElementTree.SubElement(suite, "testcase", {"classname": "bellwether.lint", "name": file})
        lines = [f"{p.at.line}:{p.at.column}: {p.severity}: {p.message}" for p in found]
        errors = [p for p in found if p.severity == ERROR]
        if errors:
            failure = ElementTree.SubElement(case, "failure", {"message": errors[0].message, "type": errors[0].rule})
            failure.text = _printable("\n".join(lines))
        elif lines:
            ElementTree.SubElement(case, "system-out").text = _printable("\n".join(lines))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _printable(text: str) -> str:
    """Without control characters, which XML does not allow."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


FORMATS: Mapping[str, Callable[[Sequence[Problem], Sequence[str]], str]] = {
    "table": as_table,
    "json": as_json,
    "sarif": as_sarif,
    "junit": as_junit,
}

"""Print what a rendered chart grants to each account: ``helm template NAME CHART | python -m chartvalues.rights``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

HEAD = "| account | where | may | on | of API group |\n|---|---|---|---|---|"


def table(objects: Sequence[Any]) -> str:
    """A Markdown table with a row for each rule of each role that is bound. In: all objects of the release."""
    return "\n".join((HEAD, *dict.fromkeys(_rows([one for one in objects if one]))))


def _rows(objects: Sequence[Any]) -> Iterator[str]:
    roles = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]): o for o in objects if "rules" in o}
    for binding in (one for one in objects if "roleRef" in one):
        reference, namespace = binding["roleRef"], binding["metadata"].get("namespace")
        role = roles[reference["kind"], namespace if reference["kind"] == "Role" else None, reference["name"]]
        where = f"namespace {namespace}" if namespace else "**all namespaces**"
        for subject in binding["subjects"]:
            for rule in role["rules"]:
                on = ", ".join(rule["resources"]) + "".join(f" {name}" for name in rule.get("resourceNames", ()))
                group = ", ".join(rule["apiGroups"]) or "core"
                account = "/".join(filter(None, (subject.get("namespace"), subject["name"])))
                yield f"| {account} | {where} | {', '.join(rule['verbs'])} | {on} | {group} |"


if __name__ == "__main__":
    print(table(list(yaml.safe_load_all(sys.stdin))))  # noqa: T201 - its output

"""Where GitOps repositories keep policies: chart values of umbrella charts, Flux and Argo CD, and Kustomize patches.

In: documents and file names. Out: values of the chart and their places, places that are not checked, and whether a file
is a patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from os.path import realpath
from pathlib import Path
from typing import Any

from bellwether.cli.policies.object_checks import KINDS
from bellwether.cli.policies.yaml_documents import Path_, YamlProblem, content_of, documents_of, text_of

CHART = "bellwether"
"""Name of the chart; an umbrella chart has its values under it."""

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
FOLDERS_ABOVE = 3
"""So many folders above a file may have the kustomization that names it."""


def is_chart_values(value: Any) -> bool:
    """Whether these are values of the chart: they have no kind, and a part that concerns policies."""
    if not isinstance(value, Mapping) or "kind" in value:
        return False
    return any(key in value for key in ("policies", "signalSources", "rebalances", "probers", "rbac"))


def chart_values(value: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Path_]]:
    """Values of the chart in a document, and where: itself, in a HelmRelease or an Application, in an umbrella's."""
    places: list[Path_] = [()]
    if value.get("kind") == "HelmRelease":
        places = [("spec", "values")]
    elif value.get("kind") == "Application":
        places = [(*source, "helm", "valuesObject") for source in _sources(value)]
    for place in places:
        for inside in (place, (*place, CHART)):
            if is_chart_values(found := _at(value, inside)):
                yield found, inside


def unchecked(value: Mapping[str, Any]) -> Iterator[tuple[Path_, str]]:
    """Places in a document that may have policies and are not checked, and what they are."""
    kind = value.get("kind")
    if kind == "HelmRelease" and _at(value, ("spec", "valuesFrom")) and CHART in str(_at(value, ("spec", "chart"))):
        yield ("spec", "valuesFrom"), "values of a ConfigMap or Secret"
    if kind == "Application":
        for source in _sources(value):
            for field in ("values", "parameters") if CHART in str(_at(value, source)) else ():
                if _at(value, (*source, "helm", field)):
                    yield (*source, "helm", field), f"{field}, use valuesObject"
    if kind == "ApplicationSet" and CHART in str(value.get("spec")):
        yield ("spec",), "a template of Applications"
    for index, patch in enumerate(as_list(value.get("patches")) if kind in (None, "Kustomization") else ()):
        text = patch.get("patch") if isinstance(patch, Mapping) else None
        if isinstance(text, str) and any(name in text for name in KINDS):
            yield ("patches", index), "a patch inside a kustomization, write it to a file of its own"


def is_patch(name: str) -> bool:
    """Whether a kustomization in its folder or above names the file as a patch, which has only what changes."""
    file = Path(name).resolve()
    return any(file in _patches(folder) for folder in list(file.parents)[: FOLDERS_ABOVE + 1])


@lru_cache(maxsize=5000)
def _patches(folder: Path) -> frozenset[Path]:
    found = set()
    for file in (folder / name for name in KUSTOMIZATIONS):
        try:
            documents = list(documents_of(text_of(content_of(file)))) if file.is_file() else []
        except YamlProblem:
            continue  # of no use to Kustomize either
        for value in (one.value for one in documents if isinstance(one.value, Mapping)):
            named = [*as_list(value.get("patchesStrategicMerge"))]
            named += [_at(patch, ("path",)) for patch in as_list(value.get("patches"))]
            paths = [path for path in named if isinstance(path, str) and path.isprintable()]
            found |= {Path(realpath(folder / path)) for path in paths}  # resolve() raises where links form a circle
    return frozenset(found)


def _sources(application: Mapping[str, Any]) -> list[Path_]:
    several = as_list(_at(application, ("spec", "sources")))
    return [("spec", "source"), *(("spec", "sources", index) for index in range(len(several)))]


def _at(value: Any, place: Path_) -> Any:
    """The value at a place; None where there is none."""
    for part in place:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def as_list(value: Any) -> list[Any]:
    """The value if it is a list; empty otherwise."""
    return value if isinstance(value, list) else []

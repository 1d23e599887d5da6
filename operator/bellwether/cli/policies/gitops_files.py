"""Where GitOps repositories keep policies: in other objects, in chart values, in texts, and in patches.

In: a document and the name of its file. Out: every object in it with its place: the document itself, in another object
(List, ManifestWork, Template), made of chart values (umbrella chart, Flux, Argo CD, K3s, Fleet, Helmfile), in a text
(ConfigMap, patch); and a note for each place that cannot be judged. Called by ``policy_files``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bellwether.api.v1alpha1.base_model import API_VERSION, GROUP
from bellwether.cli.policies.object_checks import ERROR, KINDS, NOTE, RENDERED, FoundObject, Problem, is_ours
from bellwether.cli.policies.yaml_documents import SIZE_LIMIT, Document, Path_, Position, YamlProblem, documents_of

CHART = "bellwether"
"""Name of the chart; an umbrella chart has its values under it, or under an alias."""

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
FOLDERS_ABOVE = 3
"""So many folders above a file may have the kustomization that uses it."""

_VALUES = {"policies": "LeadershipPolicy", "signalSources": "SignalSource", "rebalances": "LeaderRebalance"}
"""Values of the chart that have objects, and their kinds."""
_ENTRY = frozenset({"name", "namespace", "labels", "annotations", "spec"})
"""Fields of an entry of these values."""
_TYPICAL = ("kafka", "mode", "detection", "promotion", "demotion")
"""Fields that show that an entry of ``policies`` is a LeadershipPolicy and not of another chart."""
_CHART_KEYS = ("chart", "chartName", "chartRef", "path", "name")
"""Fields next to values that may name the chart."""
_VALUES_KEYS = ("values", "valuesObject", "valuesInline", "valuesContent", "valuesTemplate")
_PATCH_KEYS = ("patch", "patches", "patchesStrategicMerge", "patchesJson6902")
_OURS = re.compile(rf"""apiVersion["']?:\s*["']?{re.escape(GROUP)}/""")
_OUR_VALUES = re.compile(rf"""^\s*["']?({"|".join(_VALUES)})["']?:""", re.MULTILINE)


def is_chart_values(value: Any) -> bool:
    """Whether these are values of the chart: they have no kind, and a part that concerns policies."""
    if not isinstance(value, Mapping) or "kind" in value:
        return False
    return any(key in value for key in (*_VALUES, "probers", "rbac"))


def objects_in(name: str, document: Document) -> Iterator[FoundObject | Problem]:
    """The objects of a document, and what in it is not checked."""
    yield from _Search(name, document).within(document.value)


def in_kustomization(name: str) -> bool:
    """Whether patches may complete the objects of a file: its folder, or one above it, has a kustomization."""
    folders = Path(name).absolute().parents[: FOLDERS_ABOVE + 1] if name != "-" else ()
    return any((folder / one).is_file() for folder in folders for one in KUSTOMIZATIONS)


def unread(name: str, problem: YamlProblem, start: Position, rule: str = "yaml", *, sure: bool = True) -> Problem:
    """The problem of a text that cannot be read: no error, if it is a template, or if it is not ``sure`` to be YAML."""
    if problem.template or not sure:
        return Problem(name, problem.at or start, NOTE, "unchecked", f"not checked: {problem.message}")
    return Problem(name, problem.at or start, ERROR, rule, problem.message)


class _Search:
    """Looks through a document. ``values``: it may be values of a chart; None: it is a file, and is if it has no kind.
    ``left``: how many characters of texts in it may be read.
    """

    def __init__(self, name: str, document: Document, values: bool | None = None, left: int = SIZE_LIMIT) -> None:
        self._name = name
        self._document = document
        self._is_file = values is None
        self._values = values or (self._is_file and "kind" not in _mapping(document.value))
        self._left = left

    def within(
        self, value: Any, place: Path_ = (), *, values: bool = False, ours: bool = False, patch: bool = False
    ) -> Iterator[FoundObject | Problem]:
        """What is in a value. ``values``: it may be values of a chart, ``ours``: of this one; ``patch``: a patch."""
        values = values or self._values
        if isinstance(value, str):
            yield from self._text(value, place, values, ours, patch)
        elif isinstance(value, list):
            for index, one in enumerate(value):
                yield from self.within(one, (*place, index), values=values, ours=ours, patch=patch)
        elif isinstance(value, Mapping):
            if not place or _is_object(value):
                yield FoundObject(self._name, self._document, value, place, patch)
                if is_ours(value):
                    return
            if values and (ours or self._are_ours(value, place)):
                yield from self._chart_values(value, place)
            yield from self._unchecked(value, place, patch)
            ours = ours or any(CHART in str(value.get(key)) for key in _CHART_KEYS)
            for key, one in value.items():
                inside = patch or key in _PATCH_KEYS
                may_be = values or key in _VALUES_KEYS or key.endswith((".yaml", ".yml"))  # of a ConfigMap
                yield from self.within(one, (*place, key), values=may_be, ours=ours or key == CHART, patch=inside)

    def _are_ours(self, value: Mapping[str, Any], place: Path_) -> bool:
        """Whether values that are not named as ours are: those of a file, or with parts that no other chart has."""
        policies = [_mapping(one.get("spec")) for one in as_list(value.get("policies")) if _made_by_chart(one)]
        typical = any(key in spec for spec in policies for key in _TYPICAL)
        return typical or (self._is_file and not place) or any(key in value for key in ("signalSources", "rebalances"))

    def _chart_values(self, value: Mapping[str, Any], place: Path_) -> Iterator[FoundObject]:
        """Values of the chart, and the objects that the chart makes of them."""
        if place and is_chart_values(value):
            yield FoundObject(self._name, self._document, value, place)
        for key, kind in _VALUES.items():
            for index, entry in enumerate(as_list(value.get(key))):
                if _made_by_chart(entry):
                    yield FoundObject(self._name, self._document, _of_values(entry, kind), (*place, key, index))

    def _unchecked(self, value: Mapping[str, Any], place: Path_, patch: bool) -> Iterator[Problem]:
        kind = _mapping(value.get("target")).get("kind")
        if patch and "target" in value and kind in (None, *KINDS) and not _OURS.search(str(value.get("patch"))):
            yield self._note(place, f"a patch of {kind or 'no kind'}, {RENDERED}")
        if as_list(value.get("valuesFrom")) and CHART in str(value.get("chart")):
            yield self._note((*place, "valuesFrom"), "values of a ConfigMap or Secret, check its `values.yaml`")
        names = [str(one.get("name")) for one in as_list(value.get("parameters")) if isinstance(one, Mapping)]
        if any(one.startswith(tuple(f"{key}[" for key in _VALUES)) for one in names):
            yield self._note((*place, "parameters"), "parameters, use valuesObject")

    def _text(self, text: str, place: Path_, values: bool, ours: bool, patch: bool) -> Iterator[FoundObject | Problem]:
        """What is in a text that is YAML of ours."""
        if not (_OURS.search(text) or (values and _OUR_VALUES.search(text))):
            return
        self._left -= len(text)
        if self._left < 0:
            yield self._note(place, f"more than {SIZE_LIMIT // 1024 // 1024} MiB of texts in one file")
            return
        try:
            for document in documents_of(text, self._document.origin(place)):
                search = _Search(self._name, document, values, self._left)
                yield from search.within(document.value, ours=ours, patch=patch)
        except YamlProblem as problem:
            yield unread(self._name, problem, self._document.position(place), sure=values or patch)

    def _note(self, place: Path_, what: str) -> Problem:
        return Problem(self._name, self._document.position(place), NOTE, "unchecked", f"not checked: {what}")


def _is_object(value: Mapping[str, Any]) -> bool:
    """Whether a part of a document is an object of its own, and not only a reference to one."""
    named = isinstance(value.get("apiVersion"), str) and isinstance(value.get("kind"), str)
    return named and ("metadata" in value or "spec" in value)


def _made_by_chart(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "spec" in entry and not set(entry) - _ENTRY


def _of_values(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The object that the chart makes of an entry of its values."""
    metadata = {key: entry[key] for key in sorted(_ENTRY - {"spec"}) if entry.get(key)}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": entry["spec"]}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list; empty otherwise."""
    return value if isinstance(value, list) else []

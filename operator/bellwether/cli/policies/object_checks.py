"""Judge one object as the API server would: schema, CEL rules by their twins in Python, metadata, unknown fields.

In: a document with positions. Out: problems. It also reports what only the operator rejects, such as a schedule that is
not cron.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from bellwether.api.v1alpha1.base_model import API_VERSION, GROUP, Object, path, problems
from bellwether.api.v1alpha1.broker_health import BrokerHealth
from bellwether.api.v1alpha1.leader_rebalance import LeaderRebalance
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.api.v1alpha1.signal_source import SignalSource
from bellwether.api.v1alpha1.validation_errors import model_at, nearest
from bellwether.cli.policies.yaml_documents import Document, Path_, Position

KINDS: Mapping[str, type[Object]] = {
    one.__name__: one for one in (LeadershipPolicy, BrokerHealth, SignalSource, LeaderRebalance)
}
ERROR, WARNING, NOTE = "error", "warning", "note"
"""Severities; a note says what is not checked, and fails nothing."""
RENDERED = "check the output of `kustomize build`"

_TOP_LEVEL = ("apiVersion", "kind", "metadata", "spec", "status")
_METADATA = (
    "annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers",
    "generateName", "generation", "labels", "managedFields", "name", "namespace", "ownerReferences",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
_SET_BY_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_DNS_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_NAME = re.compile("[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PLACEHOLDER = re.compile(r"\{\{|\$[{(][A-Za-z_]")
_ANNOTATIONS_LIMIT = 256 * 1024


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: ``rule`` names the check, ``field`` is the path inside the object."""

    file: str
    at: Position
    severity: str
    rule: str
    message: str
    object: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object of a file: a document, or a part of it, at ``prefix``; of a ``patch`` in it only what changes."""

    file: str
    document: Document
    value: Mapping[str, Any]
    prefix: Path_ = ()
    patch: bool = False

    @property
    def kind(self) -> str:
        """The kind; empty if there is none."""
        return str(self.value.get("kind") or "")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata; empty if there is none."""
        found = self.value.get("metadata")
        return found if isinstance(found, Mapping) else {}

    @property
    def name(self) -> str:
        """The name of the object; empty if there is none."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """The namespace; empty if the object names none."""
        return str(self.metadata.get("namespace") or "")

    @property
    def title(self) -> str:
        """Kind, namespace and name, for a person."""
        return f"{self.kind} {self.namespace + '/' if self.namespace else ''}{self.name or '(no name)'}"

    def problem(self, severity: str, rule: str, location: Path_, message: str) -> Problem:
        """A problem at a place of this object."""
        at = self.document.position((*self.prefix, *location))
        return Problem(self.file, at, severity, rule, message, self.title, path(location) if location else "")


def is_ours(value: Mapping[str, Any]) -> bool:
    """Whether the object is one of ours, or was probably meant to be one."""
    group = str(value.get("apiVersion") or "").partition("/")[0]
    return group == GROUP or value.get("kind") in KINDS


def check_object(found: FoundObject, *, whole: bool = True) -> tuple[Object | None, list[Problem]]:
    """Problems of one object, and the object if it is valid. Unless it has to be ``whole``, fields may be missing.

    What a patch or a template fills in later is not checked, and said.
    """
    parsed, reported = _checked(found, whole)
    places = list(_placeholders(found.value))
    if not places:
        return parsed, reported
    filled = [path(place) for place in places]
    text = f"not checked: {', '.join(filled[:3])}{', ...' if filled[3:] else ''}, which a template fills in"
    reported = [one for one in reported if not any(place.startswith(one.field) for place in filled)]
    return None, [*reported, found.problem(NOTE, "unchecked", places[0], text)]


def _placeholders(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    """Places of values that a template has not filled in: of Helm, Argo CD, Flux or OpenShift."""
    if isinstance(value, str):
        if _PLACEHOLDER.search(value):
            yield place
    elif isinstance(value, Mapping | list):
        for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _placeholders(one, (*place, key))


def _checked(found: FoundObject, whole: bool) -> tuple[Object | None, list[Problem]]:
    model = KINDS.get(found.kind)
    if model is None:
        text = f"kind {found.kind or 'is missing'}{nearest(found.kind, KINDS)}: {GROUP} has {', '.join(KINDS)}"
        return None, [found.problem(ERROR, "kind", ("kind",), text)]
    if not whole:
        found = replace(found, value=_without_directives(found.value))
    reported = [*_head(found), *(() if found.patch else _metadata(found))]
    body = {k: v for k, v in found.value.items() if k in _TOP_LEVEL and k != "status"}
    metadata = {k: v for k, v in found.metadata.items() if k in ("name", "namespace")}
    body["metadata"] = {k: v for k, v in metadata.items() if isinstance(v, str)}
    body["apiVersion"], body["kind"] = API_VERSION, found.kind
    parsed: Object | None = None
    try:
        parsed = model.model_validate(without_nulls(body, model))
    except ValidationError as error:
        there: dict[Path_, str] = {}
        for location, message in problems(error, model, whole=whole):
            there.setdefault(_existing(location, body), message)  # a value that may be of two types fails for both
        reported += (found.problem(ERROR, "schema", place, f"{path(place)}: {text}") for place, text in there.items())
        places = dict.fromkeys(_existing(location, body) for location, _ in problems(error, model))
        missing = [path(place) for place in places if place not in there]
        if missing and not found.patch:
            text = f"not checked: {', '.join(missing)}, which a patch may set: {RENDERED}"
            reported.append(found.problem(NOTE, "unchecked", (), text))
    return (None if any(one.severity == ERROR for one in reported) else parsed), reported


def _without_directives(value: Any) -> Any:
    """A patch without what it says to Kustomize, such as ``$patch: delete``."""
    if isinstance(value, Mapping):
        return {key: _without_directives(one) for key, one in value.items() if not str(key).startswith("$")}
    return [_without_directives(one) for one in value] if isinstance(value, list) else value


def _head(found: FoundObject) -> Iterator[Problem]:
    version = found.value.get("apiVersion")
    if version != API_VERSION:
        yield found.problem(ERROR, "kind", ("apiVersion",), f"apiVersion: must be {API_VERSION}")
    for key in found.value:
        if key not in _TOP_LEVEL:
            text = f"{key}: no such field{nearest(key, _TOP_LEVEL, otherwise=': remove it')}"
            yield found.problem(ERROR, "schema", (key,), text)
    if found.value.get("status") is not None:
        text = "status: is written by the operator and ignored here: remove it"
        yield found.problem(WARNING, "status", ("status",), text)


def _metadata(found: FoundObject) -> Iterator[Problem]:
    def invalid(location: Path_, message: str, severity: str = ERROR) -> Problem:
        return found.problem(
            severity, "metadata", ("metadata", *location), f"{path(('metadata', *location))}: {message}"
        )

    metadata = found.value.get("metadata")
    if not isinstance(metadata, Mapping):
        yield invalid((), "is required: set metadata.name")
        return
    for key, value in metadata.items():
        if key not in _METADATA:
            yield invalid((key,), f"no such field{nearest(key, _METADATA, otherwise=': remove it')}")
        elif key in _SET_BY_SERVER and value is not None:
            yield invalid((key,), "is set by the API server: remove it", WARNING)
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if name is None:
        yield invalid((), "metadata.name is required: set it")
    elif not isinstance(name, str) or not _SUBDOMAIN.fullmatch(name):
        yield invalid(("name",), "must consist of lower case letters, digits, '-' and '.', and begin and end with a"
                      " letter or a digit")  # fmt: skip
    if namespace is not None and not (isinstance(namespace, str) and _DNS_LABEL.fullmatch(namespace)):
        yield invalid(("namespace",), "must be the name of a namespace: up to 63 lower case letters, digits and '-'")
    for part in ("labels", "annotations"):
        entries = metadata.get(part)
        if entries is None:
            continue
        if not isinstance(entries, Mapping):
            yield invalid((part,), "must be an object of strings")
            continue
        for key, value in entries.items():
            if not _qualified(key):
                yield invalid((part, key), "must be a name with an optional prefix, such as example.com/team")
            if value is not None and not isinstance(value, str):
                yield invalid((part, key), "must be a string: put it in quotes")
            elif part == "labels" and value and not _LABEL_NAME.fullmatch(value):
                yield invalid((part, key), "must have at most 63 letters, digits, '-', '_' and '.', and begin and end"
                              " with a letter or a digit")  # fmt: skip
        if sum(len(k.encode()) + len(str(v).encode()) for k, v in entries.items()) > _ANNOTATIONS_LIMIT:
            yield invalid((part,), f"has more than {_ANNOTATIONS_LIMIT // 1024} KiB, the limit: shorten it")


def _qualified(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_LABEL_NAME.fullmatch(name)) and (
        not slash or (len(prefix) <= 253 and bool(_SUBDOMAIN.fullmatch(prefix.lower())))
    )


def without_nulls(value: Any, model: type[BaseModel], location: Path_ = ()) -> Any:
    """The object as the API server reads it: a known field that is null is unset, an unknown one is still unknown."""
    if isinstance(value, list):
        return [without_nulls(one, model, (*location, index)) for index, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    here = model_at(model, location)
    known = {field.alias or name for name, field in here.model_fields.items()} if here is not None else set()
    return {
        key: without_nulls(one, model, (*location, key))
        for key, one in value.items()
        if one is not None or key not in known
    }


def _existing(location: tuple[int | str, ...], body: Any) -> Path_:
    """The location without what pydantic adds: marks of invalid keys, and the branches of a value of two types."""
    place: list[int | str] = []
    here: Any = body
    for part in location:
        if part == "[key]" or (here is not None and not isinstance(here, Mapping | list)):
            break
        place.append(part)
        if isinstance(here, Mapping):
            here = here.get(part, {})
        elif isinstance(here, list):
            here = here[part] if isinstance(part, int) and part < len(here) else {}
    return tuple(place)

"""Read YAML files of Kubernetes objects with the position of every value, bounded in size, depth and aliases.

Values are those that the API server gets through kubectl: times remain strings, keys become strings, integral floats
become integers. In: a file. Out: documents, and problems with line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import yaml

SIZE_LIMIT = 4 * 1024 * 1024
"""Longest file in bytes. An object of the API is at most 1.5 MiB; a file may have many."""
VALUE_LIMIT = 200_000
"""Most values in a file, and most values of a document after its aliases are expanded."""
LONGEST_INTEGER = 64
DEPTH_LIMIT = 64

T = TypeVar("T")
Path_ = tuple[str | int, ...]
_TEMPLATE = "a Helm template and not YAML: check the output of `helm template`"
_PREFIX = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a text begins in its file; ``exact``: each line of the text is one of the file."""

    at: Position = Position(1, 1)
    exact: bool = True

    def of(self, at: Position) -> Position:
        """The place in the file of a place in the text."""
        return Position(self.at.line + at.line - 1, self.at.column + at.column - 1) if self.exact else self.at


FILE = Origin()


class YamlProblem(Exception):
    """Why a file, or a part of it, cannot be read; ``at`` is None for what concerns the whole file.

    ``template``: it is none yet, and will be when its template is filled in.
    """

    def __init__(self, message: str, at: Position | None = None, *, template: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.template = template


@dataclass
class Document:
    """One YAML document: its value, where each key and list entry begins, and keys that occur twice."""

    value: Any = None
    start: Position = Position(1, 1)
    positions: dict[Path_, Position] = field(default_factory=dict)
    duplicates: list[tuple[Path_, Position]] = field(default_factory=list)
    texts: dict[Path_, Origin] = field(default_factory=dict)
    """Where the literal texts (``|``) begin."""

    def moved(self, origin: Origin) -> Document:
        """The same with its places in the file from which the text was taken."""
        return Document(
            self.value,
            origin.of(self.start),
            {path: origin.of(at) for path, at in self.positions.items()},
            [(path, origin.of(at)) for path, at in self.duplicates],
            {path: Origin(origin.of(text.at)) for path, text in self.texts.items()} if origin.exact else {},
        )

    def origin(self, path: Path_) -> Origin:
        """Where a text of this document begins."""
        return self.texts.get(path) or Origin(self.position(path), exact=False)

    def position(self, path: Path_) -> Position:
        """Where this value is, or the nearest one around it."""
        while path:
            if path in self.positions:
                return self.positions[path]
            path = path[:-1]
        return self.start


def text_of(content: bytes) -> str:
    """The text of a file. Raises YamlProblem with the line if it is not UTF-8 or too long."""
    if len(content) > SIZE_LIMIT:
        limit = f"{SIZE_LIMIT // 1024 // 1024} MiB"
        raise YamlProblem(f"the file has more than {limit}, the limit: split it, or leave it out")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        at = Position(before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise YamlProblem(f"byte 0x{content[error.start]:02x} is not UTF-8: save the file as UTF-8", at) from None


def read_bounded(stream: BinaryIO) -> bytes:
    """The content, or one byte more than ``text_of`` accepts."""
    return stream.read(SIZE_LIMIT + 1)


def content_of(path: Path) -> bytes:
    """The content of a file, bounded. Raises YamlProblem if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return read_bounded(stream)
    except OSError as error:
        raise YamlProblem(f"cannot be read: {error.strerror}") from None


def documents_of(text: str, origin: Origin = FILE) -> Iterator[Document]:
    """Every document of a text that is not empty. Raises YamlProblem at the first that is not YAML."""
    try:
        for document in _documents(text):
            yield document if origin is FILE else document.moved(origin)
    except YamlProblem as problem:
        problem.at = problem.at and origin.of(problem.at)
        raise


def _documents(text: str) -> Iterator[Document]:
    try:
        _check_bounds(text)
        for node in yaml.compose_all(text, Loader=_Loader):
            document = Document(start=_position(node.start_mark))
            document.value = _Builder(document, text).build(node, ())
            if document.value is not None:
                yield document
    except yaml.YAMLError as error:
        raise _described(error, text) from None
    except YamlProblem as problem:
        if problem.at is not None and "{{" in _line(text, problem.at.line):
            raise YamlProblem(_TEMPLATE, problem.at, template=True) from None
        raise


def described(path: Path, read: Callable[[Any], T]) -> T:
    """What a YAML file with one document describes. Raises ValueError with the file's name."""
    try:
        documents = list(documents_of(text_of(content_of(path))))
        if len(documents) != 1:
            raise ValueError(f"has {len(documents)} documents: it must have one")
        if documents[0].duplicates:
            location, at = documents[0].duplicates[0]
            raise ValueError(f"line {at.line}: {location[-1]} is written twice: remove one")
        return read(documents[0].value)
    except YamlProblem as problem:
        line = f"line {problem.at.line}: " if problem.at is not None else ""
        raise ValueError(f"{path}: {line}{problem.message}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves plain scalars as Go's YAML 1.1 parser does: no times, no sexagesimal numbers, 1e3 is a number."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in entries if tag not in (f"{_PREFIX}timestamp", f"{_PREFIX}value")]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_Loader.add_implicit_resolver(f"{_PREFIX}float", re.compile("^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789"))


def _check_bounds(text: str) -> None:
    """Count values and depth before anything is built."""
    depth = count = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            count += 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_LIMIT:
            raise YamlProblem(f"is nested more than {DEPTH_LIMIT} levels deep: flatten it", _position(event.start_mark))
        if count > VALUE_LIMIT:
            raise YamlProblem(f"the file has more than {VALUE_LIMIT} values, the limit: split it, or leave it out")


class _Builder:
    """Builds the value of one document; ``build`` raises YamlProblem for what JSON cannot express."""

    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self._text = text
        self._left = VALUE_LIMIT
        self._open: set[int] = set()

    def build(self, node: yaml.Node, path: Path_) -> Any:
        self._left -= 1
        if self._left < 0:
            raise YamlProblem(
                f"the aliases of this document expand to more than {VALUE_LIMIT} values: write fewer of them",
                self._document.start,
            )
        if isinstance(node, yaml.ScalarNode):
            if node.style == "|":
                self._document.texts[path] = _origin(node, self._text)
            return _scalar(node)
        if id(node) in self._open or len(path) > DEPTH_LIMIT:
            raise YamlProblem(
                "an alias refers to a value that contains it: write the value out", _position(node.start_mark)
            )
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._entry(path, index, one) for index, one in enumerate(node.value)]
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
        finally:
            self._open.discard(id(node))
        raise YamlProblem(f"the tag {node.tag} is not supported: remove it", _position(node.start_mark))

    def _entry(self, path: Path_, index: int, node: yaml.Node) -> Any:
        self._document.positions.setdefault((*path, index), _position(node.start_mark))
        return self.build(node, (*path, index))

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = _position(key_node.start_mark)
            if key_node.tag == f"{_PREFIX}merge":
                merged = {**self._merged(value_node, path), **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlProblem("a list or an object is used as a key: write a string", at)
            key = key_node.value
            if key in own:
                self._document.duplicates.append(((*path, key), at))
            self._document.positions[(*path, key)] = at
            own[key] = self.build(value_node, (*path, key))
        return {**merged, **own}

    def _merged(self, node: yaml.Node, path: Path_) -> dict[str, Any]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise YamlProblem("<< must be followed by an alias of an object", _position(node.start_mark))
            found = {**self.build(part, path), **found}
        return found


def _origin(node: yaml.ScalarNode, source: str) -> Origin:
    """Where a literal text begins: the line after its mark, indented as its first line that is not empty."""
    skipped = len(node.value) - len(node.value.lstrip("\n"))
    first = node.start_mark.line + 2
    line = _line(source, first + skipped)
    indented = len(line) - len(line.lstrip(" ")) - (len(body := node.value.lstrip("\n")) - len(body.lstrip(" ")))
    return Origin(Position(first, max(indented, 0) + 1))


def _scalar(node: yaml.ScalarNode) -> Any:
    tag, text = node.tag.removeprefix(_PREFIX), node.value
    if tag in ("str", "!") or (tag in ("int", "float") and ":" in text):
        return text
    if tag == "int" and len(text) > LONGEST_INTEGER:
        problem = f"an integer of {len(text)} characters: at most {LONGEST_INTEGER} are read"
        raise YamlProblem(problem, _position(node.start_mark))
    if tag not in ("null", "bool", "int", "float"):
        raise YamlProblem(f"the tag {node.tag} is not supported: remove it", _position(node.start_mark))
    try:
        value = _CONSTRUCTOR.construct_object(node)
    except (KeyError, ValueError):
        raise YamlProblem(f"{text!r} is no {tag}: correct it", _position(node.start_mark)) from None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _described(error: yaml.YAMLError, text: str) -> YamlProblem:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        offset = getattr(error, "position", None)
        before = text[: offset if isinstance(offset, int) else 0]
        at = Position(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        return YamlProblem("a control character is not allowed in YAML: remove it", at)
    at = _position(mark)
    line = _line(text, at.line)
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return YamlProblem("the line is indented with a tab: use spaces", Position(at.line, line.index("\t") + 1))
    began = getattr(error, "context_mark", None)
    for number in range(_position(began).line if began is not None else at.line, at.line + 1):
        if (column := _line(text, number).find("{{")) >= 0:
            return YamlProblem(_TEMPLATE, Position(number, column + 1), template=True)
    problem = getattr(error, "problem", None) or "cannot be parsed"
    context = getattr(error, "context", None)
    return YamlProblem(f"not YAML: {problem}{f' ({context})' if context else ''}", at)


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if number <= len(lines) else ""

"""Stored documents: a frozen dataclass of the core as JSON and back, with limits on size and depth in front.

The dataclass is the description of the format: names, types, defaults. What a format writes in another way is said in a
few arguments of ``JsonCodec``. A document may have been written by others: it is read strictly, within a limit of
bytes, and what is wrong is named by its field. A ConfigMap of 1 MiB can unpack to 1 GiB, so no more than a limit is
ever unpacked.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import cached_property, partial
from operator import eq
from typing import Annotated, Any, Generic, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

from bellwether.core.stored_documents import MAX_INT64, InvalidDocument

T = TypeVar("T")

SIZE_LIMIT = 8 << 20
"""Bytes of one compressed part. A shard of an undo record with 25,000 of 200,000 partitions and every optional field
has 5 MB. The worst content takes about 400 MB of memory while it is read."""

NodeId = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""The id of a broker, or the number of a partition."""

_TIMES = {"ge": datetime(1970, 1, 1, tzinfo=UTC), "le": datetime(9000, 1, 1, tzinfo=UTC)}
_DATE_FIRST = core_schema.custom_error_schema(  # pydantic would also read a number of seconds
    core_schema.str_schema(pattern="^[0-9]{4}-", strict=True),
    custom_error_type="time",
    custom_error_message="expected a time such as 2026-01-31T08:00:00Z",
)
_ERRORS_SHOWN = 3
_MOST_ERRORS = 1000
_EXPECTED = re.compile("^Input should (be|have)")


def time_text(moment: datetime) -> str:
    """A time to the last digit, in UTC. Raises ValueError without a zone: it could not be compared with any other."""
    if moment.tzinfo is None:
        raise ValueError(f"a time without time zone cannot be recorded: {moment}")
    return moment.astimezone(UTC).isoformat()


class JsonCodec(Generic[T]):
    """Writes and reads one type: a dataclass, or a tuple or mapping of dataclasses.

    Names are in camelCase, but for those in ``names`` (by field). ``fields`` are the types of fields that are stored
    in another way than the class says, by ``name`` or ``Class.name``. A field named in ``omit`` is left out while it
    has its default. Integers are 0 to 2^63 - 1; times have a zone, lie between 1970 and 9000, and
    are written by ``time``. Unknown fields are an error unless ``unknown`` is "ignore".
    """

    def __init__(
        self,
        of: Any,
        *,
        names: Mapping[str, str] | None = None,
        fields: Mapping[str, Any] | None = None,
        omit: Collection[str] = (),
        time: Callable[[datetime], str] = time_text,
        unknown: Any = "forbid",
    ) -> None:
        self._of, self._names, self._unknown = of, names or {}, unknown
        self._rewriter = _Rewriter(fields or {}, omit, time)

    def to_json(self, value: T) -> Any:
        """The value as JSON values."""
        return self._serializer.to_python(value, mode="json", by_alias=True)

    def encode(self, value: T) -> bytes:
        """The value as compact JSON."""
        return dump(self.to_json(value))

    def from_json(self, value: Any) -> T:
        """The inverse of ``to_json``. Raises InvalidDocument, which names the field."""
        return self._read(json.dumps(value).encode())

    def decode(self, data: bytes | str, limit: int = SIZE_LIMIT) -> T:
        """The inverse of ``encode``. Raises InvalidDocument, also if there are more than ``limit`` bytes."""
        text = data.encode() if isinstance(data, str) else data
        if len(text) > limit:
            raise InvalidDocument(f"it has {len(text)} bytes; at most {limit} are read")
        return self._read(text)

    def unpack(self, data: bytes, limit: int = SIZE_LIMIT) -> T:
        """The inverse of ``encode`` and zlib's compression. InvalidDocument as from ``decode``."""
        return self._read(unpack(data, limit))

    @cached_property
    def _schema(self) -> Any:
        # Built when it is first needed: a command imports more formats than it reads.
        config = ConfigDict(
            strict=True,
            extra=self._unknown,
            allow_inf_nan=False,
            alias_generator=lambda name: self._names.get(name) or to_camel(name),
        )
        # The configuration of a list reaches the dataclass in it; a dataclass itself takes none.
        built: Any = TypeAdapter(list[self._of], config=config).core_schema  # type: ignore[name-defined]
        alone = built["schema"]["items_schema"] if built["type"] == "definitions" else built["items_schema"]
        return self._rewriter.rewrite({**built, "schema": alone} if "schema" in built else alone)

    @cached_property
    def _validator(self) -> SchemaValidator:
        return SchemaValidator(self._schema, core_schema.CoreConfig(strict=True, allow_inf_nan=False))

    @cached_property
    def _serializer(self) -> SchemaSerializer:
        return SchemaSerializer(self._schema)

    def _read(self, text: bytes) -> T:
        try:
            found: T = self._validator.validate_json(text)
        except ValidationError as error:
            raise InvalidDocument(explain(error)) from None
        return found


def dump(value: object) -> bytes:
    """JSON values as compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def unpack(data: bytes, limit: int = SIZE_LIMIT) -> bytes:
    """Decompressed bytes. InvalidDocument if they are damaged, incomplete or more than ``limit``."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise InvalidDocument(f"it cannot be unpacked: {error}") from None
    if len(text) > limit:
        raise InvalidDocument(f"it unpacks to more than {limit} bytes")
    if not stream.eof:
        raise InvalidDocument("it was cut off")
    return text


def parse(text: bytes | str, limit: int = SIZE_LIMIT) -> Any:
    """The JSON values of a document that has no codec. InvalidDocument if it is too large or nested too deeply."""
    if len(text) > limit:
        raise InvalidDocument(f"it has {len(text)} bytes; at most {limit} are read")
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise InvalidDocument("it is nested too deeply") from None
    except ValueError as error:
        raise InvalidDocument(f"it is not JSON: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
        raise ValueError(f"{name} is there twice")
    return found


def explain(error: ValidationError) -> str:
    """What is wrong, by field, in one line. Millions of errors are counted: each would take a kilobyte as an object."""
    if error.error_count() > _MOST_ERRORS:
        return f"it has {error.error_count()} unknown or invalid fields"
    found = error.errors(include_url=False)
    texts = []
    for one in found[:_ERRORS_SHOWN]:
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in one["loc"]).lstrip(".")
        texts.append(f"{path or 'the document'} {_problem(one)}")
    more = len(found) - len(texts)
    return "; ".join([*texts, f"and {more} more"] if more else texts)


def _problem(one: Any) -> str:
    if one["type"] == "missing":
        return "is missing"
    if one["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return "is unknown: written by another version, or misspelled"
    if one["type"] == "json_invalid":
        deep = "recursion" in one["msg"]
        return "is nested too deeply" if deep else f"is damaged: {one['msg']}"
    value = one["input"]
    kind = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)[:40]
    return f"is {kind}: {_EXPECTED.sub('expected', one['msg']).removeprefix('Value error, ')}"


class _Rewriter:
    """Applies the options of a codec to the schema that pydantic builds for the dataclass."""

    def __init__(self, fields: Mapping[str, Any], omit: Collection[str], time: Callable[[datetime], str]) -> None:
        self._fields, self._omit = fields, omit
        self._time = core_schema.plain_serializer_function_ser_schema(time)

    def rewrite(self, schema: Any, owner: str = "") -> Any:
        """The schema with the options applied, at every depth; ``owner`` is the class that has the fields."""
        if isinstance(schema, list):
            return [self.rewrite(one, owner) for one in schema]
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if kind == "datetime":
            time = {**schema, "tz_constraint": "aware", **_TIMES, "strict": False}
            return core_schema.chain_schema([_DATE_FIRST, time], serialization=self._time)
        if kind == "int":
            return {"ge": 0, "le": MAX_INT64, **schema}
        if kind in ("list", "tuple"):  # a hostile list has millions of wrong items: the first is enough
            schema = {**schema, "fail_fast": True}
        if kind in ("dataclass-field", "named-tuple-field"):
            schema = self._field(schema, owner)
        elif kind in ("dataclass", "named-tuple"):
            owner = schema["cls"].__name__
        return {key: self.rewrite(value, owner) for key, value in schema.items()}

    def _field(self, field: dict[str, Any], owner: str) -> dict[str, Any]:
        inner, name = field["schema"], field["name"]
        stored: Any = self._fields.get(f"{owner}.{name}", self._fields.get(name))
        if stored is not None:
            schema = TypeAdapter(stored).core_schema
            field = {**field, "schema": {**inner, "schema": schema} if inner["type"] == "default" else schema}
        if name in self._omit and inner["type"] == "default":
            default = inner["default"] if "default" in inner else inner["default_factory"]()
            field["serialization_exclude_if"] = partial(eq, default)
        return field

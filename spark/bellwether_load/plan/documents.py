"""Problem and plan as JSON, made from their dataclasses.

In: the header of a problem, or a plan. Out: JSON values, the same value read from JSON, or InvalidDocument, which names
the field. Format 2 is the only one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PlainSerializer

from bellwether.adapters.json_codec import JsonCodec, NodeId, parse
from bellwether.adapters.process_limits import one_large
from bellwether.core.stored_documents import MAX_INT64, InvalidDocument, format_timestamp
from bellwether_load.plan.forecast import WEEK
from bellwether_load.plan.problem import LARGEST_CAPACITY, ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan

T = TypeVar("T")

FORMAT = 2

_Text = Annotated[str, Field(min_length=1)]
_Sorted = PlainSerializer(lambda values: dict(sorted(values.items())))
_ByBroker = Annotated[dict[int, Annotated[int, Field(le=MAX_INT64)]], _Sorted]
_FIELDS: Mapping[str, Any] = {
    "cluster_id": _Text,
    "policy": _Text,
    "digest": _Text,
    "problem_digest": _Text,
    "id": NodeId,
    **dict.fromkeys(("capacity", "request_capacity"), Annotated[int, Field(ge=1, le=LARGEST_CAPACITY)]),
    "request_bytes": Annotated[int, Field(ge=0, le=LARGEST_CAPACITY)],
    "max_moves": NonNegativeInt | None,
    "weights": _ByBroker,
    **dict.fromkeys(
        ("HourlyProof.weights", "request_weights"), Annotated[dict[Annotated[int, Field(lt=WEEK)], _ByBroker], _Sorted]
    ),
    "lost_weights": Annotated[dict[str, _ByBroker], _Sorted],
    "normal_weights": _ByBroker,
    "hours": Annotated[int, Field(ge=1, le=WEEK)],
    "Evidence.hours": Annotated[int, Field(ge=0, le=WEEK)],
    "share": Annotated[float, Field(ge=0, le=1)],
    "hour": Annotated[int, Field(ge=0, lt=WEEK)],
    **dict.fromkeys(("limit", "load", "bound"), NonNegativeFloat),
    **dict.fromkeys(("BrokerLoad.before", "BrokerLoad.after"), NonNegativeFloat),
    "threshold": NonNegativeFloat | None,
    "MoveTotals.load": NonNegativeInt,
}


class Document(Generic[T]):
    """JSON of one type, with its format in front. ``check`` raises InvalidDocument for what no field shows alone."""

    def __init__(self, of: type[T], check: Callable[[T], None] = lambda _: None) -> None:
        self._codec = JsonCodec[T](of, fields=_FIELDS, time=format_timestamp)
        self._check = check

    def to_json(self, value: T) -> dict[str, Any]:
        """The value as JSON values."""
        return {"format": FORMAT, **self._codec.to_json(value)}

    def from_json(self, document: object) -> T:
        """The inverse of ``to_json``. Raises InvalidDocument, which names the field."""
        values = document if isinstance(document, dict) else {}
        version = values.get("format")
        if version != FORMAT or isinstance(version, bool):
            remedy = "upgrade Bellwether, or request a new plan"
            raise InvalidDocument(f"format is {version!r}: this version reads format {FORMAT}: {remedy}")
        value = self._codec.from_json({name: one for name, one in values.items() if name != "format"})
        self._check(value)
        return value

    def read(self, text: bytes) -> T:
        """The value from JSON text. Raises InvalidDocument."""
        with one_large(len(text)):
            return self.from_json(parse(text))


def _distinct(terms: ProblemHeader) -> None:
    seen: set[int] = set()
    for broker in terms.brokers:
        if broker.id in seen:
            raise InvalidDocument(f"brokers: {broker.id} is listed twice")
        seen.add(broker.id)


PROBLEM = Document(ProblemHeader, _distinct)
"""``problem.json``."""

PLAN = Document(RebalancePlan)
"""``plan.json``."""


def header_line(terms: ProblemHeader) -> str:
    """``problem.json`` in one line that depends on its content alone, as it is hashed."""
    return json.dumps(PROBLEM.to_json(terms), sort_keys=True, separators=(",", ":"))

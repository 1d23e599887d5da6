"""Parse ``problem.json`` and ``plan.json`` strictly, without trusting what they claim.

In: parsed JSON. Out: values, or ``UnreadableDocument``, which names the field. A JSON object must have the fields of a
class, in camelCase, by their types. Impossible figures are read: refusing them is the verifier's work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NewType, get_args, get_origin, get_type_hints

FORMAT = 1
STATISTICS = {"Median": "median", "P95": "p95", "Peak": "peak"}
LARGEST = 2**63 - 1


class UnreadableDocument(ValueError):
    """A file that cannot be understood: names the field, and what was wanted there."""


Capacity = NewType("Capacity", int)
"""1 or more."""


class Broker(NamedTuple):
    """A broker of the problem."""

    id: int
    rack: str | None
    capacity: Capacity
    open: bool


@dataclass(frozen=True)
class Problem:
    """``problem.json``: the weights in percent, racks in order of preference, the cap on moves, and the brokers."""

    document: dict[str, Any]
    statistic: str
    produce: int
    replication: int
    consume: int
    follow: int
    racks: tuple[str, ...]
    max_moves: int | None
    brokers: tuple[Broker, ...]


class Figures(NamedTuple):
    """What a plan says of its balance."""

    max: float
    mean: float
    spread: float


class Level(NamedTuple):
    """What a plan claims of the brokers that are not settled; ``weights`` are as in the file."""

    settled: list[Any]
    limit: float
    weights: dict[str, Any]
    move_weight: int
    threshold: float | None
    load: float
    bound: float


class OtherCap(NamedTuple):
    """What a plan claims of plans with another cap on moves; ``weights`` are as in the file."""

    max_moves: int | None
    weights: dict[str, Any]
    move_weight: int
    bound: float
    load: float
    partitions: int


class StatisticPlan(NamedTuple):
    """What a plan claims of the one that balances the statistic alone: its busiest hour and changed leaders."""

    load: float
    partitions: int


class HourlyClaim(NamedTuple):
    """What a plan claims of all plans by hour; ``weights`` are as in the file. ``partition``: a row of the problem."""

    weights: dict[str, Any]
    move_weight: int
    partition: int | None
    bound: float
    statistic_plan: StatisticPlan | None


class BrokerHour(NamedTuple):
    """What a plan says of the busiest broker and its busiest hour of the week."""

    broker: int
    hour: int
    load: float


class Forecast(NamedTuple):
    """What a plan says of the hours of the week: how many are known, and the busiest before and after."""

    hours: int
    before: BrokerHour
    after: BrokerHour


class Evidence(NamedTuple):
    """What a plan says it rests on: first and last sample, known hours of the week, share of the bytes."""

    since: Any
    until: Any
    hours: int
    share: float


class Certificate(NamedTuple):
    """What a plan claims of all plans; ``weights`` are as in the file, with their names."""

    weights: dict[str, Any]
    move_weight: int
    threshold: float | None
    bound: float
    gap: float | None
    largest_item: float
    levels: tuple[Level, ...]
    other_caps: tuple[OtherCap, ...]
    hourly: HourlyClaim | None


class Moved(NamedTuple):
    """Sums over the moves of a plan."""

    partitions: int
    reordered: int
    load: int
    lower_bound: int


class PlanBroker(NamedTuple):
    """A broker, and its load before and after."""

    id: int
    rack: str | None
    capacity: Capacity
    open: bool
    before: float
    after: float


class Plan(NamedTuple):
    """``plan.json``: what is claimed."""

    format: Any
    cluster_id: Any
    policy: Any
    made_at: Any
    objective: Any
    problem_digest: str
    digest: str
    before: Figures
    after: Figures
    certificate: Certificate
    moved: Moved
    partitions: int
    without_load: int
    without_consumption: int
    held: int
    brokers: tuple[PlanBroker, ...]
    evidence: Evidence
    forecast: Forecast | None


class _Objective(NamedTuple):
    statistic: str
    produce_weight: int
    replication_weight: int
    consume_weight: int
    follow_weight: int
    preferred_racks: tuple[str, ...]
    max_moves: int | None


class _ProblemBroker(NamedTuple):
    id: int
    rack: str | None
    capacity: Capacity
    open: bool
    why: Any


class _ProblemFile(NamedTuple):
    format: Any
    cluster_id: str
    policy: str
    made_at: str
    objective: _Objective
    brokers: tuple[_ProblemBroker, ...]


def problem_of(document: Any) -> Problem:
    """The problem that a document poses."""
    file: _ProblemFile = _file(_ProblemFile, document, "problem.json")
    asked = file.objective
    if asked.statistic not in STATISTICS:
        raise UnreadableDocument(f"objective.statistic is {asked.statistic!r}: expected one of {', '.join(STATISTICS)}")
    return Problem(document, *asked, tuple(Broker(*broker[:4]) for broker in file.brokers))


def plan_of(document: Any) -> Plan:
    """What a document claims of a plan."""
    plan: Plan = _file(Plan, document, "plan.json")
    return plan


def _file(kind: Any, document: Any, name: str) -> Any:
    if isinstance(document, dict):  # what another version adds is not a misspelling
        version = document.get("format")
        if version != FORMAT or isinstance(version, bool):
            raise UnreadableDocument(f"format is {version!r}: this version reads format {FORMAT}: upgrade Bellwether")
    return _record(kind, document, name, "")


def _record(kind: Any, value: Any, where: str, inside: str) -> Any:
    """An object with the fields of a class; ``where`` names it, and ``inside`` comes before the names of its fields."""
    if not isinstance(value, dict):
        raise UnreadableDocument(f"{where}: expected a JSON object")
    types = {_camel(name): type_ for name, type_ in get_type_hints(kind).items()}
    if missing := types.keys() - value.keys():
        raise UnreadableDocument(f"{where}: missing: {', '.join(sorted(missing))}")
    if more := value.keys() - types.keys():
        raise UnreadableDocument(f"{where}: unknown: {', '.join(sorted(more))}")
    return kind(*(_value(type_, value[name], f"{inside}{name}") for name, type_ in types.items()))


def _value(type_: Any, value: Any, where: str) -> Any:
    if (read := _READERS.get(type_)) is not None:
        return read(value, where)
    if type(None) in get_args(type_):
        return None if value is None else _value(get_args(type_)[0], value, where)
    if get_origin(type_) is tuple:
        return tuple(_value(get_args(type_)[0], one, f"{where}[{i}]") for i, one in enumerate(_list(value, where)))
    return _record(type_, value, where, f"{where}.")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise UnreadableDocument(f"{where}: expected text")
    return value


def _text_or_none(value: Any, where: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise UnreadableDocument(f"{where}: expected text or null")
    return value


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise UnreadableDocument(f"{where}: expected true or false")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableDocument(f"{where}: expected a list")
    return value


def _weights(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableDocument(f"{where}: expected an object of broker ids and whole numbers")
    return value


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise UnreadableDocument(f"{where} is {_short(value)}: expected a whole number, 0 or more")
    return value


def _capacity(value: Any, where: str) -> int:
    if _whole(value, where) < 1:
        raise UnreadableDocument(f"{where} is 0: expected 1 or more")
    return int(value)


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnreadableDocument(f"{where} is {_short(value)}: expected a number")
    return float(value)


_READERS: Mapping[Any, Callable[[Any, str], Any]] = {
    Any: lambda value, _: value,
    Capacity: _capacity,
    bool: _flag,
    dict[str, Any]: _weights,
    float: _number,
    int: _whole,
    list[Any]: _list,
    str: _text,
    str | None: _text_or_none,
}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."

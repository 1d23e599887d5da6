"""Parse ``problem.json`` and ``plan.json`` strictly, without trusting what they claim.

In: parsed JSON. Out: values, or ``UnreadableDocument``, which names the field. Impossible figures are read: refusing
them is the verifier's work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

FORMAT = 1
STATISTICS = {"Median": "median", "P95": "p95", "Peak": "peak"}
LARGEST = 2**63 - 1


class UnreadableDocument(ValueError):
    """A file that cannot be understood: names the field, and what was wanted there."""


class Broker(NamedTuple):
    """A broker of the problem."""

    id: int
    rack: str | None
    capacity: int
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


@dataclass(frozen=True)
class Plan:
    """``plan.json``: what is claimed. ``weights`` are as in the file, with their names."""

    document: dict[str, Any]
    problem_digest: str
    digest: str
    before: Figures
    after: Figures
    weights: dict[str, Any]
    move_weight: int
    threshold: float | None
    bound: float
    gap: float | None
    largest_item: float
    levels: tuple[Level, ...]
    other_caps: tuple[OtherCap, ...]
    hourly: HourlyClaim | None
    moved: dict[str, int]
    counts: dict[str, int]
    brokers: tuple[tuple[Broker, float, float], ...]
    forecast: Forecast | None


def problem_of(document: Any) -> Problem:
    """The problem that a document poses."""
    names = {"format", "clusterId", "policy", "madeAt", "objective", "brokers"}
    _object(document, "problem.json", names)
    _format(document)
    for name in ("clusterId", "policy", "madeAt"):
        _text(document, name)
    weights = ("produceWeight", "replicationWeight", "consumeWeight", "followWeight")
    objective = _object(document["objective"], "objective", {"statistic", *weights, "preferredRacks", "maxMoves"})
    if objective["statistic"] not in STATISTICS:
        raise UnreadableDocument(
            f"objective.statistic is {objective['statistic']!r}: expected one of {', '.join(STATISTICS)}"
        )
    racks = objective["preferredRacks"]
    if not isinstance(racks, list) or not all(isinstance(rack, str) for rack in racks):
        raise UnreadableDocument("objective.preferredRacks: expected a list of names")
    most = objective["maxMoves"]
    produce, replication, consume, follow = (_whole(objective, name, "objective.") for name in weights)
    return Problem(
        document,
        objective["statistic"],
        produce,
        replication,
        consume,
        follow,
        tuple(racks),
        None if most is None else _whole(objective, "maxMoves", "objective."),
        tuple(_broker(b, f"brokers[{i}]", {"why"}) for i, b in enumerate(_list(document, "brokers"))),
    )


def plan_of(document: Any) -> Plan:
    """What a document claims of a plan."""
    shared = {"format", "clusterId", "policy", "madeAt", "objective"}
    sums = ("partitions", "withoutLoad", "withoutConsumption", "held")
    names = {*shared, "problemDigest", "digest", "before", "after", "certificate", "moved", "brokers"}
    names |= {*sums, "forecast"}
    _object(document, "plan.json", names)
    _format(document)
    certificate = _object(
        document["certificate"],
        "certificate",
        {"weights", "moveWeight", "threshold", "bound", "gap", "largestItem", "levels", "otherCaps", "hourly"},
    )
    parts = ("partitions", "reordered", "load", "lowerBound")
    moved = _object(document["moved"], "moved", set(parts))
    brokers = []
    for i, raw in enumerate(_list(document, "brokers")):
        broker = _broker(raw, f"brokers[{i}]", {"before", "after"})
        where = f"brokers[{i}]."
        brokers.append((broker, _number(raw, "before", where), _number(raw, "after", where)))
    return Plan(
        document,
        _text(document, "problemDigest"),
        _text(document, "digest"),
        _figures(document, "before"),
        _figures(document, "after"),
        _weights(certificate, "certificate."),
        _whole(certificate, "moveWeight", "certificate."),
        _number_or_none(certificate, "threshold", "certificate."),
        _number(certificate, "bound", "certificate."),
        _number_or_none(certificate, "gap", "certificate."),
        _number(certificate, "largestItem", "certificate."),
        tuple(_level(raw, f"certificate.levels[{i}]") for i, raw in enumerate(_list(certificate, "levels"))),
        tuple(_other_cap(raw, f"certificate.otherCaps[{i}]") for i, raw in enumerate(_list(certificate, "otherCaps"))),
        None if certificate["hourly"] is None else _hourly(certificate["hourly"]),
        {name: _whole(moved, name, "moved.") for name in parts},
        {name: _whole(document, name) for name in sums},
        tuple(brokers),
        None if document["forecast"] is None else _forecast(document["forecast"]),
    )


def _forecast(raw: Any) -> Forecast:
    _object(raw, "forecast", {"hours", "before", "after"})
    found = []
    for when in ("before", "after"):
        inner = _object(raw[when], f"forecast.{when}", {"broker", "hour", "load"})
        where = f"forecast.{when}."
        found.append(
            BrokerHour(_whole(inner, "broker", where), _whole(inner, "hour", where), _number(inner, "load", where))
        )
    return Forecast(_whole(raw, "hours", "forecast."), *found)


def _level(raw: Any, where: str) -> Level:
    _object(raw, where, {"settled", "limit", "weights", "moveWeight", "threshold", "load", "bound"})
    inside = f"{where}."
    return Level(
        _list(raw, "settled"),
        _number(raw, "limit", inside),
        _weights(raw, inside),
        _whole(raw, "moveWeight", inside),
        _number_or_none(raw, "threshold", inside),
        _number(raw, "load", inside),
        _number(raw, "bound", inside),
    )


def _other_cap(raw: Any, where: str) -> OtherCap:
    _object(raw, where, {"maxMoves", "weights", "moveWeight", "bound", "load", "partitions"})
    inside = f"{where}."
    return OtherCap(
        None if raw["maxMoves"] is None else _whole(raw, "maxMoves", inside),
        _weights(raw, inside),
        _whole(raw, "moveWeight", inside),
        _number(raw, "bound", inside),
        _number(raw, "load", inside),
        _whole(raw, "partitions", inside),
    )


def _hourly(raw: Any) -> HourlyClaim:
    inside = "certificate.hourly."
    _object(raw, "certificate.hourly", {"weights", "moveWeight", "partition", "bound", "statisticPlan"})
    other, where = raw["statisticPlan"], f"{inside}statisticPlan"
    if other is not None:
        _object(other, where, {"load", "partitions"})
    return HourlyClaim(
        _weights(raw, inside),
        _whole(raw, "moveWeight", inside),
        None if raw["partition"] is None else _whole(raw, "partition", inside),
        _number(raw, "bound", inside),
        None
        if other is None
        else StatisticPlan(_number(other, "load", f"{where}."), _whole(other, "partitions", f"{where}.")),
    )


def _weights(document: dict[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(document["weights"], dict):
        raise UnreadableDocument(f"{where}weights: expected an object of broker ids and whole numbers")
    found: dict[str, Any] = document["weights"]
    return found


def _object(value: Any, where: str, names: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableDocument(f"{where}: expected a JSON object")
    if "format" in names:
        _format(value)  # what another version adds is not a misspelling
    if missing := names - value.keys():
        raise UnreadableDocument(f"{where}: missing: {', '.join(sorted(missing))}")
    if more := value.keys() - names:
        raise UnreadableDocument(f"{where}: unknown: {', '.join(sorted(more))}")
    return value


def _format(document: dict[str, Any]) -> None:
    version = document.get("format")
    if version != FORMAT or isinstance(version, bool):
        raise UnreadableDocument(f"format is {version!r}: this version reads format {FORMAT} only")


def _broker(raw: Any, where: str, more: set[str]) -> Broker:
    _object(raw, where, {"id", "rack", "capacity", "open", *more})
    if raw["rack"] is not None and not isinstance(raw["rack"], str):
        raise UnreadableDocument(f"{where}.rack: expected text or null")
    if not isinstance(raw["open"], bool):
        raise UnreadableDocument(f"{where}.open: expected true or false")
    capacity = _whole(raw, "capacity", f"{where}.")
    if capacity < 1:
        raise UnreadableDocument(f"{where}.capacity is 0: expected 1 or more")
    return Broker(_whole(raw, "id", f"{where}."), raw["rack"], capacity, raw["open"])


def _figures(document: dict[str, Any], name: str) -> Figures:
    raw = _object(document[name], name, {"max", "mean", "spread"})
    return Figures(*(_number(raw, part, f"{name}.") for part in ("max", "mean", "spread")))


def _text(document: dict[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str) or not value:
        raise UnreadableDocument(f"{name}: expected text")
    return value


def _list(document: dict[str, Any], name: str) -> list[Any]:
    value = document[name]
    if not isinstance(value, list):
        raise UnreadableDocument(f"{name}: expected a list")
    return value


def _whole(document: dict[str, Any], name: str, where: str = "") -> int:
    value = document[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST:
        raise UnreadableDocument(f"{where}{name} is {_short(value)}: expected a whole number, 0 or more")
    return value


def _number(document: dict[str, Any], name: str, where: str) -> float:
    value = document[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnreadableDocument(f"{where}{name} is {_short(value)}: expected a number")
    return float(value)


def _number_or_none(document: dict[str, Any], name: str, where: str) -> float | None:
    return None if document[name] is None else _number(document, name, where)


def _short(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else f"{said[:57]}..."

"""Parse a Prometheus response to an instant query, which is not trusted.

In: a body whose length is bounded already, and the label that names the broker. Out: a ``QueryResponse``, or Terminal
with what is wrong. Of each series the labels are kept that may name its broker. Called by ``query_client``. A series
that cannot be read keeps its place without a value: dropping it would make the remaining one of two look like the only
one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bellwether.adapters.process_limits import one_large
from bellwether.core.model.broker_identity import IDENTITY_LABELS
from bellwether.foreign_text import quoted
from bellwether.ports.errors import Terminal, Transient

SERIES_LIMIT = 10_000
_LABEL_LIMIT = 512
_WARNINGS_LIMIT = 3


@dataclass(frozen=True, slots=True)
class QueryResponse:
    """Each series' labels that may name its broker, and its value: None without a number.

    A value may be NaN or infinite, as Prometheus has such. ``warnings`` are the server's, truncated.
    """

    samples: tuple[tuple[Mapping[str, str], float | None], ...] = ()
    warnings: tuple[str, ...] = ()


def read_answer(body: bytes, label: str, most: int = SERIES_LIMIT) -> QueryResponse:
    """Read the body of a query's success, of ``most`` series. Raises Terminal."""
    with one_large(len(body)):
        return _read(body, label, most)


def _read(body: bytes, label: str, most: int) -> QueryResponse:
    said = json_object(body)
    if said.get("status") != "success":
        raise Terminal(f"refuses the query{_kind(said)}")
    data = said.get("data")
    kind, result = (data.get("resultType"), data.get("result")) if isinstance(data, dict) else (None, None)
    if kind != "vector" or not isinstance(result, list):
        raise Terminal(
            f"the query returns {_article(kind)}, not a vector: it must return one current value for each series"
        )
    if len(result) > most:
        raise Terminal(f"the query returns more than {most} series: aggregate it by ({label})")
    warnings = said.get("warnings")
    texts = warnings[:_WARNINGS_LIMIT] if isinstance(warnings, list) else []
    kept = (label, *IDENTITY_LABELS)
    return QueryResponse(tuple(_sample(one, kept) for one in result), tuple(quoted(text) for text in texts))


def error_of(status: int, body: bytes, path: str = "query") -> Transient | Terminal:
    """The error for an answer other than a success, from that path below ``/api/v1/``."""
    try:
        why = _kind(json_object(body))
    except Terminal:
        why = ""
    if status in (401, 403):
        return Terminal(
            f"refuses the credentials ({status}): check bearerTokenSecretName, basicAuthSecretName or"
            " workloadIdentity, and the tenant in headers"
        )
    if status == 404:
        return Terminal(f"has no /api/v1/{path} (404): check url, and its path")
    if status in (400, 422):
        return Terminal(f"refuses the query ({status}{why}): try it in the server's own page")
    if 300 <= status < 400:
        return Terminal(f"redirects elsewhere ({status}), which is not followed: give the final address as url")
    if status == 429 or status >= 500:
        return Transient(f"cannot answer now ({status}{why})")
    return Terminal(f"answers with status {status}{why}: check url")


_ERROR_TYPES = {"bad_data", "canceled", "execution", "internal", "not_found", "timeout", "unavailable"}


def _kind(said: Mapping[str, Any]) -> str:
    """The type of an error, where it is one of Prometheus' own. Its text is left out: status, which the author of a
    policy reads, repeats nothing that another server answers.
    """
    kind = said.get("errorType")
    return f", {kind}" if kind in _ERROR_TYPES else ""


def json_object(body: bytes) -> dict[str, Any]:
    """The body as an object. Raises Terminal."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise Terminal("answers with something that is not Prometheus' JSON: check url") from None
    return said


def _sample(one: Any, kept: Iterable[str]) -> tuple[Mapping[str, str], float | None]:
    one = one if isinstance(one, dict) else {}
    labels, point = one.get("metric"), one.get("value")
    labels = labels if isinstance(labels, dict) else {}
    named = {name: value[:_LABEL_LIMIT] for name in kept if isinstance(value := labels.get(name), str) and value}
    text = point[1] if isinstance(point, list) and len(point) == 2 else None
    return named, _number(text)


def _number(text: Any) -> float | None:
    """A sample's value; the API writes numbers as strings."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return math.nan if math.isnan(value) else value


def _article(kind: Any) -> str:
    return f"a {kind}" if kind in ("matrix", "scalar", "string", "streams") else "something else"


LOOKBACK = timedelta(minutes=5)
"""How old a sample may be that an instant query returns; older evaluations leave no series of an alert that fires."""


def unevaluated(body: bytes, alerts: Collection[str], now: datetime) -> str:
    """Which of the alerts has no rule that is evaluated, and why; empty if each has. Raises Terminal."""
    said = json_object(body)
    if said.get("status") != "success":
        raise Terminal(f"does not show its alert rules{_kind(said)}")
    rules = list(_rules(said.get("data")))
    for name in sorted(alerts):
        problems = [_problem(name, rule, now) for rule in rules if rule.get("name") == name]
        if not problems:
            return f"has no rule of alert {name}: name an alert of this Prometheus in selector"
        if any(problems):
            return max(problems)
    return ""


def _rules(data: Any) -> Iterator[dict[str, Any]]:
    groups = data.get("groups") if isinstance(data, dict) else None
    for group in groups if isinstance(groups, list) else []:
        rules = group.get("rules") if isinstance(group, dict) else None
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, dict) and rule.get("type") == "alerting":
                yield rule


def _problem(name: str, rule: dict[str, Any], now: datetime) -> str:
    """Why the rule is not evaluated; empty if it is."""
    if rule.get("health") == "err":
        return f"cannot evaluate the rule of alert {name}: see its error there, at /rules"
    try:
        at = datetime.fromisoformat(str(rule.get("lastEvaluation")))
        evaluated = rule.get("health") == "ok" and now - at <= LOOKBACK
    except (ValueError, TypeError):  # no time, or one without a zone
        evaluated = False
    if not evaluated:
        return f"has not evaluated the rule of alert {name} in the last 5 minutes: check its rule groups"
    return ""

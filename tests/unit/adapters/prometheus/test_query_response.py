"""Untrusted bodies: each becomes samples or one sentence, whatever it holds."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.prometheus import query_response
from bellwether.adapters.prometheus.query_response import SERIES_LIMIT, error_of, read_answer, unevaluated
from bellwether.ports.errors import Terminal, Transient
from testkit.messages import assert_wording
from testkit.simulation.fault_injection import most_at_once


def body(result: Any, kind: str = "vector", **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}, **more}).encode()


def series(broker: Any, value: Any) -> dict[str, Any]:
    return {"metric": {"broker": broker, "job": "x"}, "value": [1767225600.123, value]}


def test_each_series_gives_labels_that_may_name_its_broker() -> None:
    found = read_answer(body([series("1", "0.25"), series("main-kafka-2", "1e3")]), "broker")
    assert found.samples == (({"broker": "1"}, 0.25), ({"broker": "main-kafka-2"}, 1000.0))
    named = {"node": "7", "pod": "kafka-1", "namespace": "kafka", "instance": "10.0.0.1:9404"}
    answer = body([{"metric": {**named, "job": "kafka", "topic": "t"}, "value": [0, "1"]}])
    assert read_answer(answer, "node").samples == ((named, 1.0),)


def test_large_answers_are_read_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    large = body([], warnings=["x" * (1 << 18)])
    assert most_at_once(query_response, "json_object", monkeypatch, lambda: read_answer(large, "broker")) == 1


def test_nothing_is_an_answer_too() -> None:
    assert read_answer(body([]), "broker").samples == ()


def test_nan_and_infinity_come_through_as_such() -> None:
    ((_, nan), (_, inf), (_, low)) = read_answer(
        body([series("1", "NaN"), series("2", "+Inf"), series("3", "-Inf")]), "broker"
    ).samples
    assert nan is not None
    assert math.isnan(nan)
    assert (inf, low) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    "one",
    [
        {"metric": {"broker": "1"}, "value": [0, 5]},
        {"metric": {"broker": "1"}, "value": [0, "five"]},
        {"metric": {"broker": "1"}, "value": "5"},
        {"metric": {"broker": "1"}, "value": [0, "5", "6"]},
        {"metric": {"broker": "1"}, "histogram": [0, {"count": "3", "sum": "9"}]},
        {"metric": {"broker": "1"}, "value": [0, "1" * 100]},
    ],
)
def test_value_that_is_no_number_keeps_its_series_without_value(one: Any) -> None:
    assert read_answer(body([one]), "broker").samples == (({"broker": "1"}, None),)


@pytest.mark.parametrize("metric", [{}, {"broker": ""}, {"broker": 1}, {"other": "1"}, None, [], "broker"])
def test_a_series_without_the_label_is_kept_as_nobodys(metric: Any) -> None:
    assert read_answer(body([{"metric": metric, "value": [0, "5"]}]), "broker").samples == (({}, 5.0),)


def test_an_endless_label_is_cut() -> None:
    ((labels, _),) = read_answer(body([series("x" * 1_000_000, "1")]), "broker").samples
    assert labels == {"broker": "x" * 512}


@pytest.mark.parametrize(
    ("kind", "words"), [("matrix", "a matrix"), ("scalar", "a scalar"), ("string", "a string"), ("soup", "something")]
)
def test_any_other_result_is_refused_by_its_kind(kind: str, words: str) -> None:
    with pytest.raises(Terminal, match=f"returns {words}"):
        read_answer(body([], kind), "broker")


@pytest.mark.parametrize(
    "bad",
    [b"", b"<html>sorry</html>", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"status":"success"}', b"9" * 9999],
)
def test_what_is_not_prometheus_json_is_refused(bad: bytes) -> None:
    with pytest.raises(Terminal):
        read_answer(bad, "broker")


def test_an_error_with_status_200_is_the_servers_refusal() -> None:
    with pytest.raises(Terminal, match=r"refuses the query, bad_data$"):
        read_answer(b'{"status":"error","errorType":"bad_data","error":"parse error"}', "broker")


def test_too_many_series_are_refused_with_the_remedy() -> None:
    many = [series(str(n), "1") for n in range(SERIES_LIMIT + 1)]
    with pytest.raises(Terminal, match=r"more than 10000 series: aggregate it by \(broker\)"):
        read_answer(body(many), "broker")
    assert len(read_answer(body(many[:-1]), "broker").samples) == SERIES_LIMIT


def test_warnings_are_few_short_and_on_one_line() -> None:
    found = read_answer(body([], warnings=["a\nb\x1b[31m" + "c" * 500] * 9 + [5]), "broker")
    assert len(found.warnings) == 3
    assert found.warnings[0].startswith("a b?[31mccc")
    assert len(found.warnings[0]) == 300
    assert read_answer(body([], warnings={"no": "list"}), "broker").warnings == ()


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (302, Terminal, "redirects elsewhere"),
        (400, Terminal, "refuses the query .400, bad_data.: try it in"),
        (401, Terminal, "check bearerTokenSecretName"),
        (403, Terminal, "check bearerTokenSecretName"),
        (404, Terminal, "check url"),
        (418, Terminal, "status 418, bad_data: check url"),
        (422, Terminal, "refuses the query .422."),
        (429, Transient, "cannot answer now"),
        (500, Transient, "cannot answer now"),
        (503, Transient, "cannot answer now .503, bad_data.$"),
    ],
)
def test_every_status_says_what_to_do(status: int, kind: type[Exception], words: str) -> None:
    error = error_of(status, b'{"status":"error","errorType":"bad_data","error":"parse error"}')
    assert "parse error" not in str(error)
    assert type(error) is kind
    with pytest.raises(kind, match=words):
        raise error


def test_error_page_in_html_does_not_get_into_words() -> None:
    assert str(error_of(502, b"<html><body>bad gateway</body></html>")) == "cannot answer now (502)"


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_value_in_the_result_is_read_or_refused(value: Any) -> None:
    for said in (value, {"status": "success", "data": value}):
        with pytest.raises(Terminal):
            read_answer(json.dumps(said).encode(), "broker")
    samples = read_answer(body([value]), "broker").samples
    assert samples == (({}, None),) or isinstance(value, dict)


NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def noted(*rules: dict[str, Any]) -> bytes:
    return json.dumps({"status": "success", "data": {"groups": [{"name": "g", "rules": rules}]}}).encode()


def rule(name: str = "DiskFailing", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "alerting",
        "health": "ok",
        "lastEvaluation": "2026-01-01T11:59:50.123456789Z",
        **fields,
    }


def test_alerts_whose_rules_are_all_evaluated_have_no_problem() -> None:
    body = noted(
        rule(), rule(lastEvaluation="2026-01-01T13:59:00+02:00"), rule("NodeDown"), rule("Other", health="err")
    )
    assert unevaluated(body, ["DiskFailing", "NodeDown"], NOW) == ""


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ([], "has no rule of alert DiskFailing: name an alert of this Prometheus in selector"),
        ([rule(type="recording")], "has no rule of alert DiskFailing"),
        (
            [rule(health="err", lastError="bad\nmatch")],
            "the rule of alert DiskFailing: see its error there",
        ),
        ([rule(), rule(health="err")], "cannot evaluate the rule of alert DiskFailing"),
        ([rule(health="unknown", lastEvaluation="0001-01-01T00:00:00Z")], "has not evaluated the rule of alert DiskF"),
        ([rule(lastEvaluation="2026-01-01T11:54:59Z")], "in the last 5 minutes: check its rule groups"),
        ([rule(lastEvaluation="2026-01-01T11:59:59")], "has not evaluated"),
        ([rule(lastEvaluation=None)], "has not evaluated"),
    ],
)
def test_rule_that_is_not_evaluated_is_named_with_why(rules: list[dict[str, Any]], problem: str) -> None:
    assert problem in unevaluated(noted(*rules), ["DiskFailing"], NOW)


@pytest.mark.parametrize("body", [b"[]", b"<html>", b'{"status":"error","error":"no"}'])
def test_what_is_no_list_of_rules_is_no_answer(body: bytes) -> None:
    with pytest.raises(Terminal, match=r"does not show its alert rules$|not Prometheus' JSON"):
        unevaluated(body, ["DiskFailing"], NOW)


def test_groups_that_are_none_hold_no_rule() -> None:
    body = b'{"status":"success","data":{"groups":[{"rules":1},2,{"rules":[3]}]}}'
    assert_wording(unevaluated(body, ["DiskFailing"], NOW))

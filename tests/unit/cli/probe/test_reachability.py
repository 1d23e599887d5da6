"""``bellwether probe reachability --once``: a row per broker, with what to do where it has no external address."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from bellwether.adapters.kafka.connection.connection_errors import Stage
from bellwether.cli.probe import measurement_table
from bellwether.core.model.cluster import Broker
from bellwether.core.settings.detection import Reachability
from bellwether.ports.errors import Transient
from bellwether.ports.kafka import ProbeAnswer
from bellwether.probes.reachability.reachability_probe import TwoSides
from testkit.messages import assert_wording

REFUSED = ProbeAnswer(False, 0.001, Stage.CONNECT, "in-1:9092: connection refused")


class Broken:
    """Answers at some addresses, and refuses at all others."""

    def __init__(self, answers: Mapping[str, ProbeAnswer]) -> None:
        self.answers = answers

    def ask(self, address: str, broker_id: int, timeout_seconds: float, padding: int = 0) -> ProbeAnswer:  # noqa: ARG002 - the protocol's
        return self.answers.get(address, REFUSED)


def row(capsys: pytest.CaptureFixture[str], answers: Mapping[str, ProbeAnswer], *, fenced: bool = False) -> str:
    roster = TwoSides(lambda: {1: Broker(1, None, "in-1", 9092, fenced=fenced)}, None)
    assert measurement_table.reachability(roster, Broken(answers), Reachability(listeners=("EXTERNAL",)), "table") == 4
    return " ".join(capsys.readouterr().out.splitlines()[1].split())


def test_each_listener_has_a_row(capsys: pytest.CaptureFixture[str]):
    roster = TwoSides(lambda: {1: Broker(1, None, "in-1", 9092)}, None)
    inside = ProbeAnswer(True, 0.001, Stage.REQUEST, advertised={"A": "out-1:1", "B": "out-1:2"})
    settings = Reachability(listeners=("A", "B", "C"))
    answers = Broken({"in-1:9092": inside, "out-1:1": ProbeAnswer(True, 0.002, Stage.REQUEST)})
    assert measurement_table.reachability(roster, answers, settings, "table") == 4
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [
        ["1", "out-1:1", "Passing"],
        ["1", "out-1:2", "Failing"],
        ["1", "?", "Unknown"],
    ]


def test_a_fenced_broker_is_not_in_metadata_and_its_process_is_to_be_checked(capsys: pytest.CaptureFixture[str]):
    said = row(capsys, {}, fenced=True)
    assert "1 ? Unknown Failing" in said
    assert_wording(said)
    assert "in-1:9092: connection refused" in said
    assert "advertises" not in said


def test_the_external_address_of_a_broker_that_does_not_answer_inside_is_unknown(capsys: pytest.CaptureFixture[str]):
    said = row(capsys, {})
    assert_wording(said)
    assert "metadata" not in said


def test_brokers_that_cannot_be_listed_are_one_error():
    def refused() -> dict[int, Broker]:
        raise Transient("no broker answered")

    with capture_logs() as logged, pytest.raises(Transient):
        TwoSides(refused, refused).targets()
    assert logged == []
    with capture_logs() as logged:
        assert set(TwoSides(refused, lambda: {1: Broker(1, None, "out-1", 9092)}).targets()) == {1}
    assert [(one["event"], one["side"]) for one in logged] == [("broker_list_failed", "internal")]


def test_a_broker_without_the_listener_is_a_wrong_setting(capsys: pytest.CaptureFixture[str]):
    inside = ProbeAnswer(True, 0.001, Stage.REQUEST, advertised={"INTERNAL": "in-1:9092"})
    said = row(capsys, {"in-1:9092": inside})
    assert_wording(said)

"""What ``bellwether probe replication`` takes and refuses, and its table."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from bellwether.cli.probe import measurement_table
from bellwether.cli.probe.replication import replication
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.detection import ReplicationLag
from bellwether.probes.replication.lag_state import LagMeasurement
from testkit.messages import assert_wording


def run(*arguments: str) -> Any:
    return CliRunner().invoke(replication, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--once"], "Missing option '--policy': the LeadershipPolicy to read settings from (or --bootstrap)"),
        (["--policy", "main", "--bootstrap", "h:9092"], "require --once"),
        (["--policy", "main", "--once", "--command-config", __file__], "without --policy"),
        (["--once", "--bootstrap", "h"], "'h' is not host:port"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(arguments: list[str], complaint: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code == 2
    assert complaint in " ".join(ended.output.split())


def test_a_cluster_that_cannot_be_reached_is_one_line_and_exit_status_1() -> None:
    ended = run("--once", "--bootstrap", "127.0.0.1:1")
    assert ended.exit_code == 1
    assert_wording(ended.output)


SICK = LagMeasurement(
    followed=4, worst_seconds=34.2, lagging=2, in_isr=1, worst=(TopicPartition("t", 3),), behind=(1, 2), blamed=True
)


@pytest.mark.parametrize(
    ("looks", "status", "row"),
    [
        ({1: LagMeasurement(followed=4)}, 0, "1 Passing 0.0 s 0 0 keeps up on 4 partitions"),
        ({1: LagMeasurement(), 2: SICK}, 4, "2 Failing 34.2 s 2 1 behind by 34 s on 2 partitions"),
        ({1: LagMeasurement(problem="it is fenced")}, 4, "1 Unknown not measured: it is fenced"),
        ({}, 4, "BROKER REPLICATION LAG LAGGING IN ISR MESSAGE"),
    ],
)
def test_the_table_has_a_row_for_each_broker_and_only_passing_is_success(
    looks: dict[int, LagMeasurement],
    status: int,
    row: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(measurement_table, "watch_once", lambda *_: looks)
    anything: Any = None
    assert measurement_table.replication(anything, ReplicationLag(), anything, "table") == status
    assert row in " ".join(capsys.readouterr().out.split())

"""The options of ``bellwether doctor``, its exit status, and the commands that it prints for a secured cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from bellwether.adapters.kafka.connection.broker_pool import MANUAL_LIMITS, BrokerPool
from bellwether.adapters.kafka.fault_tolerance_reader import KafkaFaultTolerance
from bellwether.cli import exit_status
from bellwether.cli.diagnosis.cluster_examination import ExaminedCluster
from bellwether.cli.diagnosis.doctor import _again, _listeners, _quarantine, _tools, status
from bellwether.cli.kafka_target import KafkaTarget
from bellwether.cli.main import main
from bellwether.core.doctor.risks import RiskInputs
from bellwether.core.doctor.unhealthy_leaders import JudgedBrokers, QuarantineCheck, UnhealthyBroker, unhealthy_leaders
from bellwether.core.model.fault_tolerance import FaultTolerance
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Mechanism, Protocol, Security
from bellwether.ports.errors import Unauthorized
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.messages import assert_wording
from testkit.simulation.risk_fixture import MemoryWard
from testkit.values.builders import name
from testkit.values.security_settings import PLAINTEXT


def doctor(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(main, ["doctor", *arguments])
    return found.exit_code, found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--bootstrap", "nonsense"), "not host:port"),
        (("--bootstrap", "h:1", "--accept-loss"), "requires --unclean-election"),
        (
            ("--bootstrap", "h:1", "--unclean-election", "orders"),
            "is not TOPIC-PARTITION: use a value such as orders-0",
        ),
        (("--bootstrap", "h:1", "--unclean-election", "-0"), "is not TOPIC-PARTITION"),
        (("--bootstrap", "h:1", "--unclean-election", "orders-x"), "is not TOPIC-PARTITION"),
        (("--bootstrap", "h:1", "--output", "xml"), "--output"),
        (("--bootstrap", "h:1", "--unclean-election", "orders-0", "--output", "json"), "use it without --output"),
    ],
)
def test_options_that_make_no_sense_are_refused_with_the_remedy(arguments: tuple[str, ...], said: str) -> None:
    code, output = doctor(*arguments)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_cluster_that_cannot_be_examined_has_a_status_of_its_own() -> None:
    code, output = doctor("--bootstrap", "127.0.0.1:1")
    assert code == exit_status.ERROR
    assert_wording(output)


def test_an_unclean_election_that_cannot_be_looked_into_is_not_held() -> None:
    code, output = doctor("--bootstrap", "127.0.0.1:1", "--unclean-election", "orders-0", "--accept-loss")
    assert code == exit_status.ERROR
    assert "Type" not in output


def test_a_store_that_is_none_is_refused_without_its_secrets() -> None:
    code, output = doctor("--bootstrap", "127.0.0.1:1", "--store", "ftp://anna:opensesame@host/x")
    assert code == exit_status.ERROR
    assert "opensesame" not in output


def test_the_exit_status_tells_how_bad_it_is() -> None:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", assignment=[(1, 2)], min_isr=1)
    ward = MemoryWard(kafka)
    well = ward.examiner().examine()
    assert status(well) == 0
    sick = UnhealthyBroker(1, "Sick", "ExternallyUnreachable", "not reachable from 2 of 2 vantages")
    assert status(replace(well, unhealthy=unhealthy_leaders(well.cluster, JudgedBrokers((sick,))))) == 4
    kafka.shrink_isr(name("orders", 0), 2)
    assert status(ward.examiner().examine()) == 4
    kafka.kill(1)
    lost = ward.examiner().examine()
    assert status(replace(lost, unhealthy=unhealthy_leaders(well.cluster, JudgedBrokers((sick,))))) == 5


ANNA = Security(
    destinations=ANYWHERE,
    protocol=Protocol.SASL_SSL,
    mechanism=Mechanism.PLAIN,
    username="anna",
    password="opensesame",
)


def test_printed_commands_take_the_file_that_was_given() -> None:
    given = KafkaTarget(command_config=Path("/run/my secrets/my.properties"))
    tools = _tools(ExaminedCluster(Connection(("b:1",), ANNA)), given)
    assert_wording(tools.kafka("kafka-topics.sh", "--list"), tools.ours("doctor"))


def test_an_open_cluster_needs_nothing_more_in_the_commands() -> None:
    tools = _tools(ExaminedCluster(Connection(("b:1", "b:2"), PLAINTEXT)), KafkaTarget(bootstrap="b:1,b:2"))
    assert tools.ours("doctor") == "bellwether doctor --bootstrap b:1,b:2"
    assert tools.kafka("kafka-topics.sh", "--list") == "kafka-topics.sh --bootstrap-server b:1,b:2 --list"


def test_a_printed_command_names_the_store_and_not_its_secrets() -> None:
    assert _again("s3://bucket/samples", "s3://bucket/samples") == " --store s3://bucket/samples"
    assert _again("/var/my samples", "/var/my samples") == " --store '/var/my samples'"
    assert _again("s3://bucket/samples?token=hush", "s3://bucket/samples") == " --store URI"


class Settings:
    """The settings of brokers; ``refused``: why they may not be read."""

    def __init__(self, settings: Mapping[int, Mapping[str, str]], refused: str = "") -> None:
        self.settings, self.refused = settings, refused

    def broker_configs(self, brokers: Collection[int], _names: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        if self.refused:
            raise Unauthorized(self.refused)
        return {broker: known for broker, known in self.settings.items() if broker in brokers}

    def topic_configs(self, _topics: Collection[str], _names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return {}


def test_listeners_are_compared_with_the_settings_of_the_brokers_that_answer() -> None:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", assignment=[(1, 2, 3)])
    kafka.kill(3)
    found = MemoryWard(kafka).examiner().examine()
    advertised = {"advertised.listeners": "A://x:1,B://x:2", "inter.broker.listener.name": "I"}
    check = _listeners(("A",), found, Settings(dict.fromkeys((1, 2, 3), advertised)))
    assert (check.unwatched, check.unread) == ({"B": (1, 2)}, ())
    refused = _listeners(("A",), found, Settings({}, "grant the ACL"))
    assert (refused.unwatched, refused.unread, refused.problem) == ({}, (1, 2), "grant the ACL")


def test_what_the_policys_user_may_not_read_is_missing_for_quarantine(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = MemoryCluster(3)
    kafka.create_topic("orders", assignment=[(1, 2)], min_isr=1)
    well = MemoryWard(kafka).examiner().examine()
    unread = replace(well, facts=RiskInputs())
    denied = FaultTolerance(problem="DescribeQuorum: grant Describe on Cluster")
    monkeypatch.setattr(KafkaFaultTolerance, "margins", lambda *_: denied)
    nodes = BrokerPool(Connection(("127.0.0.1:1",), PLAINTEXT), MANUAL_LIMITS)
    assert_wording(_quarantine(QuarantineCheck(True, ("no agent",)), unread, nodes).missing)
    monkeypatch.setattr(KafkaFaultTolerance, "margins", lambda *_: FaultTolerance())
    assert _quarantine(QuarantineCheck(True), well, nodes).missing == ()
    assert _quarantine(QuarantineCheck(False, ("off",)), unread, nodes).missing == ("off",)

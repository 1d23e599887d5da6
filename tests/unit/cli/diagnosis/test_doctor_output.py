"""What the doctor prints, and the document that a program gets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bellwether.cli.diagnosis import doctor_output
from bellwether.cli.diagnosis.cluster_examination import Examination
from bellwether.cli.diagnosis.doctor import status
from bellwether.cli.output import document_text
from bellwether.core.doctor.remediation import CommandOptions, Remediation
from bellwether.core.doctor.risks import LogEndSample, Risk
from bellwether.core.doctor.unhealthy_leaders import (
    JudgedBrokers,
    QuarantineCheck,
    SlowBroker,
    SlowDiskForecast,
    UnhealthyBroker,
    slow_followers,
    unhealthy_leaders,
)
from bellwether.core.doctor.unwatched_listeners import ListenerCheck
from bellwether.core.model.cluster import TopicPartition
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.messages import assert_wording
from testkit.simulation.risk_fixture import MemoryWard
from testkit.values.builders import START, cluster, name, partition

TOOLS = CommandOptions("broker:9092")


@pytest.fixture
def kafka() -> MemoryCluster:
    """orders-0 lost its last ISR member, orders-1 one of two, payments has no spare by design."""
    made = MemoryCluster(4, version=(4, 0))
    made.create_topic("orders", assignment=[(1, 2), (3, 4)], min_isr=1)
    made.create_topic("payments", assignment=[(2, 3)], min_isr=2)
    made.shrink_isr(name("orders", 0), 2)
    made.shrink_isr(name("orders", 1), 4)
    made.kill(1)
    return made


def examination(kafka: MemoryCluster) -> Examination:
    lost = kafka.partition("orders")
    samples = {lost.key: LogEndSample(100, START, 1, lost.leader_epoch - 1)}
    return MemoryWard(kafka, {lost.name: {2: 70}}, samples).examiner().examine()


def printed(found: Examination, capsys: pytest.CaptureFixture[str], shown: int = 10) -> str:
    doctor_output.print_report(found, found.risk_summary.at_risk[:shown], TOOLS)
    return capsys.readouterr().out


def document(found: Examination) -> Any:
    """The document as it is printed."""
    return json.loads(document_text(doctor_output.document(found, TOOLS), "json"))


def test_the_summary_the_causes_and_each_partition_are_printed(kafka, capsys):
    assert_wording(printed(examination(kafka), capsys))


def test_the_worst_are_shown_and_the_others_counted(kafka, capsys):
    out = printed(examination(kafka), capsys, shown=1)
    assert "orders-1:" not in out
    assert "and 1 more at risk" in out


def test_a_dead_broker_is_one_finding_with_the_first_names_of_each_class(capsys):
    made = MemoryCluster(3)
    made.create_topic("orders", partitions=6, min_isr=2)
    made.create_topic("payments", assignment=[(2, 1)], min_isr=2)
    made.kill(2)
    out = printed(MemoryWard(made).examiner().examine(), capsys, shown=0)
    assert_wording(out[out.index("broker 2 is down") :])


def test_the_output_does_not_grow_with_the_cluster(capsys):
    made = MemoryCluster(60)
    for number in range(20):
        made.create_topic(f"topic-{number}", partitions=60, min_isr=3)
    for broker in range(1, 31):
        made.freeze(broker)
    lines = printed(MemoryWard(made).examiner().examine(), capsys, shown=0).splitlines()
    assert "1200" in "".join(lines)
    assert len(lines) < 60


def test_the_file_that_kafkas_tools_need_is_explained(kafka, capsys):
    doctor_output.print_report(examination(kafka), (), CommandOptions("b:1", "client.properties"))
    assert "client.properties in the commands is a file with the client settings" in capsys.readouterr().out


def test_nothing_at_risk_is_said(capsys):
    made = MemoryCluster(3)
    made.create_topic("orders")
    found = MemoryWard(made).examiner().examine()
    assert_wording(printed(found, capsys))
    judged = replace(found, unhealthy=())
    assert_wording(printed(judged, capsys))


def test_leaders_that_clients_do_not_reach_are_shown_though_no_partition_is_at_risk(capsys):
    made = MemoryCluster(3)
    for number, topic in enumerate(["a", "b", "c", "d", "e"], 1):
        made.create_topic(topic, assignment=[(1, 2, 3)] * number, min_isr=1)
    found = MemoryWard(made).examiner().examine()
    sick = UnhealthyBroker(
        1,
        "Sick",
        "ExternallyUnreachable",
        "not reachable from 2 of 2 vantages",
        "NotEnforcing: it would be demoted",
        (Remediation("check the load balancer", "nothing", checks=("bellwether explain 1",)),),
    )
    found = replace(found, unhealthy=unhealthy_leaders(found.cluster, JudgedBrokers((sick,))))
    out = printed(found, capsys)
    assert "at risk" not in out.replace("partitions at risk", "")
    assert_wording(out)
    [leader] = document(found)["unhealthyLeaders"]
    assert (leader["broker"], leader["partitions"], leader["topics"]) == (
        1,
        15,
        {"e": 5, "d": 4, "c": 3, "b": 2, "a": 1},
    )


def test_a_slow_broker_that_acks_all_waits_for_is_a_finding(capsys):
    made = MemoryCluster(3)
    made.create_topic("orders", assignment=[(2, 1, 3)], min_isr=1)
    found = MemoryWard(made).examiner().examine()
    slow = SlowBroker(1, "StorageSlow", "quarantine is off", (Remediation("repair its disk", "nothing"),))
    found = replace(found, unhealthy=(), slow=slow_followers(found.cluster, JudgedBrokers(slow=(slow,))))
    assert status(found) == 4
    assert_wording(printed(found, capsys))
    (delayed,) = document(found)["slowFollowers"]
    assert (delayed["broker"], delayed["partitions"], delayed["notHeld"]) == (1, 1, "quarantine is off")


def test_brokers_that_do_not_answer_and_what_is_not_known_are_said(kafka, capsys):
    kafka.freeze(4)
    out = printed(examination(kafka), capsys)
    assert "broker 4 does not answer, but metadata lists it as alive: broker-4.test:9092: no answer" in out


def test_eligible_replicas_and_the_last_known_leader_are_shown(capsys):
    made = MemoryCluster(2)
    made.create_topic("orders", assignment=[(1, 2)], min_isr=2)
    made.kill(2)
    assert "ISR [1], ELR [2], min.insync.replicas 2" in printed(MemoryWard(made).examiner().examine(), capsys)


def test_the_document_holds_what_the_text_says(kafka):
    found = examination(kafka)
    whole = document(found)
    assert whole["classes"] == {str(risk): found.risk_summary.counts.get(risk, 0) for risk in Risk} | {"AtMinIsr": 2}
    assert (whole["atRisk"], whole["atMinIsrBySettings"]) == (2, 1)
    lost, at_floor = whole["partitions"]
    assert lost["class"] == "LastIsrMemberLost"
    assert lost["awaited"] == [1]
    assert lost["loss"] == {
        "candidate": 2,
        "candidateEnd": 70,
        "sampledEnd": 100,
        "sampledAt": "2026-01-01T00:00:00+00:00",
        "atLeast": 30,
    }
    assert_wording(lost["remedies"][0]["commands"])
    assert "loss" not in at_floor
    assert (lost["cause"], at_floor["cause"]) == ("BrokersDown", "OutOfIsr")
    down, lagging = whole["causes"]
    assert (down["brokers"], down["classes"]) == ([1], {"LastIsrMemberLost": 1})
    assert lagging["brokers"] == [4]
    assert_wording(lagging["message"])
    assert whole["brokers"] == {"live": [2, 3, 4], "unreachable": {}}


def _forecast(each: float) -> SlowDiskForecast:
    """Broker 1 of the benchmark of cures: it follows two thirds of 60 partitions."""
    followed = [TopicPartition(topic, p) for topic in ("orders", "clicks") for p in range(30) if p % 3]
    return SlowDiskForecast(1, {(1 + one.partition % 3, one): each for one in followed}, 1)


def test_what_one_slow_disk_would_do_is_said_with_what_prevents_it(capsys):
    made = MemoryCluster(3)
    made.create_topic("orders", assignment=[(2, 1, 3)], min_isr=1)
    found = replace(MemoryWard(made).examiner().examine(), slow_disk=_forecast(1.0))
    text = printed(found, capsys)
    assert_wording(text)
    assert document(found)["slowDisk"]["keepsUpMilliseconds"] == 35
    roomy = printed(replace(found, slow_disk=_forecast(0.1)), capsys)
    assert "prevent" not in roomy
    assert "cure:    quarantine" in roomy


def test_what_quarantine_lacks_is_listed(kafka, capsys):
    found = examination(kafka)
    assert "quarantine" not in printed(found, capsys)
    lacking = replace(found, quarantine=QuarantineCheck(True, ("broker 1: no agent", "the quorum is unknown")))
    assert (
        "quarantine could not cure a slow disk; missing:\n  - broker 1: no agent\n  - the quorum is unknown\n"
    ) in printed(lacking, capsys)
    assert document(lacking)["quarantine"] == {
        "enabled": True,
        "missing": ["broker 1: no agent", "the quorum is unknown"],
    }
    assert "quarantine: nothing is missing" in printed(replace(found, quarantine=QuarantineCheck(True)), capsys)


def test_listeners_that_are_not_watched_are_named(kafka, capsys):
    found = examination(kafka)
    assert document(found)["listeners"] is None
    named = replace(found, listeners=ListenerCheck({"PARTNERS": (1, 2)}, unread=(3,)))
    assert "listener PARTNERS of brokers 1 and 2 is not watched: " in printed(named, capsys)
    assert document(named)["listeners"] == {"unwatched": {"PARTNERS": [1, 2]}, "notAdvertised": [], "notRead": [3]}
    assert "listener" not in printed(replace(found, listeners=ListenerCheck({})), capsys)


def test_what_metadata_leaves_out_is_a_warning_and_a_finding(capsys):
    well = MemoryCluster(3)
    well.create_topic("orders", assignment=[(1, 2)])
    found = MemoryWard(well).examiner().examine()
    seen = cluster(partition(replicas=[4, 1], leader_unknown=True), partition(index=1, offline=[2]))
    partial = replace(found, cluster=seen)
    assert (status(found), status(partial)) == (0, 4)
    wanted = [f"broker 4: {seen.without_listener(4)}", f"broker 2: {seen.offline_message(2)}"]
    assert document(partial)["warnings"] == wanted
    assert printed(partial, capsys).splitlines()[1:3] == wanted

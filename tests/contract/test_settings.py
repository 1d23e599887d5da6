"""The contract of the port that reads settings, while all four brokers live."""

from __future__ import annotations

from testkit.kafka.contract_clusters import Subject

MIN_ISR, UNCLEAN, BALANCING = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "auto.leader.rebalance.enable",
)


def test_topic_settings_are_returned_whether_set_or_not(subject: Subject):
    strict, plain = subject.create((1, 2, 3), min_isr=2), subject.create((1, 2, 3))
    assert subject.configs.topic_configs([strict, plain], [MIN_ISR, UNCLEAN]) == {
        strict: {MIN_ISR: "2", UNCLEAN: "false"},
        plain: {MIN_ISR: "1", UNCLEAN: "false"},
    }


def test_only_the_requested_settings_are_returned(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert subject.configs.topic_configs([topic], [MIN_ISR]) == {topic: {MIN_ISR: "1"}}
    assert subject.configs.topic_configs([topic], ["no.such.setting"]) == {topic: {}}
    assert subject.configs.topic_configs([topic], []) == {}


def test_a_change_is_seen_by_the_next_read(subject: Subject):
    topic = subject.create((1, 2, 3))
    for name, value in ((MIN_ISR, "3"), (UNCLEAN, "true")):
        subject.configure(topic, name, value)
        subject.eventually(lambda n=name, v=value: subject.configs.topic_configs([topic], [n]) == {topic: {n: v}})  # type: ignore[misc]


def test_topic_that_is_gone_is_absent_and_hides_no_other(subject: Subject):
    topic = subject.create((1, 2, 3))
    assert subject.configs.topic_configs(["never-made", topic], [MIN_ISR]) == {topic: {MIN_ISR: "1"}}
    assert subject.configs.topic_configs([], [MIN_ISR]) == {}


def test_each_broker_tells_its_own_settings(subject: Subject):
    subject.reader.read()
    assert subject.configs.broker_configs([1, 2, 3, 4], [BALANCING]) == {b: {BALANCING: "true"} for b in (1, 2, 3, 4)}


def test_a_broker_that_there_is_not_is_absent(subject: Subject):
    subject.reader.read()
    assert subject.configs.broker_configs([2, 99], [MIN_ISR]) == {2: {MIN_ISR: "1"}}
    assert subject.configs.broker_configs([], [MIN_ISR]) == {}
    assert subject.configs.broker_configs([1], []) == {}

"""How a cluster is examined: who is asked, what is put together, and what cannot be found out."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

from bellwether.cli.diagnosis.cluster_examination import Examination, Examiner, no_samples
from bellwether.core.doctor.risks import MIN_ISR, LogEndSample, Risk
from bellwether.ports.errors import Terminal, Unauthorized
from bellwether.ports.kafka import BrokerLogEnds
from bellwether.simulation.memory_cluster import MemoryCluster
from bellwether.simulation.memory_kafka import MemoryConfigs, MemoryReader
from testkit.messages import assert_wording
from testkit.simulation.risk_fixture import MemoryEnds, MemoryWard
from testkit.values.builders import START, name


@pytest.fixture
def kafka() -> MemoryCluster:
    made = MemoryCluster(3, version=(4, 0))
    made.create_topic("orders", assignment=[(1, 2, 3), (2, 3, 1)], min_isr=2)
    made.create_topic("payments", assignment=[(1, 2)], min_isr=1)
    return made


def examined(kafka: MemoryCluster) -> Examination:
    return MemoryWard(kafka).examiner().examine()


def test_settings_and_metadata_make_the_classes(kafka: MemoryCluster):
    kafka.kill(1)
    kafka.settings["orders"][MIN_ISR] = "3"
    found = examined(kafka)
    assert {str(d.partition.name): d.risk for d in found.risk_summary.diagnoses} == {
        "orders-0": Risk.UNDER_MIN_ISR,
        "orders-1": Risk.UNDER_MIN_ISR,
        "payments-0": Risk.AT_MIN_ISR,
    }
    assert not found.silent
    assert found.troubles == ()


def test_a_broker_that_metadata_calls_alive_and_that_does_not_answer_is_found(kafka: MemoryCluster):
    kafka.freeze(2)
    found = examined(kafka)
    assert list(found.silent) == [2]
    assert found.of(name("orders", 1)).risk is Risk.LEADER_LOST
    assert found.of(name("orders", 0)).risk is Risk.IN_SYNC


def test_only_brokers_that_hold_what_is_examined_are_asked(kafka: MemoryCluster):
    ends = MemoryEnds(kafka)
    Examiner(MemoryReader(kafka), MemoryConfigs(kafka), ends, no_samples).examine(["payments"])
    assert sorted(number for number, _ in ends.asked) == [1, 2]


def test_log_ends_are_read_only_for_partitions_without_a_leader(kafka: MemoryCluster):
    for broker in (2, 1):
        kafka.kill(broker)
    kafka.revive(2)
    ends = MemoryEnds(kafka, {name("payments"): {2: 70}})
    found = Examiner(MemoryReader(kafka), MemoryConfigs(kafka), ends, no_samples).examine()
    lost = found.of(name("payments"))
    assert lost.risk is Risk.LAST_ISR_MEMBER_LOST
    assert lost.loss is not None
    assert (lost.loss.candidate, lost.loss.candidate_end) == (2, 70)
    assert [asked for asked in ends.asked if asked[1]] == [(2, frozenset({name("payments")}))]


def test_samples_bound_the_loss(kafka: MemoryCluster):
    for broker in (2, 1):
        kafka.kill(broker)
    kafka.revive(2)
    key, epoch = kafka.partition("payments").key, kafka.partition("payments").leader_epoch
    risk_summary = MemoryWard(kafka, {name("payments"): {2: 70}}, {key: LogEndSample(100, START, 1, epoch - 1)})
    loss = risk_summary.examiner().examine().of(name("payments")).loss
    assert loss is not None
    assert loss.least == 30


def test_unreadable_settings_leave_the_rest_of_the_report(kafka: MemoryCluster):
    class Refusing(MemoryConfigs):
        def topic_configs(self, *_: object) -> dict[str, dict[str, str]]:
            raise Unauthorized("grant the ACL DescribeConfigs on Topic *")

    kafka.kill(1)
    found = Examiner(MemoryReader(kafka), Refusing(kafka), MemoryEnds(kafka), no_samples).examine()
    assert found.of(name("orders")).risk is Risk.UNDER_REPLICATED
    assert_wording(found.troubles)


def test_a_store_that_cannot_be_read_leaves_the_loss_unknown(kafka: MemoryCluster):
    def failing(*_: object) -> dict[object, LogEndSample]:
        raise Terminal("the store is away")

    for broker in (2, 1):
        kafka.kill(broker)
    kafka.revive(2)
    found = Examiner(MemoryReader(kafka), MemoryConfigs(kafka), MemoryEnds(kafka), failing).examine()  # type: ignore[arg-type]
    assert_wording(found.troubles)
    loss = found.of(name("payments")).loss
    assert loss is not None
    assert loss.least is None


def test_a_topic_or_partition_that_there_is_not_is_named(kafka: MemoryCluster):
    examiner = MemoryWard(kafka).examiner()
    with pytest.raises(Terminal, match="has no topic nonsense"):
        examiner.examine(["orders", "nonsense"])
    with pytest.raises(Terminal, match="has no partition orders-7"):
        examiner.examine().of(name("orders", 7))


def test_a_cluster_without_topics_is_well():
    assert examined(MemoryCluster(3)).risk_summary.diagnoses == ()


class Deaf(MemoryEnds):
    """Brokers cannot be reached where metadata says that they are, as from a laptop behind a port-forward."""

    def __init__(self, kafka: MemoryCluster, *deaf: int) -> None:
        super().__init__(kafka)
        self._deaf = deaf

    def ask(self, address: str, *more: Any) -> BrokerLogEnds:
        noted = super().ask(address, *more)
        return BrokerLogEnds(problem=f"{address}: cannot connect") if self.asked[-1][0] in self._deaf else noted


def heard(kafka: MemoryCluster, ends: MemoryEnds, *topics: str) -> Examination:
    return Examiner(MemoryReader(kafka), MemoryConfigs(kafka), ends, no_samples).examine(topics)


def test_where_no_broker_can_be_reached_metadata_alone_is_believed_and_that_is_said(kafka: MemoryCluster):
    kafka.kill(3)
    found = heard(kafka, Deaf(kafka, 1, 2, 3))
    assert {d.risk for d in found.risk_summary.diagnoses} == {Risk.AT_MIN_ISR, Risk.IN_SYNC}, "as broker 3 is gone"
    assert not found.silent
    (trouble,) = found.troubles
    assert_wording(trouble)


def test_brokers_that_all_fell_silent_are_believed_to_be_where_another_answers(kafka: MemoryCluster):
    found = heard(kafka, Deaf(kafka, 1, 2), "payments")
    assert sorted(found.silent) == [1, 2]
    assert found.of(name("payments")).risk is Risk.ALL_REPLICAS_LOST
    assert not found.troubles
    alone = heard(kafka, Deaf(kafka, 1, 2, 3), "payments")
    assert not alone.silent
    assert alone.of(name("payments")).risk is Risk.IN_SYNC
    assert len(alone.troubles) == 1


def test_appends_are_counted_by_the_growth_of_logs(kafka: MemoryCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bellwether.cli.diagnosis.cluster_examination.MEASURED_SECONDS", 0.05)
    ends = MemoryEnds(kafka)
    leader = next(p.leader for p in kafka.partitions() if p.topic == "orders")
    answers = iter(range(0, 10**6, 100))
    monkeypatch.setattr(ends, "ask", lambda _a, asked, *_: BrokerLogEnds(dict.fromkeys(asked, next(answers))))
    for broker in kafka.brokers:
        kafka.own_settings[broker]["num.replica.fetchers"] = "4"
    configs = MemoryConfigs(kafka)
    found = Examiner(MemoryReader(kafka), configs, ends, no_samples).examine(forecast=True).slow_disk
    assert found is not None
    assert found.fetchers == 4
    assert found.appends_per_second > 0
    assert found.broker != leader or found.sources > 0


def test_without_the_right_to_read_settings_the_forecast_is_missing_and_said(kafka: MemoryCluster):
    class Denied(MemoryConfigs):
        def broker_configs(self, *_: object) -> NoReturn:
            raise Terminal("grant the ACL DescribeConfigs on Cluster")

    found = Examiner(MemoryReader(kafka), Denied(kafka), MemoryEnds(kafka), no_samples).examine(forecast=True)
    assert found.slow_disk is None
    assert_wording(found.troubles)


def test_a_leader_that_does_not_answer_leaves_the_forecast_unknown(
    kafka: MemoryCluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("bellwether.cli.diagnosis.cluster_examination.MEASURED_SECONDS", 0.0)
    ends, configs = MemoryEnds(kafka), MemoryConfigs(kafka)
    monkeypatch.setattr(
        ends, "ask", lambda _a, asked, *_: BrokerLogEnds(problem="refused") if asked else BrokerLogEnds()
    )
    found = Examiner(MemoryReader(kafka), configs, ends, no_samples).examine(forecast=True)
    assert found.slow_disk is None
    assert_wording(found.troubles)


def test_an_election_does_not_wait_for_the_forecast(kafka: MemoryCluster):
    configs, ends = MemoryConfigs(kafka), MemoryEnds(kafka)
    assert Examiner(MemoryReader(kafka), configs, ends, no_samples).examine().slow_disk is None
    assert not any(asked for _, asked in ends.asked)

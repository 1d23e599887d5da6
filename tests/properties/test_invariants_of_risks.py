"""The classes of risk, for any cluster and any order of events: what is said of a partition is what then happens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.doctor.cause_remediation import cause_advice, causes
from bellwether.core.doctor.remediation import CommandOptions, unclean_election
from bellwether.core.doctor.risks import MIN_ISR, OFFLINE, Diagnosis, Risk, RiskInputs, diagnose, diagnose_cluster
from bellwether.core.model.cluster import Cluster
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.values.strategies import Act, clusters, deeds, memory_clusters

TOOLS = CommandOptions("broker:9092")


def befall(kafka: MemoryCluster, acts: list[tuple[str, Act]]) -> tuple[Diagnosis, ...]:
    for _, act in acts:
        act(kafka)
    topics = {p.topic for p in kafka.partitions()}
    floors = {topic: int(kafka.topic_settings(topic)[MIN_ISR]) for topic in topics}
    return diagnose_cluster(kafka.snapshot(), RiskInputs(floors)).diagnoses


def lose_one(kafka: MemoryCluster, acts: list[tuple[str, Act]]) -> list[Diagnosis]:
    """What is lost once no replica is left that may lead one of the partitions."""
    befall(kafka, acts)
    while (p := next(iter(kafka.partitions()), None)) is not None and p.leader is not None:
        kafka.kill(p.leader)
    return [d for d in befall(kafka, []) if d.risk in (Risk.LAST_ISR_MEMBER_LOST, Risk.ALL_REPLICAS_LOST)]


@given(clusters(), st.dictionaries(st.just("orders"), st.integers(1, 5)))
def test_every_partition_has_one_class(seen: Cluster, floors: dict[str, int]):
    for found in diagnose_cluster(seen, RiskInputs(floors)).diagnoses:
        p = found.partition
        assert (found.risk in OFFLINE) == (p.leader not in seen.live and not p.leader_unknown)


@given(clusters(), st.booleans(), st.integers(1, 5), st.data())
def test_every_partition_at_risk_has_one_cause_and_every_cause_has_advice(
    seen: Cluster, elr: bool, floor: int, data: st.DataObject
):
    silent = data.draw(st.sets(st.sampled_from(sorted(seen.live)))) if seen.live else set()
    floors = dict.fromkeys((p.topic for p in seen.partitions), floor)
    summary = diagnose_cluster(seen, RiskInputs(floors), silent)
    found = causes(summary, seen.live, silent)
    covered = sorted(d.partition.name for cause in found for d in cause.diagnoses)
    assert covered == sorted(d.partition.name for d in summary.at_risk)
    for cause in found:
        advice = cause_advice(cause, TOOLS, elr=elr)
        assert "no broker" not in " ".join([advice.heading, advice.safe, *(way.action for way in advice.remediations)])
        assert advice.remediations
        assert not any("--unclean" in line for way in advice.remediations for line in way.commands)


@given(clusters())
def test_unclean_election_is_offered_only_without_a_safe_leader(seen: Cluster):
    for found in diagnose_cluster(seen, RiskInputs()).diagnoses:
        p = found.partition
        offered = any("--unclean" in c for way in unclean_election(found, TOOLS) for c in way.commands)
        may_lead = seen.live.intersection((*p.isr, *p.elr))
        assert not (offered and may_lead)
        assert not (offered and p.leader in seen.live)
        assert offered == (found.loss is not None and p.leader is None), "while it has one the controller refuses"


@given(clusters(), st.integers(1, 5), st.sets(st.integers(1, 5)))
def test_fewer_live_brokers_and_higher_settings_never_make_a_partition_look_better(
    seen: Cluster, floor: int, lost: set[int]
):
    worst = list(Risk)
    for p in seen.partitions:
        before = diagnose(p, seen.live, RiskInputs({p.topic: floor})).risk
        assert worst.index(diagnose(p, seen.live - lost, RiskInputs({p.topic: floor})).risk) <= worst.index(before)
        assert worst.index(diagnose(p, seen.live, RiskInputs({p.topic: floor + 1})).risk) <= worst.index(before)


@given(memory_clusters(), st.lists(deeds(), max_size=12))
def test_the_awaited_replica_leads_once_it_is_back(kafka: MemoryCluster, acts: list[tuple[str, Act]]):
    for found in lose_one(kafka, acts):
        p = kafka.find(found.partition.name)
        if p is None or p.leader is not None:
            continue  # the broker that came back for another partition leads this one, too
        assert len(found.awaited) > 0
        kafka.revive(found.awaited[0], catch_up=False)
        assert kafka.partition(p.topic, p.index).leader == found.awaited[0]


@given(memory_clusters(), st.lists(deeds(), max_size=12))
def test_a_replica_that_is_not_awaited_never_leads(kafka: MemoryCluster, acts: list[tuple[str, Act]]):
    for found in lose_one(kafka, acts)[:1]:
        others = [r for r in found.partition.replicas if r not in found.awaited and not kafka.brokers[r].active]
        for broker in others:
            kafka.revive(broker, catch_up=False)
        assert kafka.partition(found.partition.topic, found.partition.index).leader is None


@given(memory_clusters(), st.lists(deeds(), max_size=12))
def test_where_kafka_can_elect_it_has(kafka: MemoryCluster, acts: list[tuple[str, Act]]):
    assert not [d for d in befall(kafka, acts) if d.risk is Risk.LEADER_LOST]


@given(memory_clusters(), st.lists(deeds(), max_size=12))
def test_losses_to_spare_can_be_borne_and_one_more_cannot(kafka: MemoryCluster, acts: list[tuple[str, Act]]):
    spared = [
        d
        for d in befall(kafka, acts)
        if d.risk in (Risk.IN_SYNC, Risk.UNDER_REPLICATED) and not d.partition.reassigning and d.partition.isr
    ]
    if not spared:
        return
    found = min(spared, key=lambda d: len(d.partition.isr))
    name, floor = found.partition.name, found.floor or 0
    for broker in found.partition.isr[: len(found.partition.isr) - floor]:
        kafka.kill(broker)
    facts = RiskInputs({name.topic: floor})
    at = diagnose(kafka.partition(*name), kafka.snapshot().live, facts)
    assert at.risk is Risk.AT_MIN_ISR
    kafka.kill(at.partition.isr[0])
    assert diagnose(kafka.partition(*name), kafka.snapshot().live, facts).risk in {Risk.UNDER_MIN_ISR, *OFFLINE}

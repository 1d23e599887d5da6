"""What is said, and when nothing is: invariants 8 (rest), 11 (secrets) and 12 (no claim without measurement)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from bellwether.core.detection.health_states import HealthState
from bellwether.core.reasons import Reason
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Mechanism, Protocol, Security
from bellwether.simulation.memory_cluster import MemoryCluster
from testkit.simulation.fault_injection import Killed
from testkit.simulation.scenario_driver import Play, Step, befalling, perform, scripts, trouble
from testkit.values.strategies import memory_clusters


@given(memory_clusters(), scripts(befalling(), trouble()))
def test_invariant_8_settled_cluster_causes_no_mutation_and_no_news(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    play.calm()
    play.reconciles(60, seconds=20.0)
    assume(play.operator.reports)
    before = (cluster.mutations, play.site.store.writes)
    said = replace(play.operator.reports[-1], now=play.site.clock.now())
    play.reconciles(10, seconds=20.0)
    assert (cluster.mutations, play.site.store.writes) == before
    assert all(replace(r, now=said.now) == said for r in play.operator.reports[-10:])


@given(memory_clusters(), scripts(befalling(), trouble()))
def test_ready_says_that_all_is_well_only_where_nothing_worse_is_so(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    perform(play, script)
    for said in play.operator.reports:
        ready = said.condition("Ready")
        if ready.reason is not Reason.UP_TO_DATE:
            continue
        bad = {HealthState.SICK, HealthState.DOWN, HealthState.UNKNOWN}
        assert ready.status is True
        assert not [b.broker for b in said.brokers if b.verdict.state in bad or b.demoted is not None]
        assert not said.risk_summary.at_risk
        assert said.plan.empty
        assert not said.held
        assert said.result.stopped is None


SECRETS = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%$", min_size=12)


@given(SECRETS)
def test_invariant_11_a_secret_is_in_no_text_that_a_connection_makes_of_itself(secret: str):
    security = Security(
        destinations=ANYWHERE,
        protocol=Protocol.SASL_SSL,
        mechanism=Mechanism.SCRAM_SHA_512,
        username="bellwether",
        password=secret,
    )
    connection = Connection(("kafka.test:9093",), security)
    for text in (repr(security), str(security), f"{connection}", f"{connection!r}"):
        assert secret not in text


@given(memory_clusters(), scripts(trouble(), most=10))
def test_invariant_12_no_reconcile_claims_more_than_the_cluster_shows(cluster: MemoryCluster, script: list[Step]):
    play = Play(cluster)
    for _, act in script:
        act(play)
        before = {p.key: p for p in cluster.partitions()}
        try:
            said = play.operator.reconcile()
        except Killed:
            play.succeed()
            continue
        play.site.clock.advance(1)
        if said is None:
            continue
        after = {p.key: p for p in cluster.partitions()}
        moved = sum(p.leader != before[k].leader for k, p in after.items())
        reordered = sum(p.replicas != before[k].replicas for k, p in after.items())
        assert said.result.elected <= moved
        assert said.result.reordered <= reordered

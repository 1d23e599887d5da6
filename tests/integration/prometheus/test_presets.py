"""Every ready-made query against a real Prometheus with samples of each exporter's shape: a figure for each broker."""

from __future__ import annotations

import pytest

from bellwether.adapters.prometheus.query_client import PrometheusClient
from bellwether.api.v1alpha1.spec.query_presets import (
    BITNAMI,
    BLACKBOX,
    BOTH,
    BY_NAME,
    CLOUDWATCH,
    DEFAULTS,
    EBS,
    JMX,
    KAFKA_EXPORTER,
    NODE,
    NODE_LABELLED,
    PRESETS,
    REPORTER,
    Preset,
    Scope,
)
from bellwether.core.model.broker_identity import Hosts, Named, match
from bellwether.core.settings.source_settings import PrometheusRule
from bellwether.probes.prometheus.query_rules import figures, judge
from realparts.prometheus import PrometheusServer
from testkit.kubernetes.api_objects import prometheus, rules_of
from testkit.processes.exporters import BROKERS
from testkit.values.security_settings import WITHOUT_CREDENTIALS

pytestmark = pytest.mark.prometheus

UNREAD = dict.fromkeys(BROKERS, ())
POOLS = {
    **{n: (f"kafka-controller-{n}.kafka-controller-headless.kafka.svc.cluster.local",) for n in (0, 1, 2)},
    **{100 + n: (f"kafka-broker-{n}.kafka-broker-headless.kafka.svc.cluster.local",) for n in (0, 1, 2)},
}
REGIONS = {
    **{n: (f"kafka-{n}.kafka.west.svc.cluster.local",) for n in (0, 1, 2)},
    **{100 + n: (f"kafka-{n}.kafka.east.svc.cluster.local",) for n in (0, 1, 2)},
}
MSK = {n: (f"b-{n}.demo.a1b2c3.c2.kafka.eu-west-1.amazonaws.com",) for n in BROKERS}

HERE = {
    "JMX exporter under Strimzi": (BOTH, JMX, NODE, EBS),
    "Metrics Reporter under Strimzi": (BOTH, REPORTER, NODE, CLOUDWATCH),
    "default names on Amazon MSK": (DEFAULTS,),
    "Bitnami's rules": (BITNAMI,),
    "kafka_exporter": (KAFKA_EXPORTER,),
    "machines with a broker label": (BOTH, JMX, NODE_LABELLED, BLACKBOX),
}
# What broker 1 and its peers show, by preset.
SHOWN = {
    "ProduceLocalTimeP99": (850, 2),
    "ProduceRemoteTimeP50": (4, 0),
    "LogFlushTimeP999": (2600 * 1.6, 20 * 1.6),
    "RequestHandlerIdle": (0.05, 0.9),
    "NetworkProcessorIdle": (0.02, 0.98),
    "UnderReplicatedPartitions": (17, 0),
    "UnderReplicatedByLeader": (17, 0),
    "OfflineLogDirectories": (1, 0),
    "NodeDiskWriteLatency": (120, 1),
    "NodeIoStalled": (0.93, 0.01),
    "BlackboxProbe": (0, 1),
}
STALLED = {EBS: (37, 0), CLOUDWATCH: (1, 0)}

each_site = pytest.mark.parametrize("remembering", HERE, indirect=True)


def rule_of(preset: Preset, **fields: object) -> PrometheusRule:
    said = {
        "preset": preset.name,
        "threshold": preset.threshold,
        "peerRatio": preset.peer_ratio,
        "comparison": str(preset.comparison),
        "leadersOnly": preset.leaders_only,
        **({"selector": 'alertname="DiskFailing",namespace="kafka"'} if preset.selects_alerts else {}),
        **fields,
    }
    (rule,) = rules_of(prometheus(**said))
    return rule


def asked(server: PrometheusServer, query: str) -> dict[int | None, float | None]:
    samples = PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask(query, "broker", 10).samples
    matches = match([Named.of_labels(labels) for labels, _ in samples], MSK).of
    found = {one.broker: value for one, (_, value) in zip(matches, samples, strict=True)}
    assert len(found) == len(samples), f"two series for one broker: {samples}"
    return found


def judged(server: PrometheusServer, rule: PrometheusRule, hosts: Hosts) -> dict[int, bool | None]:
    found = figures(
        PrometheusClient(server.url, WITHOUT_CREDENTIALS).ask(rule.query, rule.broker_label, 10).samples, rule, hosts
    )
    return {broker: judge(broker, found, rule).bad for broker in hosts}


@each_site
def test_every_dialect_of_every_preset_shows_each_broker_its_own_figure(
    remembering: PrometheusServer, request: pytest.FixtureRequest
) -> None:
    site = request.node.callspec.params["remembering"]
    tried = set()
    for preset in PRESETS:
        for dialect, _ in preset.dialects:
            if dialect not in HERE[site]:
                continue
            tried.add(dialect)
            found = asked(remembering, preset.query(Scope(), dialect))
            ill, well = SHOWN.get(preset.name) or STALLED[dialect]
            assert set(found) == {1, 2, 3}, (preset.name, dialect, found)
            assert found[1] == pytest.approx(ill, rel=0.02, abs=0.001), (preset.name, dialect)
            assert [found[2], found[3]] == pytest.approx([well] * 2, rel=0.02, abs=0.001), (preset.name, dialect)
    assert tried == set(HERE[site])


@each_site
def test_policy_that_names_preset_finds_sick_broker_whichever_exporter_runs(
    remembering: PrometheusServer, request: pytest.FixtureRequest
) -> None:
    site = request.node.callspec.params["remembering"]
    client = PrometheusClient(remembering.url, WITHOUT_CREDENTIALS)
    for preset in PRESETS:
        if not any(dialect in HERE[site] for dialect, _ in preset.dialects):
            continue
        rule = rule_of(preset)
        found = figures(client.ask(rule.query, rule.broker_label, 10).samples, rule, MSK)
        assert [judge(broker, found, rule).bad for broker in BROKERS] == [True, False, False], (preset.name, found)
        assert found.odd == {}


@each_site
def test_a_preset_whose_exporter_is_not_there_yields_nothing(
    remembering: PrometheusServer, request: pytest.FixtureRequest
) -> None:
    site = request.node.callspec.params["remembering"]
    absent = [p for p in PRESETS if not any(dialect in HERE[site] for dialect, _ in p.dialects)]
    assert absent
    for preset in absent:
        assert asked(remembering, rule_of(preset).query) == {}, preset.name


@pytest.mark.parametrize("remembering", ["two clusters"], indirect=True)
def test_brokers_of_two_clusters_are_not_taken_for_one_another(remembering: PrometheusServer) -> None:
    client = PrometheusClient(remembering.url, WITHOUT_CREDENTIALS)
    preset = BY_NAME["ProduceLocalTimeP99"]
    both = rule_of(preset)
    found = figures(client.ask(both.query, "broker", 10).samples, both, UNREAD)
    assert [judge(broker, found, both).bad for broker in BROKERS] == [None, None, None]
    assert "'main-broker-1' and strimzi_io_pod_name='other-broker-1' for this broker" in found.unusable[1]
    hosts = {broker: (f"main-broker-{broker}.main-kafka-brokers.kafka.svc",) for broker in BROKERS}
    assert judged(remembering, both, hosts) == {1: True, 2: False, 3: False}, "Kafka says which pods are its brokers"
    for cluster, bad in (("main", True), ("other", False)):
        one = rule_of(preset, selector=f'strimzi_io_cluster="{cluster}"')
        found = figures(client.ask(one.query, "broker", 10).samples, one, UNREAD)
        assert judge(1, found, one).bad is bad


@pytest.mark.parametrize(
    ("remembering", "hosts", "ill"),
    [
        pytest.param("a second pool", POOLS, 101, id="Bitnami's chart with controllers 0-2 and brokers 100-102"),
        pytest.param("one of two regions", REGIONS, 101, id="Confluent for Kubernetes in two regions"),
        pytest.param("addresses alone", MSK, 1, id="Amazon MSK"),
    ],
    indirect=["remembering"],
)
def test_ill_broker_is_the_one_that_advertises_the_host(remembering: PrometheusServer, hosts: Hosts, ill: int) -> None:
    for name in ("ProduceLocalTimeP99", "RequestHandlerIdle", "UnderReplicatedPartitions"):
        found = judged(remembering, rule_of(BY_NAME[name]), hosts)
        assert [broker for broker, bad in found.items() if bad] == [ill]
        assert sorted(broker for broker, bad in found.items() if bad is False) == sorted({*hosts} - {ill})[-2:]
        unread = judged(remembering, rule_of(BY_NAME[name]), dict.fromkeys(hosts, ()))
        assert set(unread.values()) == {None}, "where Kafka's hosts are not known no broker is judged"


@pytest.mark.parametrize("remembering", ["JMX exporter under Strimzi"], indirect=True)
def test_another_label_may_name_the_broker(remembering: PrometheusServer) -> None:
    for preset in PRESETS:
        if preset.name in ("BlackboxProbe", "FiringAlerts", "UnderReplicatedByLeader"):
            continue
        rule = rule_of(preset, brokerLabel="strimzi_io_pod_name")
        samples = PrometheusClient(remembering.url, WITHOUT_CREDENTIALS).ask(rule.query, rule.broker_label, 10).samples
        found = figures(samples, rule, UNREAD)
        assert [judge(broker, found, rule).bad for broker in BROKERS] == [True, False, False], (preset.name, samples)


@pytest.mark.parametrize("remembering", ["JMX exporter under Strimzi"], indirect=True)
def test_the_mean_since_start_hides_what_the_preset_shows(remembering: PrometheusServer) -> None:
    (raw,) = remembering.query(
        'kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{pod="main-broker-1"}'
    )
    assert float(raw["value"][1]) > 0.89, "ten minutes hardly show in the mean of a month"
    assert asked(remembering, BY_NAME["RequestHandlerIdle"].query(Scope()))[1] == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize("remembering", ["a broker that leads nothing"], indirect=True)
def test_a_percentile_that_gets_no_samples_says_nothing(remembering: PrometheusServer) -> None:
    stale = remembering.query('kafka_network_requestmetrics_localtimems{request="Produce",quantile="0.99"}')
    assert len(stale) == 3, "the exporter repeats the last value without end"
    assert set(asked(remembering, BY_NAME["ProduceLocalTimeP99"].query(Scope()))) == {1, 3}

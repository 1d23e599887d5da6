"""Which broker a series, an alert or a pod is about: what proves it, what contradicts it, and what proves nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellwether.core.model.broker_identity import (
    HOST_LIMIT,
    READS_AT_ONCE,
    RETRY_SECONDS,
    KnownHosts,
    Named,
    claims,
    host_of,
    match,
    ordinal,
)
from bellwether.core.model.cluster import Broker, Cluster, Partition
from testkit.messages import assert_wording

HEADLESS = "kafka-broker-headless.kafka.svc.cluster.local"
BITNAMI = {
    **{n: (f"kafka-controller-{n}.kafka-controller-headless.kafka.svc.cluster.local",) for n in (0, 1, 2)},
    **{100 + n: (f"kafka-broker-{n}.{HEADLESS}",) for n in (0, 1, 2)},
}
REGIONS = {
    **{n: (f"kafka-{n}.kafka.west.svc.cluster.local", f"b{n}.west.example.com") for n in (0, 1, 2)},
    **{100 + n: (f"kafka-{n}.kafka.east.svc.cluster.local", f"b{n}.east.example.com") for n in (0, 1, 2)},
}
MSK = {n: (f"b-{n}.demo.a1b2c3.c2.kafka.eu-west-1.amazonaws.com",) for n in (1, 2, 3)}
UNREAD: dict[int, tuple[str, ...]] = {0: (), 1: (), 2: ()}


def found(hosts: Mapping[int, tuple[str, ...]], *labels: Mapping[str, str], label: str = "broker") -> list[int | None]:
    return [one.broker for one in match([Named.of_labels(one, label) for one in labels], hosts).of]


def problem(hosts: Mapping[int, tuple[str, ...]], **labels: str) -> str:
    return match([Named.of_labels(labels)], hosts).of[0].problem


class TestProof:
    def test_pod_of_second_pool_is_broker_that_advertises_its_host(self) -> None:
        pods = [{"pod": f"kafka-broker-{n}", "namespace": "kafka"} for n in (0, 1, 2)]
        assert found(BITNAMI, *pods) == [100, 101, 102]
        assert found(BITNAMI, pods[1]) == [101], "one series alone proves as much"

    @pytest.mark.parametrize("namespace", ["namespace", "kubernetes_namespace"])
    def test_equal_pods_of_two_regions_differ_by_namespace(self, namespace: str) -> None:
        assert found(REGIONS, {"pod": "kafka-1", namespace: "east"}, {"pod": "kafka-1", namespace: "west"}) == [101, 1]

    def test_equal_pods_of_two_regions_without_namespace_are_no_brokers(self) -> None:
        assert found(REGIONS, {"pod": "kafka-1"}) == [None]
        assert_wording(problem(REGIONS, pod="kafka-1"))

    @pytest.mark.parametrize(
        "instance",
        [f"{MSK[1][0]}:11001", MSK[1][0].upper(), f"{MSK[1][0]}."],
    )
    def test_address_that_a_broker_advertises_is_that_broker(self, instance: str) -> None:
        assert found(MSK, {"instance": instance}) == [1]

    def test_address_that_no_broker_advertises_is_no_broker(self) -> None:
        assert found(MSK, {"instance": "b-9.demo.a1b2c3.c2.kafka.eu-west-1.amazonaws.com:11001"}) == [None]

    def test_address_of_load_balancer_before_all_brokers_is_no_broker(self) -> None:
        assert found({1: ("lb.example.com",), 2: ("lb.example.com",)}, {"instance": "lb.example.com:9404"}) == [None]

    @pytest.mark.parametrize("host", ["[fd00::7]:9092", "fd00::7", "10.0.0.7"])
    def test_pod_address_that_is_advertised_is_that_broker(self, host: str) -> None:
        assert found({7: (host,), 8: ("10.0.0.8",)}, {"broker": host}) == [7]

    @pytest.mark.parametrize("host", ["kafka-1.kafka", "kafka-1.kafka.default.svc", "kafka-1"])
    def test_short_host_of_a_pod_is_that_pod(self, host: str) -> None:
        assert found({7: (host,), 8: ("kafka-2.kafka",)}, {"pod": "kafka-1"}) == [7]

    def test_pod_without_namespace_may_be_of_broker_with_unknown_host(self) -> None:
        assert found({7: ("kafka-1.kafka.default.svc",), 8: ()}, {"pod": "kafka-1"}) == [None]

    def test_host_of_domain_is_not_pod_of_its_first_label(self) -> None:
        hosts = {0: ("kafka-1.example.com",), 1: ("kafka-0.example.com",)}
        assert found(hosts, {"pod": "kafka-1"}) == [None]

    def test_host_with_three_parts_is_pod_only_in_its_namespace(self) -> None:
        hosts = {7: ("kafka-1.kafka.prod",), 8: ()}
        assert found(hosts, {"pod": "kafka-1", "namespace": "prod"}, {"pod": "kafka-1"}) == [7, None]

    @pytest.mark.parametrize(
        ("label", "labels"),
        [
            ("broker", {"broker": "1"}),
            ("broker", {"broker_id": "1"}),
            ("broker", {"broker": "001", "pod": "node-exporter-70"}),
            ("node_id", {"node_id": "1", "broker": "2"}),
            ("broker", {"strimzi_io_pod_name": "main-pool-1"}),
        ],
    )
    def test_label_that_carries_the_node_id_is_proof(self, label: str, labels: dict[str, str]) -> None:
        assert found(UNREAD, labels, label=label) == [1]

    def test_index_of_a_pod_is_no_node_id(self) -> None:
        assert found(UNREAD, {"apps_kubernetes_io_pod_index": "1"}, label="apps_kubernetes_io_pod_index") == [None]


class TestContradiction:
    def test_label_that_contradicts_host_is_conflict_that_names_both(self) -> None:
        labels = {"broker": "1", "pod": "kafka-broker-1", "namespace": "kafka"}
        assert_wording(problem(BITNAMI, **labels))

    def test_two_labels_with_different_ids_are_a_conflict(self) -> None:
        assert_wording(problem(UNREAD, broker="1", broker_id="2"))

    def test_pod_of_another_strimzi_cluster_is_no_broker(self) -> None:
        hosts = {n: (f"main-kafka-{n}.main-kafka-brokers.kafka.svc",) for n in (0, 1, 2)}
        labels = [{"strimzi_io_pod_name": f"{cluster}-kafka-1"} for cluster in ("main", "other")]
        assert found(hosts, *labels) == [1, None]

    def test_id_of_no_broker_is_named(self) -> None:
        assert_wording(problem(UNREAD, broker="77"))

    def test_two_things_that_claim_one_broker_are_both_named(self) -> None:
        things = [Named("pod a", ids=(1,)), Named("pod b", ids=(1,)), Named("pod c", ids=(2,))]
        assert claims(things, match(things, UNREAD).of) == {1: ("pod a", "pod b")}


class TestNumbers:
    def test_numbers_count_when_every_broker_is_matched_exactly_once(self) -> None:
        assert found(UNREAD, *({"pod": f"kafka-{n}"} for n in (0, 1, 2))) == [0, 1, 2]

    @pytest.mark.parametrize(
        "names",
        [
            pytest.param(["kafka-0", "kafka-1"], id="broker 2 has none"),
            pytest.param(["kafka-1", "kafka-2", "kafka-3"], id="begins elsewhere"),
            pytest.param(["kafka-0", "kafka-1", "kafka-2", "controller-1"], id="two of one number"),
            pytest.param(["kafka-0", "kafka-1", "kafka-2", "kafka-3"], id="one number more"),
            pytest.param(["a-0", "kafka-broker-7d9c5b6f8-x2x1", "a-2"], id="a random suffix"),
            pytest.param(["a-0", "broker-us-east1", "a-2"], id="a zone"),
        ],
    )
    def test_numbers_are_no_proof_otherwise(self, names: list[str]) -> None:
        assert found(UNREAD, *({"pod": name} for name in names)) == [None] * len(names)

    def test_numbers_in_two_namespaces_are_different_pods(self) -> None:
        pods = [{"pod": f"kafka-{n}", "namespace": where} for where in ("east", "west") for n in (0, 1, 2)]
        assert found(UNREAD, *pods) == [None] * 6

    def test_host_that_brokers_share_leaves_it_to_the_numbers(self) -> None:
        hosts = {0: ("lb.example.com",), 1: ("lb.example.com",), 2: ()}
        pods = [{"pod": f"kafka-{n}", "instance": "lb.example.com:9404"} for n in (0, 1)]
        assert found(hosts, *pods, {"pod": "kafka-2"}) == [0, 1, 2]
        assert found(hosts, *pods) == [None, None]
        assert found(hosts, {"pod": "kafka-2", "instance": "lb.example.com:9404"}, pods[1], {"pod": "kafka-0"}) == [
            None,
            None,
            None,
        ]

    def test_host_of_another_pod_contradicts_a_number(self) -> None:
        hosts = {**UNREAD, 1: ("kafka-2.kafka.prod.svc",)}
        assert found(hosts, *({"pod": f"kafka-{n}", "namespace": "prod"} for n in (0, 1, 2))) == [None, None, 1]

    def test_proof_that_differs_from_a_number_makes_all_numbers_worthless(self) -> None:
        labels = [{"pod": "kafka-0"}, {"pod": "kafka-1", "broker": "2"}, {"pod": "kafka-2", "broker": "1"}]
        assert found(UNREAD, *labels) == [None, 2, 1]

    def test_what_was_settled_by_all_counts_while_one_is_away(self) -> None:
        whole = match([Named(f"kafka-{n}", pods=(f"kafka-{n}",)) for n in (0, 1, 2)], UNREAD)
        part = match([Named("kafka-1", pods=("kafka-1",)), Named("x-2", pods=("x-2",))], UNREAD, whole.settled)
        assert [one.broker for one in part.of] == [1, None]

    def test_what_was_settled_ends_when_a_host_contradicts_it(self) -> None:
        settled = match([Named(f"kafka-{n}", pods=(f"kafka-{n}",)) for n in (0, 1, 2)], UNREAD).settled
        later = match([Named("kafka-1", pods=("kafka-1",))], {**UNREAD, 1: ("kafka-2.kafka.prod.svc",)}, settled)
        assert (later.of[0].broker, later.settled) == (None, {})

    @pytest.mark.parametrize(
        ("name", "number"),
        [("main-kafka-2", 2), ("kafka_3", 3), ("zone-1-007", 7), ("kafka-9999999999", None), ("kafka-٣", None)]
        + [(name, None) for name in ("", "-", "kafka", "broker12", "ip-10-0-0-2", "10-0-0-2", "kafka-1:9092", "k-1.k")],
    )
    def test_number_at_the_end_of_a_name(self, name: str, number: int | None) -> None:
        assert ordinal(name) == number

    def test_reason_names_the_remedy(self) -> None:
        assert_wording(problem(UNREAD, pod="kafka-1"), problem(UNREAD))


def cluster(*brokers: Broker) -> Cluster:
    return Cluster("c", {b.id: b for b in brokers}, ())


class TestKnownHosts:
    HERE = cluster(Broker(1, host="a.internal"), Broker(2, host="b.internal"))

    def read(self, **settings: str) -> dict[int, tuple[str, ...]]:
        found = {int(broker[1:]): {"advertised.listeners": value} for broker, value in settings.items()}
        return dict(KnownHosts().seen(self.HERE).answered([1, 2], found, 0.0).seen(self.HERE).hosts)

    def test_metadata_and_settings_add_up(self) -> None:
        listeners = "IN://A.internal:9092,OUT://a.example.com:9094,ANY://:9095"
        assert self.read(b1=listeners, b2="IN://b.internal:9092") == {
            1: ("a.internal", "a.example.com"),
            2: ("b.internal",),
        }

    def test_host_proves_a_broker_only_when_all_are_read_or_it_is_of_a_pod(self) -> None:
        listeners = "OUT://lb.example.com:9094,POD://kafka-0.kafka.prod.svc:9092"
        assert self.read(b1=listeners) == {1: ("a.internal", "kafka-0.kafka.prod.svc"), 2: ("b.internal",)}

    def test_absent_broker_keeps_its_host_unless_another_has_it(self) -> None:
        known = KnownHosts({1: ("10.0.0.1", "a.example.com"), 2: ("10.0.0.1",)}).seen(
            Cluster("c", {2: Broker(2, host="10.0.0.1")}, known_partitions())
        )
        assert known.hosts == {1: ("a.example.com",), 2: ("10.0.0.1",)}
        assert known.seen(Cluster("c", {}, known_partitions())).hosts[2] == ("10.0.0.1",)

    def test_settings_of_moved_broker_are_old_and_read_again(self) -> None:
        known = KnownHosts().seen(self.HERE)
        known = known.answered([1, 2], {b: {"listeners": f"OUT://old-{b}:1"} for b in (1, 2)}, 0.0).seen(self.HERE)
        moved = known.seen(cluster(Broker(1, host="c.internal"), Broker(2, host="b.internal")))
        assert moved.hosts == {1: ("c.internal",), 2: ("b.internal", "old-2")}
        assert moved.due([1, 2], 0.0) == [1]

    @pytest.mark.parametrize(
        ("there", "proven"),
        [
            pytest.param(HERE, {"lb", "only-1"}, id="the same brokers"),
            pytest.param(
                cluster(*HERE.brokers.values(), Broker(3, host="c", fenced=True)), {"lb", "only-1"}, id="one is fenced"
            ),
            pytest.param(cluster(Broker(1, host="a.internal"), Broker(2, host="c")), {"only-1"}, id="one has moved"),
            pytest.param(cluster(*HERE.brokers.values(), Broker(3, host="c")), set(), id="one has joined"),
        ],
    )
    def test_proving_host_holds_until_another_broker_may_share_it(self, there: Cluster, proven: set[str]) -> None:
        known = KnownHosts({1: ("a.internal", "lb", "only-1"), 2: ("b.internal", "lb")}).seen(there)
        assert set(known.hosts[1]) == {"a.internal", *proven}
        assert known.seen(there).hosts == known.hosts

    def test_fenced_broker_that_was_never_read_leaves_hosts_of_others(self) -> None:
        here = cluster(*self.HERE.brokers.values(), Broker(3, host="c.internal", fenced=True))
        settings = {b: {"listeners": f"OUT://b{b}.example.com:1"} for b in (1, 2)}
        known = KnownHosts().seen(here).answered([1, 2], settings, 0.0).seen(here)
        assert [known.hosts[b][1:] for b in (1, 2, 3)] == [("b1.example.com",), ("b2.example.com",), ()]

    def test_load_balancer_proves_no_broker_while_one_is_unread(self) -> None:
        known = KnownHosts({1: ("a.internal",), 2: ("b.internal",)}).seen(self.HERE)
        lb = {"listeners": "OUT://lb.example.com:1"}
        known = known.answered([1, 2], {1: lb}, 0.0).seen(self.HERE)
        assert known.hosts[1] == ("a.internal",)
        known = known.answered([2], {2: lb}, 0.0).seen(self.HERE)
        assert [known.hosts[b][1:] for b in (1, 2)] == [("lb.example.com",), ("lb.example.com",)]

    def test_what_former_process_read_counts_while_host_is_same(self) -> None:
        known = KnownHosts({1: ("a.internal", "a.example.com"), 2: ("b.internal", "b.example.com"), 3: ()})
        assert known.seen(self.HERE).hosts == {
            1: ("a.internal", "a.example.com"),
            2: ("b.internal", "b.example.com"),
        }

    def test_few_are_asked_at_once_and_none_again_soon(self) -> None:
        ids = range(3 * READS_AT_ONCE)
        first = KnownHosts().due(ids, 5.0)
        assert len(first) == READS_AT_ONCE
        second = KnownHosts().answered(first, {}, 5.0).due(ids, 6.0)
        assert len(second) == READS_AT_ONCE
        assert not set(first) & set(second)
        assert KnownHosts().answered([1], {}, 5.0).due([1], 5.0 + RETRY_SECONDS) == [1]

    def test_endless_listeners_are_cut(self) -> None:
        here = cluster(Broker(1, host="h0"))
        settings = {"listeners": ",".join(f"L{n}://h{n}:1" for n in range(99))}
        known = KnownHosts().seen(here).answered([1], {1: settings}, 0.0).seen(here)
        assert len(known.hosts[1]) == HOST_LIMIT


def known_partitions() -> tuple[Partition, ...]:
    return (Partition("t", "id", 0, (1, 2), (2,), 2),)


@pytest.mark.parametrize(
    ("address", "host"),
    [("A.b:9092", "a.b"), ("a.b.", "a.b"), ("[::1]:9", "::1"), ("[::1]", "::1"), ("::1", "::1"), ("", ""), (":9", "")],
)
def test_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host


@st.composite
def sites(draw: st.DrawFn) -> tuple[dict[int, tuple[str, ...]], list[tuple[int | None, dict[str, str]]]]:
    """Pods of StatefulSets with node ids from anywhere, what is known of their hosts, and series with their truth.

    Hosts outside are known of all brokers or of none, as a whole view gives them; a load balancer may be before
    several. Where not all hosts of a pool's pods are known, its node ids are its numbers plus an offset: a naming
    that permutes ids and of which Kafka shows nothing cannot be distinguished from one that does not.
    """
    pools = draw(st.lists(st.sampled_from(["kafka", "kafka-broker", "kafka-controller", "b"]), min_size=1, max_size=3))
    hosts: dict[int, tuple[str, ...]] = {}
    series: list[tuple[int | None, dict[str, str]]] = []
    free, all_outside = draw(st.permutations(range(12))), draw(st.booleans())
    for number, pool in enumerate(pools):
        namespace, size = f"ns{number}", draw(st.integers(1, 3))
        shown = draw(st.sampled_from(["all", "some", "none"]))
        first = draw(st.sampled_from([0, 1, 100]))
        for index in range(size):
            node = free[number * 3 + index] if shown == "all" else first + index + (20 * number if number else 0)
            if node in hosts:
                continue
            name = f"{pool}-{index}"
            outside = draw(st.sampled_from(["lb.example.com", f"{pool}-{index + 1}.out{node}.example.com"]))
            inside = f"{name}.{pool}.{namespace}.svc.cluster.local"
            visible = shown == "all" or (shown == "some" and draw(st.booleans()))
            hosts[node] = (*([outside] if all_outside else []), *([inside] if visible else []))
            labels = {
                "pod": name,
                "namespace": namespace,
                "instance": draw(st.sampled_from([f"{inside}:9404", f"10.{number}.0.{index}:9404", f"{outside}:1"])),
                "broker": draw(st.sampled_from([str(node), name, outside])),
                "apps_kubernetes_io_pod_index": str(index),
            }
            kept = draw(st.sets(st.sampled_from(sorted(labels))))
            if draw(st.booleans()):
                series.append((node, {key: labels[key] for key in kept}))
    strangers = draw(st.integers(0, 2))
    series += [(None, {"pod": f"kafka-broker-7d9c5b6f8-x2x{n}", "namespace": "ns0"}) for n in range(strangers)]
    return hosts, series


@given(sites(), st.sampled_from(["broker", "pod", "apps_kubernetes_io_pod_index"]))
def test_nothing_is_matched_to_an_unrelated_broker(
    site: tuple[dict[int, tuple[str, ...]], list[tuple[int | None, dict[str, str]]]], label: str
) -> None:
    hosts, series = site
    matches = match([Named.of_labels(labels, label) for _, labels in series], hosts)
    for (truth, labels), one in zip(series, matches.of, strict=True):
        assert one.broker in (None, truth), (labels, hosts)
        assert (one.broker is None) == bool(one.problem)

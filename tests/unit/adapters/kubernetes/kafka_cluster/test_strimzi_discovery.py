"""Finding a Strimzi cluster, step by step, and what is said where a step leads nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bellwether.adapters.kubernetes.api_client import PODS, SECRETS, Resource
from bellwether.adapters.kubernetes.api_errors import NotFound
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.adapters.kubernetes.kafka_cluster.strimzi_discovery import StrimziClusters, StrimziUnavailable
from bellwether.api.v1alpha1.spec.kafka_spec import Strimzi as Wanted
from bellwether.core.model.broker_identity import Pod
from bellwether.core.reasons import Reason
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal, Transient, Unauthenticated
from realparts.tls import Authority
from testkit.kubernetes import strimzi_objects
from testkit.kubernetes.memory_api import MemoryApi
from testkit.kubernetes.strimzi_objects import GROUPS, KAFKAS, REBALANCES, USERS, kafka, kafka_user, listener

WANTED = Wanted(cluster_name="my-cluster")
PASSWORD = "kafka-user-s-own"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def api(authority: Authority) -> MemoryApi:
    """A cluster as Strimzi leaves it, with a user that has a password."""
    made = MemoryApi()
    strimzi_objects.put_cluster(made, authority.path.read_text(), PASSWORD)
    return made


@pytest.fixture
def secrets(api: MemoryApi) -> Iterator[SecretReader]:
    with SecretReader(api, "default", destinations=ANYWHERE) as reader:
        yield reader


@pytest.fixture
def clusters(secrets: SecretReader) -> StrimziClusters:
    return StrimziClusters(secrets)


def test_a_name_is_enough(clusters: StrimziClusters, authority: Authority):
    found = clusters.find(WANTED)
    assert found.listener.bootstrap == ("my-cluster-kafka-bootstrap.default.svc:9093",)
    assert (found.strimzi.listener, found.strimzi.user, found.strimzi.paused) == ("tls", "bellwether", False)
    assert found.credentials is not None
    assert (found.credentials.username, found.credentials.password) == ("bellwether", PASSWORD)
    assert Path(found.ca_file).read_text().strip() == authority.path.read_text().strip()
    assert [one.advertised_as for one in found.outside if not isinstance(one, str)] == ["EXTERNAL-9094"]


def test_no_secret_is_shown(clusters: StrimziClusters):
    assert PASSWORD not in repr(clusters.find(WANTED))


def test_a_listener_without_authentication_needs_no_user(api: MemoryApi, clusters: StrimziClusters):
    api.delete(USERS, "default", "bellwether")
    found = clusters.find(WANTED)
    assert (found.listener.name, found.strimzi.user, found.credentials, found.ca_file) == ("plain", "", None, "")


def test_a_user_that_is_named_is_never_left_out(api: MemoryApi, clusters: StrimziClusters):
    with pytest.raises(StrimziUnavailable, match="KafkaUser other does not exist in namespace default") as caught:
        clusters.find(Wanted(cluster_name="my-cluster", user_name="other"))
    assert caught.value.reason is Reason.STRIMZI_REFERENCE_INVALID
    api.put(USERS, kafka_user("other", "tls"))
    with pytest.raises(StrimziUnavailable, match="KafkaUser other has authentication tls") as caught:
        clusters.find(Wanted(cluster_name="my-cluster", user_name="other"))
    assert caught.value.reason is Reason.STRIMZI_REFERENCE_INVALID


def test_a_user_with_a_certificate_names_itself_by_that(
    api: MemoryApi, clusters: StrimziClusters, authority: Authority
):
    certificate, key = authority.issue("reader")
    api.put(KAFKAS, kafka(listeners=[listener("tls", 9093, user="tls")]))
    api.put(USERS, kafka_user("reader", "tls"))
    api.put(SECRETS, strimzi_objects.secret("reader", user_crt=certificate.read_text(), user_key=key.read_text()))
    found = clusters.find(Wanted(cluster_name="my-cluster", user_name="reader"))
    assert found.credentials is not None
    assert Path(found.credentials.cert_file).read_text() == certificate.read_text()
    assert Path(found.credentials.key_file).read_text() == key.read_text()
    assert found.strimzi.user == "reader"


def test_a_policy_that_brings_its_own_credentials_needs_no_user(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(listeners=[listener("oauth", 9095, user="custom")]))
    found = clusters.find(Wanted(cluster_name="my-cluster", listener="oauth"), own_user=True, own_ca=True)
    assert (found.listener.name, found.credentials, found.ca_file, found.strimzi.user) == ("oauth", None, "", "")


def test_a_certificate_of_a_listeners_own_is_trusted_as_well(
    api: MemoryApi, clusters: StrimziClusters, authority: Authority, tmp_path: Path
):
    other = Authority(tmp_path).path.read_text()
    own = {"configuration": {"brokerCertChainAndKey": {"secretName": "s", "certificate": "c", "key": "k"}}}
    listeners = [listener("tls", 9093), listener("external", 9094, "loadbalancer", **own)]
    api.put(KAFKAS, kafka(listeners=listeners, certificates=[other]))
    trusted = Path(clusters.find(WANTED).ca_file).read_text()
    assert authority.path.read_text().strip() in trusted
    assert other.strip() in trusted


@pytest.mark.parametrize("own", [False, True], ids=["of the cluster", "of a listener as well"])
def test_the_ca_is_found_without_its_secret(
    api: MemoryApi, clusters: StrimziClusters, authority: Authority, tmp_path: Path, own: bool
):
    ca, other = authority.path.read_text(), Authority(tmp_path).path.read_text()
    body = kafka(certificates=[ca])
    if own:
        body["status"]["listeners"][2]["certificates"] = [other]
    api.put(KAFKAS, body)
    api.delete(SECRETS, "default", "my-cluster-cluster-ca-cert")
    found = clusters.find(WANTED)
    assert Path(found.ca_file).read_text().split("\n\n") == ([ca.strip(), other] if own else [ca])
    assert found.credentials is not None


def test_a_ca_whose_secret_may_not_be_read_is_asked_for_seldom(
    api: MemoryApi, authority: Authority, monkeypatch: pytest.MonkeyPatch
):
    api.put(KAFKAS, kafka(certificates=[authority.path.read_text()]))
    asked: list[float] = []
    get, now = api.get, [0.0]

    def forbidding(resource: Resource, namespace: str, name: str) -> object:
        if name != "my-cluster-cluster-ca-cert":
            return get(resource, namespace, name)
        asked.append(now[0])
        raise Terminal("cannot get resource secrets")

    monkeypatch.setattr(api, "get", forbidding)
    with SecretReader(api, "default", lambda: now[0], destinations=ANYWHERE) as reader:
        for now[0] in (0.0, 10.0, 590.0, 610.0):
            assert Path(StrimziClusters(reader).find(WANTED).ca_file).read_text() == authority.path.read_text()
        assert asked == [0.0, 610.0]
        api.put(KAFKAS, kafka())
        with pytest.raises(Terminal, match="cannot get resource secrets"):
            StrimziClusters(reader).find(WANTED)


def test_a_damaged_certificate_in_the_status_is_named(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(certificates=["-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"]))
    api.delete(SECRETS, "default", "my-cluster-cluster-ca-cert")
    with pytest.raises(Unauthenticated, match=r"default/my-cluster: status\.listeners\[\]\.certificates holds a cert"):
        clusters.find(WANTED)


def test_a_renewed_authority_is_another_file(api: MemoryApi, clusters: StrimziClusters, tmp_path: Path):
    before = clusters.find(WANTED).ca_file
    assert clusters.find(WANTED).ca_file == before
    renewed = Authority(tmp_path).path.read_text()
    api.put(SECRETS, strimzi_objects.secret("my-cluster-cluster-ca-cert", ca_crt=renewed))
    after = clusters.find(WANTED).ca_file
    assert after != before
    assert Path(after).read_text().strip() == renewed.strip()


def test_changed_listener_user_or_password_shows_at_next_look(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(bootstrap={"tls": "elsewhere:9093"}))
    api.put(SECRETS, strimzi_objects.scram_secret("another"))
    found = clusters.find(WANTED)
    assert found.listener.bootstrap == ("elsewhere:9093",)
    assert found.credentials is not None
    assert found.credentials.password == "another"


def test_an_older_strimzi_is_spoken_to_in_its_own_version(api: MemoryApi, secrets: SecretReader):
    api.put(GROUPS, strimzi_objects.served("v1beta2"))
    asked: list[str] = []
    get, listed = api.get, api.list

    def only_older(call: Callable[..., object]) -> Callable[..., object]:
        def answer(resource: object, *rest: object) -> object:
            assert isinstance(resource, Resource)
            asked.append(resource.prefix)
            if resource.prefix == "/apis/kafka.strimzi.io/v1":
                raise NotFound("the server could not find the requested resource")
            return call(resource, *rest)

        return answer

    api.get, api.list = only_older(get), only_older(listed)  # type: ignore[method-assign, assignment]
    clusters = StrimziClusters(secrets)
    found = clusters.find(WANTED)
    assert found.strimzi.user == "bellwether"
    api.put(REBALANCES, strimzi_objects.rebalance("full", "Rebalancing"))
    assert clusters.surroundings(found.strimzi).rebalancing == ("full",)
    assert asked[0] == "/apis/kafka.strimzi.io/v1"
    assert set(asked[2:]) <= {"/apis/kafka.strimzi.io/v1beta2", "/api/v1"}


# What is missing


def refused(clusters: StrimziClusters, wanted: Wanted = WANTED) -> tuple[Reason, str]:
    with pytest.raises(StrimziUnavailable) as caught:
        clusters.find(wanted)
    return caught.value.reason, str(caught.value)


def noted(found: tuple[Reason, str], reason: Reason, words: Sequence[str]) -> None:
    assert found[0] is reason
    for word in words:
        assert word in found[1], found[1]


def test_without_strimzi_it_is_said_that_there_is_none(secrets: SecretReader, api: MemoryApi):
    api.delete(KAFKAS, "default", "my-cluster")
    api.objects.pop((GROUPS.plural, "", ""))
    words = ["kafka.strimzi.io is not served", "install Strimzi", "spec.kafka.bootstrapServers"]
    noted(refused(StrimziClusters(secrets)), Reason.STRIMZI_REFERENCE_INVALID, words)


def test_an_unsupported_version_is_named(secrets: SecretReader, api: MemoryApi):
    api.delete(KAFKAS, "default", "my-cluster")
    api.put(GROUPS, strimzi_objects.served("v2"))
    noted(refused(StrimziClusters(secrets)), Reason.STRIMZI_REFERENCE_INVALID, ["serves v2 only", "v1 or v1beta2"])


def test_a_missing_cluster_is_named_with_the_existing_ones(clusters: StrimziClusters):
    found = refused(clusters, Wanted(cluster_name="orders"))
    noted(
        found,
        Reason.STRIMZI_REFERENCE_INVALID,
        ["Kafka orders does not exist in namespace default", "existing: my-cluster"],
    )


def test_without_the_right_to_list_no_existing_cluster_is_named(clusters: StrimziClusters, api: MemoryApi):
    api.refuse("list", KAFKAS, Terminal("grant list"))
    found = refused(clusters, Wanted(cluster_name="orders"))
    noted(found, Reason.STRIMZI_REFERENCE_INVALID, ["Kafka orders does not exist in namespace default: correct"])


def test_a_missing_listener_is_named_with_the_existing_ones(clusters: StrimziClusters):
    words = ["Kafka default/my-cluster", "no listener tsl", "plain (internal", "tls (internal, TLS, scram-sha-512)"]
    found = refused(clusters, Wanted(cluster_name="my-cluster", listener="tsl"))
    noted(found, Reason.STRIMZI_REFERENCE_INVALID, words)


def test_without_a_user_the_remedy_is_one_to_apply(api: MemoryApi, clusters: StrimziClusters):
    api.delete(USERS, "default", "bellwether")
    api.put(KAFKAS, kafka(listeners=[listener("tls", 9093, user="tls")]))
    words = ["KafkaUser bellwether does not exist in namespace default", "/strimzi/ has one to apply", "userName"]
    noted(refused(clusters), Reason.STRIMZI_REFERENCE_INVALID, words)


@pytest.mark.parametrize(
    ("user", "reason", "words"),
    [
        pytest.param(
            kafka_user(cluster="other"),
            Reason.STRIMZI_REFERENCE_INVALID,
            ["belongs to Kafka cluster other"],
            id="of another",
        ),
        pytest.param(
            kafka_user(cluster=""),
            Reason.STRIMZI_REFERENCE_INVALID,
            ["belongs to no Kafka cluster"],
            id="of no cluster",
        ),
        pytest.param(
            kafka_user(kind=""), Reason.STRIMZI_REFERENCE_INVALID, ["authentication none"], id="without a kind"
        ),
        pytest.param(
            kafka_user(kind="tls-external"),
            Reason.STRIMZI_REFERENCE_INVALID,
            ["tls-external", "spec.kafka.tls"],
            id="with a certificate from elsewhere",
        ),
        pytest.param(
            kafka_user(ready=False),
            Reason.STRIMZI_NOT_READY,
            ["has no Secret yet", "Strimzi reports: InvalidResourceException: Cluster CA is missing"],
            id="not made yet",
        ),
    ],
)
def test_an_unusable_user_is_reported_with_the_remedy(
    api: MemoryApi, clusters: StrimziClusters, user: dict[str, object], reason: Reason, words: Sequence[str]
):
    api.put(USERS, user)
    noted(refused(clusters), reason, words)


def test_a_cluster_that_has_not_come_up_is_not_ready(api: MemoryApi, clusters: StrimziClusters):
    api.put(
        KAFKAS,
        kafka(bootstrap={}, conditions=[strimzi_objects.not_ready("Creating", "Kafka cluster is being deployed")]),
    )
    words = ["has no address of listener tls", "Strimzi reports: Creating: Kafka cluster is being deployed"]
    noted(refused(clusters), Reason.STRIMZI_NOT_READY, words)
    api.put(KAFKAS, kafka(bootstrap={}, conditions=[]))
    noted(refused(clusters), Reason.STRIMZI_NOT_READY, ["check that the Strimzi operator is running"])


def test_cluster_formerly_up_and_now_sick_is_found(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(conditions=[strimzi_objects.not_ready("TimeoutException", "broker 2 does not answer")]))
    assert clusters.find(WANTED).strimzi.name == "my-cluster"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("my-cluster-cluster-ca-cert", ["Kafka default/my-cluster", "cluster operator"], id="authority"),
        pytest.param("bellwether", ["KafkaUser bellwether", "user operator"], id="user"),
    ],
)
def test_secret_that_is_missing_is_named_with_who_makes_it(
    api: MemoryApi, clusters: StrimziClusters, name: str, words: Sequence[str]
):
    api.delete(SECRETS, "default", name)
    with pytest.raises(Unauthenticated) as caught:
        clusters.find(WANTED)
    for word in (f"secret default/{name} does not exist", *words):
        assert word in str(caught.value)


def test_a_secret_of_the_users_former_kind_is_waited_out(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(listeners=[listener("tls", 9093, user="tls")]))
    api.put(USERS, kafka_user(kind="tls"))
    noted(
        refused(clusters),
        Reason.STRIMZI_NOT_READY,
        ["Secret of KafkaUser bellwether does not match its authentication tls"],
    )


def test_a_cluster_elsewhere_has_to_agree(api: MemoryApi, secrets: SecretReader, authority: Authority):
    elsewhere = Wanted(cluster_name="my-cluster", namespace="kafka")
    api.put(KAFKAS, kafka(namespace="kafka"))
    api.put(USERS, kafka_user(namespace="kafka"))
    api.put(SECRETS, strimzi_objects.scram_secret("elsewhere", namespace="kafka"))
    name = "my-cluster-cluster-ca-cert"
    api.put(SECRETS, strimzi_objects.secret(name, "kafka", ca_crt=authority.path.read_text()))
    clusters = StrimziClusters(secrets)
    words = [
        "kafka/my-cluster does not exist, or does not permit",
        "namespace default",
        "bellwether.dev/policies-from=default",
    ]
    noted(refused(clusters, elsewhere), Reason.STRIMZI_REFERENCE_INVALID, words)
    api.delete(KAFKAS, "kafka", "my-cluster")
    noted(refused(clusters, elsewhere), Reason.STRIMZI_REFERENCE_INVALID, words)
    api.put(KAFKAS, kafka(namespace="kafka", annotations={"bellwether.dev/policies-from": "default"}))
    found = clusters.find(elsewhere)
    assert found.credentials is not None
    assert (found.credentials.password, found.strimzi.namespace) == ("elsewhere", "kafka")
    assert Path(found.ca_file).exists()
    secrets.close()
    assert not Path(found.ca_file).exists()


def test_a_user_that_is_not_labelled_is_used_by_no_policy(api: MemoryApi, clusters: StrimziClusters):
    user = kafka_user()
    del user["metadata"]["labels"]["bellwether.dev/purpose"]
    api.put(USERS, user)
    words = ["KafkaUser bellwether lacks the label", "kubectl label kafkauser bellwether -n default"]
    noted(refused(clusters), Reason.STRIMZI_REFERENCE_INVALID, words)


def test_an_api_that_is_away_is_tried_again(api: MemoryApi, clusters: StrimziClusters):
    api.away = True
    with pytest.raises(Transient):
        clusters.find(WANTED)


def test_what_goes_on_around_a_cluster_is_seen(api: MemoryApi, clusters: StrimziClusters):
    api.put(KAFKAS, kafka(annotations={"strimzi.io/pause-reconciliation": "true"}))
    api.put(REBALANCES, strimzi_objects.rebalance("full", "Rebalancing"))
    api.put(REBALANCES, strimzi_objects.rebalance("of-another", "Rebalancing", cluster="other"))
    for broker in (1, 2):
        api.put(PODS, strimzi_objects.pod(broker, ready=broker == 1))
    api.put(PODS, strimzi_objects.pod(7, cluster="other"))
    seen = clusters.surroundings(clusters.find(WANTED).strimzi)
    assert seen.paused
    assert seen.rebalancing == ("full",)
    assert seen.pods == {1: Pod("my-cluster-brokers-1"), 2: Pod("my-cluster-brokers-2", ready=False)}

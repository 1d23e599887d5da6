"""Exactly the ACLs that docs/security/kafka-acls.md grants: all work is done with them; each one missed is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.kafka.brokers.broker_directory import BrokerDirectory
from bellwether.adapters.kafka.brokers.broker_probe import BrokerProbe
from bellwether.adapters.kafka.canary_client import ConfluentCanary, for_confluent
from bellwether.adapters.kafka.config_reader import KafkaConfigs
from bellwether.adapters.kafka.connection.broker_pool import BrokerPool, Limits
from bellwether.adapters.kafka.installation_marks import InstallationMarks, Standing, mark
from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.adapters.kafka.metadata_reader import KafkaReader
from bellwether.core.model.cluster import TopicPartition
from bellwether.core.settings.harm import Objectives
from bellwether.destinations import ANYWHERE
from bellwether.kafka_connection import Connection, Mechanism, Protocol, Security
from bellwether.ports.errors import Unauthorized
from bellwether.ports.kafka import Reorder
from bellwether.probes.canary.canary_probe import CanaryProbe
from bellwether.telemetry.metrics.probe_metrics import CanaryMetrics, ProbeMetrics
from realparts.secured import Acl
from testkit.processes.sites import condition
from testkit.values.security_settings import client_properties
from waiting import limit, until

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka
    from testkit.processes.sites import Site

pytestmark = pytest.mark.kafka

MARK = mark("bellwether", "5d8f0c1e-0000-4000-8000-000000000000")
PATIENT = Limits(opening_seconds=10, finding_seconds=20, request_seconds=20, read_seconds=60)
Roles = Mapping[str, tuple[Acl, ...]]
Without = Callable[[Acl | None], None]


@pytest.fixture
def connection(secured: SecuredKafka, user: str) -> Connection:
    security = Security(
        destinations=ANYWHERE,
        protocol=Protocol.SASL_SSL,
        mechanism=Mechanism.SCRAM_SHA_512,
        username=user,
        password=f"pw-0-{user}",
        ca_file=str(secured.authority.path),
    )
    return Connection(tuple(secured.bootstrap), security)


@pytest.fixture
def allowed(secured: SecuredKafka, user: str) -> Callable[[Sequence[Acl]], None]:
    """Allow the test's user exactly these things."""

    def allow(acls: Sequence[Acl]) -> None:
        secured.revoke(user)
        if acls:
            secured.grant(user, acls)

    return allow


def soon(look: Callable[[], object], seconds: float = 20) -> None:
    """Wait until ``look`` finds what it wants: each broker learns of ACLs in its own time."""
    until(look, seconds, every=0.2, ignoring=(Unauthorized, AssertionError))


def refused(work: Callable[[], object], acl: str, times: int = 3) -> None:
    """Wait until ``work`` is refused again and again, and check that the ACL to grant is named."""
    said = [""]

    def named() -> bool:
        try:
            work()
        except Unauthorized as error:
            said.append(str(error))
        else:
            said.append("")
        last = [one.replace("rant this user the", "rant the") for one in said[-times:]]
        return len(last) == times and all(f"rant the ACL {acl}" in one for one in last)

    until(named, 20, f"the ACL {acl} is named", seen=lambda: said[-1])


def without(acls: Sequence[Acl], missing: Acl) -> list[Acl]:
    return [acl for acl in acls if acl != missing]


def reads(connection: Connection) -> bool:
    cluster = KafkaReader(BrokerPool(connection, PATIENT)).read()
    return sum(p.topic == "orders" for p in cluster.partitions) == 6


def reads_settings(connection: Connection) -> bool:
    configs = KafkaConfigs(BrokerPool(connection, PATIENT))
    return bool(configs.topic_configs(["orders"], ["min.insync.replicas"]))


def work(connection: Connection) -> bool:
    """Reverse the order of a partition, elect its first, and put both back."""
    nodes = BrokerPool(connection, PATIENT)
    mover, name = KafkaMover(nodes), TopicPartition("orders", 0)
    (before,) = [p.replicas for p in KafkaReader(nodes).partitions(["orders"]) if p.index == 0]
    for order in (before[::-1], before):
        assert mover.reorder([Reorder(name, order)])[name].ok
        assert mover.elect([name])[name].ok
    return True


def test_the_documentation_grants_something_to_each_part(roles: Roles) -> None:
    assert set(roles) == {
        "bellwether",
        "bellwether-observe",
        "bellwether-reachability",
        "bellwether-canary",
        "bellwether-replication",
        "bellwether-sampler",
    }


def test_who_observes_sees_all_and_moves_nothing(connection: Connection, allowed: Any, roles: Roles) -> None:
    allowed(roles["bellwether-observe"])
    soon(lambda: reads(connection))
    nodes, name = BrokerPool(connection, PATIENT), TopicPartition("orders", 0)
    refused(lambda: KafkaMover(nodes).elect([name]), "Alter on Cluster")
    refused(lambda: KafkaMover(nodes).reorder([Reorder(name, (1, 2, 3))]), "Alter on Cluster")
    refused(lambda: KafkaMover(nodes).cancel([name]), "Alter on Cluster")


def test_who_enforces_moves_leaders_and_nothing_else(connection: Connection, allowed: Any, roles: Roles) -> None:
    allowed(roles["bellwether"])
    soon(lambda: reads(connection) and work(connection))
    marks = InstallationMarks(BrokerPool(connection, PATIENT), lambda: MARK, SystemClock())
    assert marks.standing(claims=True) == Standing()
    soon(lambda: marks.places() == {MARK: 1})
    marks.withdraw()
    client = AdminClient(for_confluent(connection))
    with pytest.raises(KafkaException, match="uthoriz"):
        client.create_topics([NewTopic("mine", 1, 1)])["mine"].result(limit(20))
    with pytest.raises(KafkaException, match="uthoriz"):
        client.delete_topics(["orders"])["orders"].result(limit(20))


@pytest.mark.parametrize("role", ["bellwether-observe", "bellwether"])
def test_each_acl_that_the_operator_misses_is_named(
    connection: Connection, allowed: Any, roles: Roles, role: str
) -> None:
    for missing in roles[role]:
        allowed(without(roles[role], missing))
        if missing.operation == "DescribeConfigs":
            refused(lambda: reads_settings(connection), "DescribeConfigs on Topic *")
            continue
        if missing.operation == "AlterConfigs":
            marks = InstallationMarks(BrokerPool(connection, PATIENT), lambda: MARK, SystemClock())
            refused(marks.places, "DescribeConfigs on Cluster")
            continue
        # Alter implies Describe, so without it the first thing that is refused is to read.
        wanted = "Describe on Cluster" if missing.resource == "Cluster" else "Describe on Topic *"
        refused(lambda: reads(connection), wanted)


def test_a_user_who_sees_some_topics_only_is_not_taken_for_one_who_sees_all(
    connection: Connection, allowed: Any
) -> None:
    for topic in ("orders", "__consumer_offsets"):
        allowed([Acl("Describe", "Cluster"), Acl("Describe", "Topic", topic)])
        refused(lambda: KafkaReader(BrokerPool(connection, PATIENT)).read(), "Describe on Topic *")


def test_the_reachability_probe_needs_one_acl_and_names_it(
    secured: SecuredKafka, connection: Connection, allowed: Any, roles: Roles
) -> None:
    probe, address = BrokerProbe(connection), secured.bootstrap[0]
    allowed(roles["bellwether-reachability"])
    soon(lambda: not probe.ask(address, 1, 10).weaker)
    answer = probe.ask(address, 1, 10)
    assert (answer.ok, answer.advertised["SECURE"]) == (True, address)
    assert set(BrokerDirectory(connection).brokers()) == {1, 2, 3}
    allowed([])
    soon(lambda: probe.ask(address, 1, 10).weaker)
    answer = probe.ask(address, 1, 10)
    assert answer.ok, "a broker answered, whichever"
    assert "grant the ACL DescribeConfigs on Cluster" in answer.message


def test_the_canary_works_with_its_acls_and_names_each_that_it_misses(
    secured: SecuredKafka, connection: Connection, allowed: Any, roles: Roles
) -> None:
    from realparts.kafka import create_topics
    from realparts.kafka_topics import delete_topics

    acls = roles["bellwether-canary"]
    topic = acls[0].name
    create_topics(secured.kafka.bootstrap, {topic: 3}, assignments={topic: [[1], [2], [3]]})
    try:
        for missing in (None, *acls):
            allowed([acl for acl in acls if acl != missing])
            _measure_by(connection, topic, missing)
    finally:
        delete_topics(secured.kafka.bootstrap, [topic])


def _measure_by(connection: Connection, topic: str, missing: Acl | None) -> None:
    """Start a canary, and wait until it measures, or names the right that it misses."""
    client = ConfluentCanary(connection, topic, limit(5))
    try:
        soon(lambda: set(client.partitions()) == {1, 2, 3})
        probe = CanaryProbe("here", lambda _: None, lambda _: None, SystemClock(), CanaryMetrics(ProbeMetrics()))
        probe.configure(Objectives(produce_milliseconds=10_000, fetch_milliseconds=10_000))
        probe.refresh(client, client.partitions(), frozenset({1, 2, 3}))
        probe.start()
        kind = "produce" if missing is None or missing.operation == "Write" else "fetch"
        said = f"not authorized: grant {missing.operation} on topic {topic}" if missing is not None else ""
        until(lambda: _felt(probe, kind) == said, 60, seen=lambda: f"{missing}: {probe.states()}")
        probe.stop()
    finally:
        client.close()


def _felt(probe: CanaryProbe, kind: str) -> str | None:
    """Why requests of a kind to broker 1 are not measured, empty if they are; None while nothing is known."""
    state = probe.states().get(1)
    requests = state.of(kind) if state is not None else None
    if requests is None or not (requests.trouble or (state is not None and state.fetch.times)):
        return None
    return requests.trouble


@pytest.fixture
def command(secured: SecuredKafka, user: str, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a verb as the test's user."""
    properties = client_properties(tmp_path / "client.properties", user, f"pw-0-{user}", secured.authority.path)
    options = ["--bootstrap", ",".join(secured.bootstrap), "--command-config", str(properties)]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "bellwether", *arguments, *options]
        return subprocess.run(line, capture_output=True, text=True, check=False, timeout=limit(120))

    return run


@pytest.mark.parametrize(
    ("role", "arguments"),
    [
        pytest.param("bellwether-sampler", ["sample", "--once", "--store", "{tmp}/store"], id="sampler"),
        pytest.param("bellwether-replication", ["probe", "replication", "--once"], id="replication prober"),
    ],
)
def test_a_part_works_with_its_acls_and_names_each_that_it_misses(
    command: Any, connection: Connection, allowed: Any, roles: Roles, tmp_path: Path, role: str, arguments: list[str]
) -> None:
    line = [argument.format(tmp=tmp_path) for argument in arguments]
    allowed(roles[role])
    soon(lambda: reads(connection))
    done = command(*line)
    assert done.returncode == 0, done.stdout + done.stderr
    for missing in roles[role]:
        allowed(without(roles[role], missing))
        refused(lambda: reads(connection), str(missing))
        done = command(*line)
        assert done.returncode == 1, done.stdout
        assert f"grant the ACL {missing}" in (done.stdout + done.stderr).replace("Grant this user", "grant")


def test_demoting_by_hand_without_acl_changes_nothing_and_names_it(
    command: Any, connection: Connection, allowed: Any, roles: Roles, tmp_path: Path
) -> None:
    allowed(roles["bellwether-observe"])
    soon(lambda: reads(connection))
    before = KafkaReader(BrokerPool(connection, PATIENT)).partitions(["orders"])
    for more in (["--dry-run"], []):
        done = command("demote", "1", "--record", str(tmp_path / "record"), *more)
        assert done.returncode == 3, done.stderr
        assert "Grant this user the ACL Alter on Cluster" in done.stdout
        assert ("would reorder 0 partitions and move 0 leaders" in done.stdout) == bool(more)
    assert KafkaReader(BrokerPool(connection, PATIENT)).partitions(["orders"]) == before


def test_the_doctor_works_with_what_is_documented_and_says_what_it_misses(
    command: Any, connection: Connection, allowed: Any, roles: Roles
) -> None:
    settings = Acl("DescribeConfigs", "Topic", "*")
    configs = KafkaConfigs(BrokerPool(connection, PATIENT))
    allowed([*roles["bellwether-observe"], settings])
    soon(lambda: reads(connection) and configs.topic_configs(["orders"], ["min.insync.replicas"]))
    done = command("doctor", "--topic", "orders")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "InSync  6 " in done.stdout
    assert "is not known" not in done.stdout
    refusal = command("doctor", "--unclean-election", "orders-0", "--accept-loss")
    assert refusal.returncode == 3
    assert "is not needed: its leader is" in refusal.stderr
    allowed(roles["bellwether-observe"])
    refused(lambda: configs.topic_configs(["orders"], ["min.insync.replicas"]), str(settings))
    done = command("doctor", "--topic", "orders")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"min.insync.replicas is unknown: {connection.bootstrap[0].partition(':')[0]}" in done.stdout
    assert f"grant the ACL {settings}" in done.stdout


@pytest.mark.apiserver
@pytest.mark.slow
def test_the_operator_says_which_acl_it_misses_and_goes_on_when_it_is_granted(
    site: Site, secured: SecuredKafka, user: str, scram: dict[str, Any], roles: Roles
) -> None:
    site.topics()
    before = site.orders()
    site.policy(kafka=scram)
    site.operator()
    said = "AclMissing", "Grant this user the ACL Describe on Cluster"
    site.until(lambda: all(map(str.__contains__, site.ready(), said)), 60, "the first ACL is named", site.ready)
    site.until(lambda: "AclMissing" in site.kubectl("get", "events"), 30, "its event follows")
    secured.grant(user, [Acl("Describe", "Cluster")])
    site.until(lambda: "grant the ACL Describe on Topic *" in site.ready()[1], 60, "the next is named", site.ready)
    secured.grant(user, [Acl("Describe", "Topic", "*")])
    site.until_reported()
    site.demote(1)
    site.until(
        lambda: "Grant this user the ACL Alter on Cluster" in str(condition(site.status(), "Settled")),
        60,
        "the last is named",
        site.status,
    )
    assert site.orders() == before
    secured.grant(user, [Acl("Alter", "Cluster")])
    site.until_demoted(1, before)
    secured.revoke(user, [Acl("Describe", "Cluster")])
    site.lift_and_wait(1, before)

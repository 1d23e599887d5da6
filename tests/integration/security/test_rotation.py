"""Credentials that are renewed beneath a working operator: noticed soon, followed, and no leader moves by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.core.model.cluster import TopicPartition
from realparts.secured import TOKEN_CLIENT, Acl
from testkit.processes.crash_points import REACHED
from testkit.processes.sites import condition

if TYPE_CHECKING:
    from realparts.secured import SecuredKafka
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

ALL = (Acl("Alter", "Cluster"), Acl("DescribeConfigs", "Cluster"), Acl("Describe", "Topic", "*"))
SOON = 30
"""Seconds in which a changed Secret counts while turns follow one another, with time to spare."""


@pytest.fixture
def demoted(site: Site, secured: SecuredKafka, user: str, scram: dict[str, Any]) -> Any:
    """A site whose broker 1 is demoted; what the orders were before."""
    site.topics()
    secured.grant(user, ALL)
    before = site.orders()
    site.policy(kafka=scram)
    site.operator()
    site.until_reported()
    site.demote(1)
    site.until_demoted(1, before)
    return before


def unmoved(site: Site, orders: dict[TopicPartition, tuple[int, ...]], wanted: Callable[[], object]) -> None:
    """Wait for something while no order changes and broker 1 leads nothing."""

    def look() -> object:
        assert site.orders() == orders
        assert site.led_by(1) == 0
        return wanted()

    site.until(look, SOON, "it comes about while nothing moves", lambda: (site.ready(), site.status()))


def refused(site: Site, *words: str) -> bool:
    """Whether one and the same status says that credentials are at fault, in these words."""
    status = site.status()
    ready, connected = condition(status, "Ready"), condition(status, "Connected")
    noted = ready.get("reason") == "CredentialsUnusable" and connected.get("status") == "False"
    return noted and all(word in str(ready.get("message")) for word in words)


def at_work(site: Site) -> bool:
    return site.settled()


def test_a_password_renewed_in_kafka_first_stops_the_operator_until_its_secret_says_the_same(
    site: Site, secured: SecuredKafka, user: str, renewed: Callable[[str], None], demoted: Any
) -> None:
    displaced = site.orders()
    secured.user(user, "pw-1")
    said = f"refused user '{user}'", "check spec.kafka.userSecretName (user)"
    unmoved(site, displaced, lambda: refused(site, *said))
    renewed("pw-1")
    unmoved(site, displaced, lambda: at_work(site))
    site.lift_and_wait(1, demoted)
    assert "pw-1" not in site.kubectl("get", "lp,bh,cm,events", "-o", "json") + site.processes[0].log.read_text()


def test_secret_renewed_first_is_followed_before_former_user_goes(
    site: Site, secured: SecuredKafka, user: str, put: Callable[..., None], demoted: Any
) -> None:
    displaced, other = site.orders(), f"{user}-b"
    secured.user(other, "pw-b")
    secured.grant(other, ALL)
    put("user", {"password": "pw-b", "sasl.jaas.config": _jaas(other, "pw-b")})
    log = site.processes[0].log
    unmoved(site, displaced, lambda: "kafka_reconnecting" in log.read_text())
    secured.revoke(user)
    end = time.monotonic() + 8
    unmoved(site, displaced, lambda: time.monotonic() > end)
    unmoved(site, displaced, lambda: at_work(site))  # the former user is not needed any more
    site.lift_and_wait(1, demoted)
    secured.revoke(other)


def test_a_secret_that_goes_bad_is_said_and_the_former_credentials_serve_on(
    site: Site, put: Callable[..., None], renewed: Callable[[str], None], user: str, demoted: Any
) -> None:
    displaced = site.orders()
    site.kubectl("delete", "secret", "user")
    unmoved(site, displaced, lambda: condition(site.status(), "CredentialsCurrent").get("status") == "False")
    said = condition(site.status(), "CredentialsCurrent")
    assert said["reason"] == "CredentialsUnusable"
    assert f"spec.kafka.userSecretName: secret {site.namespace}/user does not exist" in said["message"]
    unmoved(site, displaced, lambda: at_work(site) and "CredentialsUnusable" in site.kubectl("get", "events"))
    put("cluster-ca-cert", {"ca.crt": "hunter2"})
    renewed(f"pw-0-{user}")
    unmoved(site, displaced, lambda: "caSecretName" in str(condition(site.status(), "CredentialsCurrent")))
    site.lift(1)
    site.until_restored(demoted)  # former credentials lead leaders back, too


def test_password_renewed_in_middle_of_run_leaves_nothing_half_done(
    site: Site, secured: SecuredKafka, user: str, scram: dict[str, Any], renewed: Callable[[str], None]
) -> None:
    site.topics()
    secured.grant(user, ALL)
    before = site.orders()
    site.policy(kafka=scram, election={"batchSize": 15})
    operator = site.operator(
        "--lease-duration", "60", program="testkit.processes.crash_points", FREEZES_AT="after reorder 1"
    )
    site.until_reported()
    site.demote(1)
    site.until(lambda: REACHED in operator.log.read_text(), 30, "the operator is frozen between two requests")
    secured.user(user, "pw-1")
    operator.resume()
    site.until(lambda: "refused user" in str(site.status()), SOON, "the run stops", site.status)
    assert site.baselines(site.record()), "what was begun is on record"
    renewed("pw-1")
    site.until_demoted(1, before)
    site.lift_and_wait(1, before)


def test_a_client_certificate_that_has_expired_is_named_and_its_renewal_is_enough(
    site: Site, secured: SecuredKafka, put: Callable[..., None]
) -> None:
    site.topics()
    secured.grant("certified-operator", ALL)
    certificate, key = secured.authority.issue("certified-operator", expired=True)
    put("cluster-ca-cert", {"ca.crt": secured.authority.path})
    put("operator", {"user.crt": certificate, "user.key": key, "ca.crt": secured.authority.path})
    tls = {"caSecretName": "cluster-ca-cert"}
    kafka = {"bootstrapServers": secured.mutual, "tls": tls, "userSecretName": "operator"}
    site.policy(kafka=kafka, mode="Observe")
    site.operator()
    said = "which has expired on", "spec.kafka.userSecretName (operator)"
    site.until(lambda: all(one in site.ready()[1] for one in said), 60, "it is named", site.ready)
    certificate, key = secured.authority.issue("certified-operator")
    put("operator", {"user.crt": certificate, "user.key": key})
    took = site.until_reported(seconds=SOON)
    site.tell(f"a renewed certificate counts after {took:.1f} s")
    secured.revoke("certified-operator")


def test_a_client_s_secret_at_the_token_endpoint_is_renewed(
    site: Site, secured: SecuredKafka, put: Callable[..., None]
) -> None:
    secured.grant(TOKEN_CLIENT, ALL)
    put("cluster-ca-cert", {"ca.crt": secured.authority.path})
    put("oauth", {"secret": "token-pw-wrong", "ca.crt": secured.login_ca})
    oauth = {
        "tokenEndpoint": secured.tokens.url,
        "clientId": TOKEN_CLIENT,
        "clientSecretRef": {"name": "oauth", "key": "secret"},
        "caSecretName": "oauth",
    }
    tls = {"caSecretName": "cluster-ca-cert"}
    sasl = {"mechanism": "OAUTHBEARER", "oauth": oauth}
    site.topics()
    site.policy(kafka={"bootstrapServers": secured.bootstrap, "tls": tls, "sasl": sasl}, mode="Observe")
    site.operator()
    said = "check spec.kafka.sasl.oauth.clientId and spec.kafka.sasl.oauth.clientSecretRef"
    site.until(lambda: refused(site, said), 60, "it is refused", site.ready)
    put("oauth", {"secret": "token-pw-0", "ca.crt": secured.login_ca})
    site.until_reported(seconds=60)
    assert "token-pw" not in str(site.status()) + site.processes[0].log.read_text()


def test_probers_follow_renewed_password_and_no_leader_moves_by_it(
    site: Site, secured: SecuredKafka, user: str, scram: dict[str, Any], renewed: Callable[[str], None]
) -> None:
    site.topics()
    secured.grant(user, ALL)
    listener = {"listeners": ["SECURE"], "vantages": ["a", "b"]}
    site.policy(kafka=scram, detection={"externalReachability": listener})
    site.operator()
    site.prober("a")
    site.prober("b")
    well = [("Healthy", "SignalsPassing")] * 3
    site.until(lambda: [site.verdict(b) for b in (1, 2, 3)] == well, 90, "all are well", site.status)
    before = site.orders()
    secured.user(user, "pw-1")
    end = time.monotonic() + 15

    def look() -> bool:
        assert site.orders() == before
        return time.monotonic() > end

    site.until(look, 30, "nothing moves while every login is refused")
    renewed("pw-1")
    site.until(
        lambda: look() and [site.verdict(b) for b in (1, 2, 3)] == well,
        60,
        "all are well again",
        lambda: [site.verdict(b) for b in (1, 2, 3)],
    )
    assert not site.baselines(site.record())


def _jaas(name: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{name}" password="{password}";'

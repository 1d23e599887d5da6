"""Which listeners brokers advertise and no policy watches."""

from __future__ import annotations

from collections.abc import Mapping

from bellwether.core.doctor.unwatched_listeners import ListenerCheck, check_listeners
from testkit.messages import assert_wording


def settings(*names: str, **more: str) -> dict[str, str]:
    """A broker's, with an internal listener as well."""
    advertised = ["INTERNAL://in:9092", *(f"{name}://out:{port}" for port, name in enumerate(names, 9094))]
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"advertised.listeners": ",".join(advertised), "inter.broker.listener.name": "INTERNAL", **given}


def check(
    brokers: Mapping[int, Mapping[str, str]], *watched: str, connected: str = "in:9092", asked: int = 0
) -> ListenerCheck:
    known = range(1, 1 + (asked or len(brokers)))
    return check_listeners(brokers, watched, dict.fromkeys(known, connected), known)


def test_listener_that_is_not_watched_is_named_with_the_remedy():
    found = check({1: settings("CLIENTS", "PARTNERS"), 2: settings("CLIENTS", "PARTNERS")}, "CLIENTS")
    assert found.unwatched == {"PARTNERS": (1, 2)}
    assert_wording([*found.sentences()])


def test_where_all_are_watched_there_is_nothing_to_say():
    assert [*check({1: settings("CLIENTS", "PARTNERS")}, "CLIENTS", "PARTNERS").sentences()] == []


def test_listener_that_one_broker_alone_has_is_named_for_it():
    assert check({1: settings("CLIENTS"), 2: settings("CLIENTS", "ODD")}, "CLIENTS").unwatched == {"ODD": (2,)}


def test_listener_of_policys_own_connection_is_no_clients_listener():
    brokers = {1: settings("CLIENTS", "OPERATORS", inter_broker_listener_name="INTERNAL")}
    assert check(brokers, "CLIENTS", connected="out:9095").unwatched == {}


def test_listeners_among_brokers_and_controllers_are_no_clients_listeners():
    known = {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:9094",
        "controller.listener.names": "CONTROLLER",
    }
    assert check({1: known}, "EXTERNAL").unwatched == {}
    assert check({1: {**known, "security.inter.broker.protocol": "SSL"}}, "EXTERNAL").unwatched == {"PLAINTEXT": (1,)}


def test_a_watched_name_that_no_broker_advertises_is_named():
    found = check({1: settings("CLIENTS"), 2: settings("CLIENTS")}, "CLIENTS", "CLEINTS")
    assert_wording([*found.sentences()])


def test_what_could_not_be_read_is_said_without_conclusion():
    found = check({1: settings("CLIENTS")}, "CLIENTS", "ODD", asked=3)
    assert (found.unwatched, found.absent, found.unread) == ({}, (), (2, 3))
    assert_wording([*found.sentences()])


def test_a_refusal_says_what_to_grant():
    found = check_listeners(
        {}, ("CLIENTS",), {}, (1,), "kafka:9092 denies it: grant the ACL DescribeConfigs on Cluster"
    )
    assert_wording([*found.sentences()])

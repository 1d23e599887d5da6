"""A node's settings follow from its roles and ports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from realparts.kafka_settings import Node, key_store_setting, properties, render

BROKER = Node(id=1, folder=Path("b1"), internal_port=11, external_port=12, external_advertised_port=13)
CONTROLLER = Node(id=101, folder=Path("c1"), controller_port=21)


def test_a_broker_advertises_the_proxy_and_listens_behind_it() -> None:
    settings = properties(BROKER, [CONTROLLER], brokers=1)
    assert settings["process.roles"] == "broker"
    assert settings["listeners"] == "INTERNAL://127.0.0.1:11,EXTERNAL://127.0.0.1:12"
    assert settings["advertised.listeners"] == "INTERNAL://127.0.0.1:11,EXTERNAL://127.0.0.1:13"
    assert settings["controller.quorum.voters"] == "101@127.0.0.1:21"
    assert settings["offsets.topic.replication.factor"] == "1"


def test_a_controller_of_its_own_has_no_client_listener() -> None:
    settings = properties(CONTROLLER, [CONTROLLER], brokers=3)
    assert settings["process.roles"] == "controller"
    assert settings["listeners"] == "CONTROLLER://127.0.0.1:21"
    assert "advertised.listeners" not in settings


def test_a_combined_node_plays_both_roles_and_its_metadata_lie_outside_its_data() -> None:
    node = replace(BROKER, controller_port=14, rack="a")
    settings = properties(node, [node], brokers=3)
    assert settings["process.roles"] == "broker,controller"
    assert settings["broker.rack"] == "a"
    assert not Path(settings["metadata.log.dir"]).is_relative_to(settings["log.dirs"])


def test_the_callers_properties_win() -> None:
    node = replace(BROKER, extra={"min.insync.replicas": "2", "num.io.threads": "9"})
    settings = properties(node, [CONTROLLER], brokers=3)
    assert (settings["min.insync.replicas"], settings["num.io.threads"]) == ("2", "9")


def test_listeners_may_have_other_names() -> None:
    names = {"SECURE": "TLS-9093", "EXTERNAL": "EXTERNAL-9094"}
    stores = {"key_store": Path("in.pem"), "external_key_store": Path("out.pem")}
    node = replace(BROKER, secure_port=15, names=names, **stores)  # type: ignore[arg-type]
    settings = properties(node, [CONTROLLER], brokers=3)
    expected = "INTERNAL://127.0.0.1:11,EXTERNAL-9094://127.0.0.1:13,TLS-9093://127.0.0.1:15"
    assert settings["advertised.listeners"] == expected
    speaks = dict(pair.split(":") for pair in settings["listener.security.protocol.map"].split(","))
    assert (speaks["EXTERNAL-9094"], speaks["TLS-9093"], speaks["INTERNAL"]) == ("SASL_SSL", "SASL_SSL", "PLAINTEXT")
    assert settings[key_store_setting("tls-9093")] == "in.pem"
    assert settings[key_store_setting("external-9094")] == "out.pem"
    assert "listener.name.tls-9093.scram-sha-512.sasl.jaas.config" in settings


def test_backslashes_survive_javas_properties_format() -> None:
    assert render({"a": "b\\c"}) == "a=b\\\\c\n"


def test_an_external_listener_with_certificates_of_its_own_speaks_tls_and_the_internal_one_does_not() -> None:
    node = replace(BROKER, secure_port=15, key_store=Path("in.pem"), external_key_store=Path("out.pem"))
    settings = properties(node, [CONTROLLER], brokers=3)
    speaks = dict(pair.split(":") for pair in settings["listener.security.protocol.map"].split(","))
    assert (speaks["EXTERNAL"], speaks["SECURE"], speaks["INTERNAL"]) == ("SASL_SSL", "SASL_SSL", "PLAINTEXT")
    assert settings[key_store_setting("secure")] == "in.pem"
    assert settings[key_store_setting("external")] == "out.pem"
    plain = properties(BROKER, [CONTROLLER], brokers=3)
    assert "EXTERNAL:PLAINTEXT" in plain["listener.security.protocol.map"]
    assert key_store_setting("external") not in plain

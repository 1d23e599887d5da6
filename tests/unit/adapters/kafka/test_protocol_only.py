"""kafka-python's clients are imported only by those who use them, and are there for them."""

from __future__ import annotations

import subprocess
import sys

CLIENTS = ("kafka.admin", "kafka.consumer", "kafka.producer", "kafka.net.manager", "kafka.protocol.admin.acl")


def loaded(program: str) -> set[str]:
    """The clients that a process has imported in the end."""
    ending = f"import sys; print(*({set(CLIENTS)!r} & sys.modules.keys()))"
    command = [sys.executable, "-c", f"{program}\n{ending}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_requests_are_encoded_without_any_client() -> None:
    assert loaded("import bellwether.adapters.kafka.leader_mover, bellwether.adapters.kafka.metadata_reader") == set()


def test_scram_proofs_are_computed_without_any_client() -> None:
    assert loaded("import bellwether.adapters.kafka\nfrom kafka.net.sasl.scram import ScramClient") == set()


def test_who_asks_for_a_client_gets_it() -> None:
    program = "import bellwether.adapters.kafka\nfrom kafka import KafkaConsumer\nassert KafkaConsumer.poll"
    assert {"kafka.admin", "kafka.consumer", "kafka.producer"} <= loaded(program)


def test_who_asks_for_a_subpackage_gets_what_it_exports() -> None:
    program = "import bellwether.adapters.kafka\nimport kafka.net\nassert kafka.net.KafkaConnectionManager"
    assert "kafka.net.manager" in loaded(program)


def test_what_a_package_does_not_have_is_an_attribute_error() -> None:
    program = "import bellwether.adapters.kafka, kafka\nassert not hasattr(kafka, 'nothing')"
    assert "kafka.consumer" in loaded(program)

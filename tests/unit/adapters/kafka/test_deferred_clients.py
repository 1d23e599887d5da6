"""kafka-python's clients: not imported by our adapters, and there for whoever uses them in the same process."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(program: str) -> str:
    """What a process prints that has imported our adapters first."""
    program = f"import sys\nimport bellwether.adapters.kafka.metadata_reader\n{program}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_reading_metadata_needs_no_client_of_kafka_python():
    assert run("print([m for m in ('kafka.admin', 'kafka.consumer', 'kafka.producer') if m in sys.modules])") == "[]"


@pytest.mark.parametrize(
    "program",
    [
        "import kafka; print(kafka.KafkaConsumer.__name__)",
        "from kafka import KafkaConsumer; print(KafkaConsumer.__name__)",
        "import kafka.consumer; print(kafka.consumer.KafkaConsumer.__name__)",
        "import kafka; kafka.KafkaProducer; print(kafka.protocol.consumer and kafka.KafkaConsumer.__name__)",
    ],
)
def test_a_client_is_initialised_when_it_is_used(program: str):
    assert run(program) == "KafkaConsumer"


def test_a_name_that_kafka_python_does_not_have_is_an_attribute_error():
    assert run("import kafka\ntry: kafka.Nothing\nexcept AttributeError as e: print(e)").endswith("'Nothing'")


def test_a_package_that_was_imported_before_is_left_as_it_is():
    program = (
        "import kafka, sys; before = kafka; import bellwether.adapters.kafka; print(sys.modules['kafka'] is before)"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"
    )

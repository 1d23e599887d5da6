"""The page of used and unused fields against the message schemas in Kafka's own jar."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any

import pytest

from realparts import kafka_jars
from testkit.kafka.answers_page import SECTIONS, fields, listed

pytestmark = pytest.mark.kafka


def schema(name: str) -> Any:
    (jar,) = kafka_jars.folder().glob("kafka-clients-*.jar")
    with zipfile.ZipFile(jar) as found:
        text = found.read(f"common/message/{name}Response.json").decode()
    return json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))


def alike(field: str) -> str:
    """One field has other names in kafka-python."""
    return re.sub("(Cluster|Topic)AuthorizedOperations", "authorized_operations", field)


@pytest.mark.parametrize("name", SECTIONS)
def test_the_page_names_every_field_of_kafkas_schema(name: str) -> None:
    low, high, text = SECTIONS[name]
    found, named = schema(name), sorted(map(alike, listed(text)))
    wanted = sorted(map(alike, fields(found, low, high)))
    if int(found["validVersions"].split("-")[-1]) < high:  # a Kafka before the newest that we speak to
        assert set(wanted) <= set(named)
    else:
        assert named == wanted

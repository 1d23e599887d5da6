"""``docs/internals/kafka-answers.md`` lists every request that is sent, and each field and code of its answers."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

import pytest

from bellwether.adapters.kafka.connection import connection_errors
from sourcetree import ROOT
from testkit.kafka.answers_page import PAGE, SECTIONS, fields, listed

ADAPTERS = sorted((ROOT / "operator/bellwether/adapters/kafka").rglob("*.py"))
SOURCE = "\n".join(path.read_text() for path in ADAPTERS)
MODULES = ("metadata", "sasl", "consumer", "admin.cluster", "admin.configs", "admin.topics", "admin.client_quotas")


def schema(name: str) -> Mapping[str, Any]:
    """The protocol's own description of a response."""
    modules = (importlib.import_module(f"kafka.protocol.{module}") for module in MODULES)
    found = next(kind for module in modules if (kind := getattr(module, f"{name}Response", None)) is not None)
    return dict(found._json)


def test_every_request_in_the_source_has_a_section() -> None:
    assert set(re.findall(r"\b([A-Z]\w+)Response\b", SOURCE)) - {""} == SECTIONS.keys()


@pytest.mark.parametrize("name", SECTIONS)
def test_every_field_is_used_or_listed_with_a_reason(name: str) -> None:
    low, high, text = SECTIONS[name]
    assert sorted(listed(text)) == sorted(fields(schema(name), low, high))
    assert [line for line in text.splitlines() if line.startswith("- not needed") and "`: " not in line] == []


@pytest.mark.parametrize("name", sorted(SECTIONS.keys() - {"Metadata"}))
def test_what_is_listed_as_used_is_in_the_source(name: str) -> None:
    names = {path.rpartition(".")[2] for path in listed(SECTIONS[name][2], "used")}
    snakes = {re.sub(r"(?<!^)(?=[A-Z])", "_", one).lower() for one in names}
    assert {one for one in snakes if one not in SOURCE} == set()


def test_every_code_that_is_distinguished_is_in_the_table() -> None:
    known = {name for name, value in vars(connection_errors).items() if name.isupper() and isinstance(value, int)}
    known |= {name.lstrip("_") for name in re.findall(r"^(_[A-Z_]+) = \d+$", SOURCE, re.MULTILINE) if "LEADER" in name}
    assert {name for name in known if f"`{name}`" not in PAGE} == set()

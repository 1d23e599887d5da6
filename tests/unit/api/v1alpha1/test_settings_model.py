"""A model of core settings has their defaults, bounds and descriptions, and is converted back to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from bellwether.api.v1alpha1.settings_model import SettingsModel
from bellwether.core.settings.field_doc import FieldDoc


@dataclass(frozen=True, kw_only=True)
class Inner:
    share: Annotated[int, FieldDoc("Share in percent.", 1, 100)] = 50


@dataclass(frozen=True, kw_only=True)
class Probing:
    enabled: Annotated[bool, FieldDoc("Whether it is probed.")] = True
    period_seconds: Annotated[int, FieldDoc("Seconds between two probes.", 1, 60)] = 5
    names: tuple[str, ...] = ()
    inner: Inner = Inner()


class InnerModel(SettingsModel[Inner]):
    """A part."""


class ProbingModel(SettingsModel[Probing]):
    """A model that writes two fields in its own way."""

    names: tuple[str, ...] = Field(default=(), max_length=1, description="Names.")
    inner: InnerModel = Field(default_factory=InnerModel, description="A part.")


def test_defaults_are_those_of_the_dataclass_and_nested_models_are_converted() -> None:
    assert ProbingModel().to_core() == Probing()
    given = ProbingModel.model_validate({"periodSeconds": 60, "names": ["a"], "inner": {"share": 1}})
    assert given.to_core() == Probing(period_seconds=60, names=("a",), inner=Inner(share=1))


@pytest.mark.parametrize(
    "body",
    [
        {"periodSeconds": 0},
        {"periodSeconds": 61},
        {"periodSeconds": "5"},
        {"enabled": "true"},
        {"names": ["a", "b"]},
        {"inner": {"share": 101}},
        {"unknown": 1},
    ],
    ids=str,
)
def test_bounds_types_and_unknown_fields_are_checked(body: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProbingModel.model_validate(body)


def test_fields_keep_the_order_of_the_dataclass_and_its_descriptions() -> None:
    properties = ProbingModel.model_json_schema(by_alias=True)["properties"]
    assert list(properties) == ["enabled", "periodSeconds", "names", "inner"]
    assert (properties["periodSeconds"]["description"], properties["periodSeconds"]["maximum"]) == (
        "Seconds between two probes.",
        60,
    )

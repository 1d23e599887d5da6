"""Models of classes of the core: settings with their bounds and descriptions; status with its names, units, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from bellwether.api.v1alpha1.core_models import Of, SettingsModel, StatusModel
from bellwether.core.settings.setting import SETTING, Setting


@dataclass(frozen=True, kw_only=True)
class Inner:
    share: Annotated[int, Setting(1, 100)] = 50
    """Share in percent."""


@dataclass(frozen=True, kw_only=True)
class Probing:
    enabled: Annotated[bool, SETTING] = True
    """Whether it is probed."""
    period_seconds: Annotated[int, Setting(1, 60)] = 5
    """Seconds between two probes."""
    names: tuple[str, ...] = ()
    inner: Inner = Inner()


class InnerModel(SettingsModel[Inner]):
    """A part."""


class ProbingModel(SettingsModel[Probing]):
    """A model that writes two fields in its own way."""

    names: tuple[str, ...] = Field(default=(), max_length=1, description="Names.")
    inner: InnerModel = Field(default_factory=InnerModel, description="A part.")


def test_settings_have_defaults_of_dataclass() -> None:
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


@dataclass(frozen=True)
class Core:
    name: str
    load: float
    inner: Core | None = None
    hosts: tuple[str, ...] = ()
    internal: int = 0


class Part(StatusModel[Core]):
    name: str
    load: Annotated[int, Of(times=1)]


class Shown(StatusModel[Core]):
    title: Annotated[str, Of("name")] = Field(max_length=5)
    load_milli: Annotated[int, Of("load", 1000)] = Field(ge=0, le=9000)
    inner: Part | None = None
    inner_name: Annotated[str, Of("inner.name")] = "none"
    hosts: tuple[Annotated[str, Field(max_length=253)], ...] = Field(default=(), max_length=2)
    size: int = 0


VALUE = Core("a", 2.5, Core("b", 0.0), ("host-1", "host-2"))


def test_value_is_shown_in_units_and_names_of_the_api() -> None:
    assert Shown.of(VALUE, size=3).body() == {
        "title": "a",
        "loadMilli": 2500,
        "inner": {"name": "b", "load": 0},
        "innerName": "b",
        "hosts": ["host-1", "host-2"],
        "size": 3,
    }


def test_field_without_source_is_an_error() -> None:
    with pytest.raises(AttributeError, match="size"):
        Shown.of(VALUE)


def test_shown_value_is_read_back() -> None:
    assert Shown.of(VALUE, size=1).to_core() == VALUE
    assert Shown.of(VALUE, size=1).to_core(internal=7).internal == 7


@pytest.mark.parametrize(("load", "shown"), [(-1.0, 0), (9.5, 9000), (math.inf, 9000), (math.nan, 0)])
def test_number_stays_within_bounds_of_the_api(load: float, shown: int) -> None:
    assert Shown.of(Core("a", load), size=1).load_milli == shown


def test_long_text_and_list_are_cut() -> None:
    shown = Shown.of(Core("abcdef", 0.0, hosts=("h" * 9, "b", "c")), size=1)
    assert (shown.title, shown.hosts) == ("abcd…", ("h" * 9, "b"))

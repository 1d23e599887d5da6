"""A value of the core in a status and back: names, units, limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import Field

from bellwether.api.v1alpha1.status.status_model import Of, StatusModel


@dataclass(frozen=True)
class Core:
    name: str
    load: float
    share: float | None = None
    inner: Core | None = None
    hosts: tuple[str, ...] = ()
    internal: int = 0


class Shown(StatusModel[Core]):
    title: Annotated[str, Of("name")] = Field(max_length=5)
    load_milli: Annotated[int, Of("load", 1000)] = Field(ge=0, le=9000)
    share_percent: Annotated[str | None, Of("share", percent=1)] = None
    inner: Shown | None = None
    inner_name: Annotated[str, Of("inner.name")] = "none"
    hosts: tuple[Annotated[str, Field(max_length=253)], ...] = Field(default=(), max_length=2)
    size: int = 0


VALUE = Core("a", 2.5, 0.125, Core("b", 0.0), ("host-1", "host-2"))


def test_value_is_shown_in_units_and_names_of_the_api() -> None:
    assert Shown.of(VALUE, size=3).body() == {
        "title": "a",
        "loadMilli": 2500,
        "sharePercent": "12.5",
        "inner": {"title": "b", "loadMilli": 0, "innerName": "none", "hosts": [], "size": 0},
        "innerName": "b",
        "hosts": ["host-1", "host-2"],
        "size": 3,
    }


def test_shown_value_is_read_back() -> None:
    assert Shown.of(VALUE).to_core() == VALUE
    assert Shown.of(VALUE).to_core(internal=7).internal == 7


@pytest.mark.parametrize(("load", "shown"), [(-1.0, 0), (9.5, 9000), (math.inf, 9000), (math.nan, 0)])
def test_number_stays_within_bounds_of_the_api(load: float, shown: int) -> None:
    assert Shown.of(Core("a", load)).load_milli == shown


def test_long_text_and_list_are_cut() -> None:
    shown = Shown.of(Core("abcdef", 0.0, hosts=("h" * 9, "b", "c")))
    assert (shown.title, shown.hosts) == ("abcd…", ("h" * 9, "b"))

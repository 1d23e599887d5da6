"""Overrides hold until their time; a signal ages alone."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import datetime

import pytest

from bellwether.core.signals import Signal
from testkit.values.builders import after, override, snapshot


@pytest.mark.parametrize(
    ("until", "holds"),
    [
        pytest.param(None, True, id="until it is taken away"),
        pytest.param(after(10.1), True, id="its time has not come"),
        pytest.param(after(10), False, id="its time is now"),
        pytest.param(after(-1), False, id="its time is past"),
    ],
)
def test_an_override_holds_until_its_time(until: datetime | None, holds: bool):
    said = override(1, until=until)
    assert said.active(after(10)) is holds
    assert snapshot(now=after(10), overrides=[said]).override_of(1) == (said if holds else None)


def test_an_override_is_of_one_broker():
    assert snapshot(overrides=[override(1)]).override_of(2) is None


def test_an_aged_signal_keeps_everything_else():
    values = {field.name: object() for field in fields(Signal)}
    made = Signal(**values)  # type: ignore[arg-type]
    assert made.aged(5.0) == replace(made, age_seconds=5.0)

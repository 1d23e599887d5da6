"""A broker's way back in events: every wave once, its end, and a warning where it is rolled back."""

from __future__ import annotations

import pytest

from bellwether.controllers.reporting.events import news
from bellwether.core.planning.plan import Plan
from bellwether.core.reporting.report import Report
from bellwether.core.settings.policy import Mode, Policy
from testkit.messages import assert_wording
from testkit.values.builders import decisions, returning, said

ENFORCE = Policy(name="main", mode=Mode.ENFORCE)


def at(share: int | None, *demoted: int) -> Report:
    """Broker 1 with that share of its leaders back; None where it is not on the way back."""
    back = [] if share is None else [returning(1, share)]
    return said(policy=ENFORCE, plan=Plan(decisions=decisions(*demoted, back=back)))


def told(before: Report | None, now: Report) -> list[tuple[str, bool]]:
    return [(str(n.reason), n.warning) for n in news(before, now)]


@pytest.mark.parametrize(
    ("before", "now", "reasons"),
    [
        pytest.param(at(None, 1), at(10), [("Promoted", False), ("LeadersReturning", False)], id="it begins"),
        pytest.param(at(10), at(10), [], id="unchanged"),
        pytest.param(at(10), at(50), [("LeadersReturning", False)], id="it goes on"),
        pytest.param(at(50), at(None), [("LeadersReturned", False)], id="it ends"),
        pytest.param(at(50), at(None, 1), [("Demoted", True), ("WaveRolledBack", True)], id="a relapse"),
        pytest.param(at(50), at(0), [("WaveRolledBack", True)], id="it went down"),
        pytest.param(at(None, 1), at(None), [("Promoted", False)], id="all at once"),
        pytest.param(None, at(10), [("LeadersReturning", False)], id="after a start"),
    ],
)
def test_a_changed_restoration_gives_an_event(before: Report | None, now: Report, reasons: list[tuple[str, bool]]):
    assert told(before, now) == reasons


def test_events_of_restorations_name_wave_and_lost_seconds():
    (first, second) = [n.message for n in news(at(None, 1), at(10)) if n.broker == 1]
    assert_wording(second)
    assert "its leaders are restored" in first
    rolled = next(n for n in news(at(50), at(None, 1)) if n.reason == "WaveRolledBack")
    assert_wording(rolled.message)

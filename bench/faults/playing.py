"""Plays one scenario on a running stage: all well, break, look on, judge, repair, all well again.

In: a ``Scenario`` and a ``Stage``. Out: a ``Result``. Every wait has a limit; what goes wrong on the way, other than a
verdict, is a result that is wrong. Called by ``__main__``.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bellwether.ports.errors import BellwetherError
from faults.expectations import wrong
from faults.scenarios import Scenario
from faults.stage import PartDied, Stage
from realparts.apiserver import KubectlFailed
from realparts.processes import StartFailed
from waiting import TooLate

TROUBLES = (TooLate, PartDied, StartFailed, KubectlFailed, BellwetherError, OSError, subprocess.SubprocessError)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one scenario; ``mended`` is whether all was well again, so that the next one may follow."""

    scenario: Scenario
    verdict: str
    wrong: tuple[str, ...]
    to_figure: float | None = None
    to_verdict: float | None = None
    to_zero_leaders: float | None = None
    to_well: float | None = None
    healthy_demoted: tuple[int, ...] = ()
    demoted: tuple[int, ...] = ()
    pages: tuple[str, ...] = ()
    said: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    mended: bool = True

    @property
    def ok(self) -> bool:
        """Whether all was as expected."""
        return not self.wrong

    def row(self) -> dict[str, Any]:
        """The result as it is in the report."""
        return {
            "scenario": self.scenario.name,
            "what": self.scenario.what,
            "expected": str(self.scenario.expected),
            "verdict": self.verdict,
            "ok": self.ok,
            "wrong": list(self.wrong),
            "seconds_to_figure": self.to_figure,
            "seconds_to_verdict": self.to_verdict,
            "seconds_to_zero_leaders": self.to_zero_leaders,
            "seconds_to_well_again": self.to_well,
            "demoted": list(self.demoted),
            "healthy_brokers_demoted": len(self.healthy_demoted),
            "pages": list(self.pages),
            "said": self.said,
            "seconds": self.seconds,
        }


def play(scenario: Scenario, stage: Stage, step: Callable[[str], None]) -> Result:
    """Play it. Never raises what a real part may do; only what ends the whole run."""
    started = time.monotonic()
    try:
        step("waiting until all is well")
        stage.settle()
    except TROUBLES as problem:
        return Result(scenario, "not played", (f"before the fault: {problem}",), seconds=_since(started), mended=False)
    judged = None
    mended = started
    try:
        step("breaking")
        stage.witness.begin()
        with scenario.fault(stage):
            judged = _look_on(scenario, stage, step)
            mended = time.monotonic()
            step("repair")
        stage.settle()
    except TROUBLES as problem:
        when = "during the fault" if judged is None else "after it was repaired"
        trouble = f"{when}: {problem}"
        before = judged or _judged(scenario, stage)
        return Result(
            scenario,
            **{**before, "wrong": (*before["wrong"], trouble)},
            seconds=_since(started),
            mended=False,
        )
    return Result(scenario, **judged, to_well=_since(mended), seconds=_since(started))


def _look_on(scenario: Scenario, stage: Stage, step: Callable[[str], None]) -> dict[str, Any]:
    witness, expected = stage.witness, scenario.expected
    step(f"broken, waiting for: {expected}")
    late = ""
    try:
        stage.until(lambda: witness.ask(expected.reached), scenario.limit, str(expected))
        step(f"{expected}; looking on for {scenario.watched:g} s")
        stage.rest(scenario.watched)
    except TooLate as problem:
        late = str(problem)
    found = _judged(scenario, stage)
    return {**found, "wrong": (*found["wrong"], *([late] if late else []))}


def _judged(scenario: Scenario, stage: Stage) -> dict[str, Any]:
    expected = scenario.expected

    def noted(seen: Any) -> dict[str, Any]:
        words = dict.fromkeys(str(seen.word(broker) or "nothing") for broker in expected.brokers)
        return {
            "verdict": ", ".join(words),
            "wrong": tuple(wrong(expected, seen)),
            "to_figure": _rounded(expected.seconds_to_figure(seen)),
            "to_verdict": _rounded(expected.seconds_to_verdict(seen)),
            "to_zero_leaders": _rounded(expected.seconds_to_zero_leaders(seen)),
            "healthy_demoted": tuple(expected.healthy_demoted(seen)),
            "demoted": tuple(sorted(seen.demoted_at)),
            "pages": tuple(seen.pages),
            "said": {str(b): [f"{at:.1f} s {word}" for at, word in said] for b, said in sorted(seen.words.items())},
        }

    return stage.witness.ask(noted)


def _since(moment: float) -> float:
    return round(time.monotonic() - moment, 1)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)

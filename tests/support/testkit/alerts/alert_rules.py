"""The rule files of the chart: read, rewritten for tests, and given to the real promtool.

Called by the tests of alerts and of their runbook pages.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from realparts import gotools
from sourcetree import ROOT
from testkit.alerts.cases.alert_case import Case
from waiting import limit

FOLDER = ROOT / "helm" / "bellwether" / "files" / "alerts"
PAGES = ROOT / "docs" / "alerts"
RUNBOOKS = "https://bellwether.dev/docs/alerts/"

Rule = Mapping[str, Any]


def files() -> list[Path]:
    """The rule files."""
    return sorted(FOLDER.glob("*.yaml"))


def alerts(folder: Path = FOLDER) -> list[Rule]:
    """Every alerting rule, in the order of the files."""
    groups = [group for path in sorted(folder.glob("*.yaml")) for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def shortened(folder: Path, *, hold: int = 5, pace: int = 60, silence: int = 8) -> list[Path]:
    """Copies of the rule files for tests that cannot wait.

    A ``for`` lasts ``hold`` seconds at most; range selectors are ``pace`` times shorter, but never under twenty
    seconds, in which what is tried every few seconds is seen more than once; a prober is silent after ``silence``
    seconds instead of 45; groups are evaluated each second. Nothing else changes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for path in files():
        found = yaml.safe_load(path.read_text())
        for group in found["groups"]:
            group["interval"] = "1s"
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = f"{min(hold, _seconds(rule['for']))}s"
                ranges = re.compile(r"\[(\d+[smhd])\]")
                quick = ranges.sub(lambda found: f"[{max(20, _seconds(found[1]) // pace)}s]", rule["expr"])
                rule["expr"] = re.sub(r"> 45\b", f"> {silence}", quick)
        copies.append(folder / path.name)
        copies[-1].write_text(json.dumps(found))  # JSON is YAML
    return copies


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def promtool(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the real promtool."""
    command = [gotools.binary(gotools.PROMTOOL), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=limit(120))


def verdict(cases: Sequence[Case], directory: Path) -> str:
    """What promtool has to say against cases; empty when all came about as told."""
    rules = alerts()
    tests = []
    for case in cases:
        states = {"__name__": "ALERTS", "alertname": case.alert, "alertstate": "firing"}
        of_rules = [dict(rule["labels"]) for rule in rules if rule["alert"] == case.alert]
        samples = []
        for fires in case.fires:
            # Rules of one name differ by a label that the case names.
            own = next(labels for labels in of_rules if all(labels.get(k, v) == v for k, v in fires.items()))
            samples.append({"labels": _selector({**own, **fires, **states}), "value": 1})
        asked = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
        tests.append(
            {**_series(case), "promql_expr_test": [{"expr": asked, "eval_time": case.at, "exp_samples": samples}]}
        )
    done = _tested(tests, directory, {case.alert for case in cases})
    return "" if done.returncode == 0 else done.stdout + done.stderr


def value(expr: str, series: Mapping[str, str], samples: Sequence[tuple[str, float]], directory: Path) -> str:
    """What promtool has to say against an expression giving these samples after five minutes; empty when it does."""
    given = [{"series": name, "values": values} for name, values in series.items()]
    expected = [{"labels": labels, "value": number} for labels, number in samples]
    asked = [{"expr": expr, "eval_time": "5m", "exp_samples": expected}]
    done = _tested([{"interval": "15s", "input_series": given, "promql_expr_test": asked}], directory, set())
    return "" if done.returncode == 0 else done.stdout + done.stderr


def told(cases: Sequence[Case], directory: Path) -> str:
    """What the alerts of cases say to people, as promtool prints it."""
    asked = [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": []} for case in cases]
    tests = [{**_series(c), "alert_rule_test": [a]} for c, a in zip(cases, asked, strict=True)]
    done = _tested(tests, directory, {case.alert for case in cases})
    return done.stdout + done.stderr


def _series(case: Case) -> Mapping[str, Any]:
    given = [{"series": name, "values": values} for name, values in case.series.items()]
    return {"name": str(case), "interval": case.every, "input_series": given}


def _tested(
    tests: Sequence[Mapping[str, Any]], directory: Path, wanted: Collection[str]
) -> subprocess.CompletedProcess[str]:
    """Run promtool with the recording rules and the wanted alerts: days of every alert would take minutes."""
    every = {test["interval"] for test in tests}
    assert len(every) == 1, "rules are evaluated as often as samples come"
    copies = []
    for path in files():
        found = yaml.safe_load(path.read_text())
        for group in found["groups"]:
            group["rules"] = [rule for rule in group["rules"] if rule.get("alert") in {None, *wanted}]
        copies.append(directory / f"rules-{path.name}")
        copies[-1].write_text(json.dumps(found))  # JSON is YAML
    test = directory / "test.yaml"
    given = {"rule_files": [str(p) for p in copies], "evaluation_interval": every.pop(), "tests": tests}
    test.write_text(json.dumps(given))
    return promtool("test", "rules", test)


def _selector(labels: Mapping[str, str]) -> str:
    inside = ", ".join(f'{name}="{value}"' for name, value in labels.items() if name != "__name__")
    return f"{labels['__name__']}{{{inside}}}"

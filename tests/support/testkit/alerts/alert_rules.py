"""The rule files of the chart: read, rewritten for tests, and given to the real promtool.

Called by the tests of alerts and of their runbook pages.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bellwether import documentation
from realparts import gotools
from sourcetree import ROOT
from testkit.alerts.cases.alert_case import Case
from waiting import limit

FOLDER = ROOT / "helm" / "bellwether" / "files" / "alerts"
PAGES = ROOT / "docs" / "alerts"
RUNBOOKS = documentation.page("alerts/README.md")

Rule = Mapping[str, Any]


def files() -> list[Path]:
    """The rule files."""
    return sorted(FOLDER.glob("*.yaml"))


def alerts(folder: Path = FOLDER) -> list[Rule]:
    """Every alerting rule, in the order of the files."""
    groups = [group for path in sorted(folder.glob("*.yaml")) for group in _read(path.read_text())["groups"]]
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
        found = _read(path.read_text())
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


def _read(text: str) -> Any:
    return json.loads(_as_json(text))  # a copy, which may be changed


@functools.cache
def _as_json(text: str) -> str:
    return json.dumps(yaml.safe_load(text))


def _seconds(duration: str) -> int:
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[duration[-1]]


def promtool(
    *arguments: str | Path, stdin: str = "", stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run the real promtool."""
    command, time = [gotools.binary(gotools.PROMTOOL), *arguments], limit(120)
    return subprocess.run(
        command, input=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True, check=False, timeout=time
    )


def verdicts(groups: Sequence[Sequence[Case]], directory: Path) -> list[tuple[str, str]]:
    """For each group, by one promtool: what differs from its cases, and the texts of its first alert that fires."""
    rules, paths = alerts(), []
    for number, cases in enumerate(groups):
        tests: list[dict[str, Any]] = []
        for case in cases:
            states = {"__name__": "ALERTS", "alertname": case.alert, "alertstate": "firing"}
            of_rules = [dict(rule["labels"]) for rule in rules if rule["alert"] == case.alert]
            samples = []
            for fires in case.fires:
                # Rules of one name differ by a label that the case names.
                own = next(labels for labels in of_rules if all(labels.get(k, v) == v for k, v in fires.items()))
                samples.append({"labels": _selector({**own, **fires, **states}), "value": 1})
            asked = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
            test = _series(case.series, case.every, asked, samples, case.at)
            if case.fires and not any("alert_rule_test" in earlier for earlier in tests):
                # promtool prints an alert with its texts where none is expected.
                test["alert_rule_test"] = [{"eval_time": case.at, "alertname": case.alert, "exp_alerts": []}]
            tests.append({"name": str(case), **test})
        (directory / str(number)).mkdir()
        paths.append(_file(tests, directory / str(number), {case.alert for case in cases}))
    printed = promtool("test", "rules", *paths, stderr=subprocess.STDOUT).stdout  # in the order of the files
    before, *parts = re.split(r"^  (?:SUCCESS|FAILED:)$", printed, flags=re.MULTILINE)
    assert (before, len(parts)) == ("", len(groups)), printed
    return [(_ALERTS.sub("", part).strip(), "".join(_ALERTS.findall(part))) for part in parts]


def value(expr: str, series: Mapping[str, str], samples: Sequence[tuple[str, float]], directory: Path) -> str:
    """What differs, by promtool, from an expression giving these samples after five minutes; empty when nothing."""
    expected = [{"labels": labels, "value": number} for labels, number in samples]
    done = promtool("test", "rules", _file([_series(series, "15s", expr, expected, "5m")], directory, set()))
    return "" if done.returncode == 0 else done.stdout + done.stderr


_ALERTS = re.compile(r"^    name: [^\n]*\n    alertname: .*?^ {12}\]\n", re.MULTILINE | re.DOTALL)


def _series(
    series: Mapping[str, str], every: str, expr: str, samples: Sequence[Mapping[str, Any]], at: str
) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    asked = [{"expr": expr, "eval_time": at, "exp_samples": samples}]
    return {"interval": every, "input_series": given, "promql_expr_test": asked}


def _file(tests: Sequence[Mapping[str, Any]], directory: Path, wanted: Collection[str]) -> Path:
    """A test with the wanted alerts and the recordings that anything reads: days of every rule would take minutes."""
    every = {test["interval"] for test in tests}
    assert len(every) == 1, "rules are evaluated as often as samples come"
    read = json.dumps([tests, [rule["expr"] for rule in alerts() if rule["alert"] in wanted]])
    copies = []
    for path in files():
        found = _read(path.read_text())
        for group in found["groups"]:
            group["rules"] = [r for r in group["rules"] if r.get("alert") in wanted or r.get("record", "\n") in read]
        copies.append(directory / f"rules-{path.name}")
        copies[-1].write_text(json.dumps(found))  # JSON is YAML
    test = directory / "test.yaml"
    given = {"rule_files": [str(p) for p in copies], "evaluation_interval": every.pop(), "tests": tests}
    test.write_text(json.dumps(given))
    return test


def _selector(labels: Mapping[str, str]) -> str:
    inside = ", ".join(f'{name}="{value}"' for name, value in labels.items() if name != "__name__")
    return f"{labels['__name__']}{{{inside}}}"

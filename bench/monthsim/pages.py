"""The report as tables of ``docs/internals/detection-benchmark.md``: what is between its marks is written here.

In: the report's figures. Out: the page with them. Called at the end of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from monthsim.months import OURS

_AGENTS = {"regret": "with agents", "regret_without_agent": "without agents"}
BEGIN, END = "<!-- figures: written by make bench-detection -->", "<!-- end of figures -->"


class NoMarks(ValueError):
    """The page does not say where the figures go."""


def write(found: dict[str, Any], page: Path) -> None:
    """Put the figures between the page's marks. Raises NoMarks."""
    text = page.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text.split(BEGIN, 1)[1]:
        raise NoMarks(f"{page} has no lines '{BEGIN}' and '{END}': put them where the figures belong")
    head, rest = text.split(BEGIN, 1)
    page.write_text(f"{head}{BEGIN}\n\n{figures(found)}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def figures(found: dict[str, Any]) -> str:
    """Every table, one below the other."""
    made = found["made"]
    parts = [
        f"Seed {made['seed']}, {made['broker_months']} broker-months; {made['broker_months_of_a_model']} for each fault"
        f" model, {made['broker_months_of_a_sensitivity_run']} for each line of the sensitivity,"
        f" {made['broker_months_of_a_tradeoff_run']} for each of the settings.\n",
        _goal(found["goal"]),
        "### Regret\n",
        _regret(found),
        "### Rule sets\n",
        _rules(found["rules"]),
        f"Down, which is judged and not demoted: {_faults(found['down'])}.\n",
        "### Our faults, kind by kind\n",
        _table(
            ("fault", "missed of injected", "median", "p95"),
            [(name, *_cells(one)) for name, one in found["rules"][OURS]["by_fault"].items()],
        ),
        "### What misled us\n",
        _table(("noise", "spurious demotions"), list(found["rules"][OURS]["false_demotions"]["by_cause"].items())),
        "### Other settings of ours\n",
        _settings(found["tradeoff"]),
        "### Sensitivity\n",
        _sensitivity(found["sensitivity"]),
        "### Assumptions\n",
        _table(
            ("assumption", "value", "source"),
            [(f"`{n}`", f"{a['value']:.4g}", a["source"]) for n, a in found["assumptions"].items()],
        ),
        "### Injected faults\n",
        _table(
            ("fault", "a month", "what"), [(f"`{n}`", a["per_month"], a["what"]) for n, a in found["faults"].items()]
        ),
    ]
    return "\n".join(parts)


def _goal(goal: dict[str, Any]) -> str:
    rows = [
        (
            "spurious demotions per 1,000 broker-months, upper bound",
            f"at most {goal['upper_bound_at_most']:g}",
            goal["upper_bound"],
            _met(goal["upper_bound_met"]),
        )
    ]
    for key, agents in _AGENTS.items():
        for name, one in goal[key].items():
            rows.append((f"regret {agents}, {name}", f"at most {one['at_most']:g}", one["reached"], _met(one["met"])))
            rows.append((f"less harm than every peer rule {agents}, {name}", "", "", _met(one["less_than_every_peer"])))
    return _table(("aim", "wanted", "reached", ""), rows)


def _regret(found: dict[str, Any]) -> str:
    models = list(found["regret"])
    tables = []
    for key, agents in _AGENTS.items():
        rows = [(rule, *(_number(found[key][m].get(rule)) for m in models)) for rule in found["rules"]]
        tables.append(f"Against a clairvoyant {agents}:\n\n{_table(('rule set', *models), rows)}")
    noted = "\n".join(f"- **{name}**: {source}" for name, source in found["models"].items())
    return "\n".join((*tables, f"{noted}\n"))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _met(met: bool) -> str:
    return "met" if met else "**missed**"


def _rules(rules: dict[str, Any]) -> str:
    head = (
        "rule set",
        "spurious per 1,000 (at most)",
        "of reachability",
        "of storage",
        "external faults",
        "disk faults",
    )
    rows = []
    for name, one in rules.items():
        false = one["false_demotions"]
        rows.append(
            (
                name,
                _rate(false),
                _rate(false["of_reachability"]),
                _rate(false["of_storage"]),
                _faults(one["external_faults"]),
                _faults(one["disk_faults"]),
            )
        )
    meanings = "\n".join(f"- **{name}**: {one['rule']}" for name, one in rules.items())
    return f"{_table(head, rows)}\n{meanings}\n"


def _settings(tradeoff: dict[str, Any]) -> str:
    rows = [
        (
            name,
            _rate(one["false_demotions"]["of_reachability"]),
            _rate(one["false_demotions"]["of_storage"]),
            _faults(one["external_faults"]),
            _faults(one["disk_faults"]),
        )
        for name, one in tradeoff.items()
    ]
    return _table(("settings", "false of reachability", "false of storage", "external faults", "disk faults"), rows)


def _sensitivity(lines: list[dict[str, Any]]) -> str:
    rows = [
        (
            f"`{one['assumption']}`",
            f"{one['value']:.4g}",
            _rate(one["false_demotions"]["of_reachability"]),
            _rate(one["false_demotions"]["of_storage"]),
            one["external_faults"]["missed"] + one["disk_faults"]["missed"],
            f"{one['external_faults']['median_seconds']} s",
        )
        for one in lines
    ]
    head = ("assumption", "halved, doubled", "false of reachability", "false of storage", "missed", "external median")
    return _table(head, rows)


def _rate(one: dict[str, Any]) -> str:
    return f"{one['per_1000_broker_months']:g} ({one['upper_bound_95']:g})"


def _faults(one: dict[str, Any]) -> str:
    if not one["injected"]:
        return "none injected"
    left = f", {one['missed_while_held']} of them left where they are with a reason" if one["missed_while_held"] else ""
    missed = f"{one['missed']} of {one['injected']} missed{left}"
    if one["median_seconds"] is None:
        return missed
    return f"{missed}; median {one['median_seconds']:g} s, p95 {one['p95_seconds']:g} s"


def _cells(one: dict[str, Any]) -> tuple[str, str, str]:
    known = one["median_seconds"] is not None
    return (
        f"{one['missed']} of {one['injected']}",
        f"{one['median_seconds']:g} s" if known else "",
        f"{one['p95_seconds']:g} s" if known else "",
    )


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines) + "\n"

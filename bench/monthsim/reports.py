"""Scores as figures: ``reports/detection.json``, and the lines that a person reads."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from monthsim.assumptions import FAULT_SOURCES, NAMES, SOURCES, Assumptions, FaultRates
from monthsim.episodes import DISK_FAULTS, EXTERNAL_FAULTS, Kind
from monthsim.models import MODELS, STANDARD
from monthsim.months import ALONE, OURS, RULES
from monthsim.scoring import STORAGE, FalseDemotion, Score, Tally


def at_most(count: int, mean: float) -> float:
    """The chance of ``count`` events or fewer when ``mean`` are expected."""
    if mean <= 0:
        return 1.0
    return math.fsum(math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(count + 1))


def upper_bound(count: int, confidence: float = 0.95) -> float:
    """The largest mean under which so few events would still be seen with a chance of ``1 - confidence``.

    One-sided and exact: for no event at all it is 2.996 at 95 %.
    """
    low, high = 0.0, count + 20.0 + 10.0 * math.sqrt(count + 1.0)
    for _ in range(100):
        middle = (low + high) / 2
        if at_most(count, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


GOAL_PER_1000 = 1.0
REGRET_STANDARD = 1.6
REGRET_PERTURBED = 2.0
STORAGE_RULES = frozenset({"cruise-control", "cruise-control-1s", "own-history", "peer-median", "absolute-1s"})
_EXAMPLES = 12

Figures = dict[str, Any]


def rate(count: int, broker_months: int) -> Figures:
    """A count per 1,000 broker-months, with its exact 95 % upper bound."""
    per = 1000 / broker_months
    return {
        "count": count,
        "per_1000_broker_months": round(count * per, 3),
        "upper_bound_95": round(upper_bound(count) * per, 3),
    }


def fault_figures(tallies: Collection[Tally]) -> Figures:
    """Faults of some kinds together."""
    whole = Tally()
    for tally in tallies:
        whole.add(tally)
    delays = sorted(whole.delays)
    return {
        "injected": whole.injected,
        "missed": whole.injected - whole.found,
        "missed_while_held": whole.held,
        "median_seconds": round(median(delays), 2) if delays else None,
        "p95_seconds": round(quantile(delays, 0.95), 2) if delays else None,
    }


def quantile(ordered: list[float], share: float) -> float:
    """The nearest-rank quantile of values in order."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def score_figures(score: Score) -> Figures:
    """One rule set's figures."""
    disk = [f for f in score.false if f.reason == STORAGE]
    months = score.broker_months
    return {
        "broker_months": months,
        "false_demotions": rate(len(score.false), months)
        | {
            "of_reachability": rate(len(score.false) - len(disk), months),
            "of_storage": rate(len(disk), months),
            "by_cause": score.causes,
        },
        "external_faults": fault_figures([t for k, t in score.faults.items() if k in EXTERNAL_FAULTS]),
        "disk_faults": fault_figures([t for k, t in score.faults.items() if k in DISK_FAULTS]),
        "by_fault": {str(k): fault_figures([t]) for k, t in sorted(score.faults.items()) if k is not Kind.BROKER_DOWN},
    }


Regret = Mapping[str, Mapping[str, float | None]]
"""By fault model and rule set: what clients lost, as a multiple of what they would have lost with a clairvoyant."""


def goal(rules: Mapping[str, Figures], with_agent: Regret, without_agent: Regret) -> Figures:
    """What was aimed at and what was reached; spurious demotions by the worse of our two rows."""
    bound = max(rules[name]["false_demotions"]["upper_bound_95"] for name in (OURS, ALONE))
    return {
        "upper_bound_at_most": GOAL_PER_1000,
        "upper_bound": bound,
        "upper_bound_met": bound <= GOAL_PER_1000,
        "regret": _aims(with_agent, OURS),
        "regret_without_agent": _aims(without_agent, ALONE),
    }


def _aims(regret: Regret, ours: str) -> Figures:
    most = {name: REGRET_STANDARD if name == STANDARD else REGRET_PERTURBED for name in regret}
    return {
        name: {
            "at_most": most[name],
            "reached": rules[ours],
            "met": (rules[ours] or 0.0) <= most[name],
            "less_than_every_peer": all(
                (rules[ours] or 0.0) < (value or math.inf) for rule, value in rules.items() if rule not in (OURS, ALONE)
            ),
        }
        for name, rules in regret.items()
    }


def report(
    main: Mapping[str, Score],
    sensitivity: Mapping[str, Mapping[str, Score]],
    variants: Mapping[str, Mapping[str, Score]],
    models: Mapping[str, Mapping[str, Score]],
    made: Figures,
) -> Figures:
    """Everything that was found."""
    rules: dict[str, Figures] = {name: {"rule": text, **score_figures(main[name])} for name, text in RULES.items()}
    down = main["down"].faults.get(Kind.BROKER_DOWN, Tally())
    with_agent = {name: {rule: scores[rule].with_agent.regret for rule in RULES} for name, scores in models.items()}
    alone = [rule for rule in RULES if rule != OURS]
    without = {name: {rule: scores[rule].without_agent.regret for rule in alone} for name, scores in models.items()}
    world, rates = asdict(Assumptions()), asdict(FaultRates())
    aims = goal(rules, with_agent, without)
    return {
        "made": made,
        "goal": aims,
        "spurious_upper_per_1000": aims["upper_bound"],
        "regret": with_agent,
        "regret_without_agent": without,
        "regret_of_the_main_run": {rule: main[rule].with_agent.regret for rule in RULES},
        "regret_of_the_main_run_without_agent": {rule: main[rule].without_agent.regret for rule in alone},
        "models": {name: model.source for name, model in MODELS.items()},
        "rules": rules,
        "down": fault_figures([down])
        | {"what": "seconds from a broker's death to the verdict Down; it is not demoted"},
        "tradeoff": {name: score_figures(found[OURS]) for name, found in variants.items()},
        "sensitivity": [
            {"assumption": name, "factor": factor, "value": getattr(Assumptions().scaled(name, factor), name)}
            | score_figures(sensitivity[f"{name} x{factor:g}"][OURS])
            for name in NAMES
            for factor in (0.5, 2.0)
            if f"{name} x{factor:g}" in sensitivity
        ],
        "assumptions": {n: {"value": v, "source": SOURCES[n]} for n, v in world.items()},
        "faults": {n: {"per_month": v, "what": FAULT_SOURCES[n]} for n, v in rates.items()},
        "examples": [
            {
                "replay": ",".join(str(n) for n in f.seed),
                "broker": f.broker,
                "seconds": round(f.time, 2),
                "reason": f.reason,
                "message": f.message,
                "causes": f.causes,
            }
            for f in _one_of_each(main[OURS].false)
        ],
    }


def _one_of_each(false: Collection[FalseDemotion]) -> list[FalseDemotion]:
    """One example of each cause before a second of any, the smallest clusters first."""
    seen: dict[str, int] = {}
    ranked = []
    for one in sorted(false, key=lambda f: f.seed[1:2]):
        seen[one.causes] = seen.get(one.causes, 0) + 1
        ranked.append((seen[one.causes], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])[:_EXAMPLES]]


def save(found: Figures, path: Path) -> None:
    """Write the report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def lines(found: Figures) -> list[str]:
    """The report for a person at a terminal."""
    said = [
        f"{'rule set':<18} {'false per 1,000':>16} {'(at most)':>10} {'of storage':>11}"
        f"   {'external: missed, median, p95':<32} disk: missed, median, p95"
    ]
    for name, figures in found["rules"].items():
        false = figures["false_demotions"]
        said.append(
            f"{name:<18} {false['per_1000_broker_months']:>16} {false['upper_bound_95']:>10}"
            f" {false['of_storage']['per_1000_broker_months']:>11}"
            f"   {_short(figures['external_faults']):<32} {_short(figures['disk_faults'])}"
        )
    said.append(f"{'Down':<18} {'':>39}   {_short(found['down'])}")
    aim = found["goal"]
    met = "met   " if aim["upper_bound_met"] else "MISSED"
    said.append(
        f"{met}  spurious demotions: at most {aim['upper_bound']} per 1,000 broker-months, goal {GOAL_PER_1000}"
    )
    for key, agents in (("regret", "with agents"), ("regret_without_agent", "without")):
        for name, one in aim[key].items():
            met = "met   " if one["met"] else "MISSED"
            others = ", ".join(f"{r} {v}" for r, v in found[key][name].items() if r not in (OURS, ALONE))
            said.append(f"{met}  regret {agents}, {name}: {one['reached']}, goal {one['at_most']}; {others}")
    return said


def _short(figures: Figures) -> str:
    if not figures["injected"]:
        return "-"
    return f"{figures['missed']} of {figures['injected']}, {figures['median_seconds']} s, {figures['p95_seconds']} s"

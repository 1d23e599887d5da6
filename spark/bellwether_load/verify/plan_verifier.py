"""Verify a plan: problem, loads and moves in, a report with one line per check out.

Nothing is taken from the plan but its moves and its weights; all its other claims are recomputed and compared. What is
wrong with an input ends the verification: sums of it would say nothing. Called by ``bellwether verify-plan``, and by
the operator before a plan is shown for approval.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from bellwether_load.plan.certificate import Certificate, CertificateLevel
from bellwether_load.plan.checks import ERROR, Check, Faults, highest
from bellwether_load.plan.digests import plan_digest, problem_digest
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.forecast import BrokerHour
from bellwether_load.plan.partition_rows import (
    LOADS,
    PROBLEM,
    Ints,
    Rows,
    Table,
    keys_of,
    rates_of,
    rows_of,
    total,
)
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.applied_moves import (
    ELIGIBLE,
    FACTS,
    FORCED,
    MOVES,
    ORDERED,
    ORDERS,
    STAY,
    Applied,
    apply_moves,
)
from bellwether_load.verify.bound_reasons import bound_reasons
from bellwether_load.verify.hour_sums import HOURLY, HOURS, HourBlock, HourSums
from bellwether_load.verify.load_bounds import Bounds, Weights
from bellwether_load.verify.losses import LOSSES, judge_losses

OVER_LIMIT = Fraction(1002, 1000) + ERROR
"""A settled broker may be above its limit by the tolerance of the level that it is settled at."""

BROKERS = "brokers of the problem"
SAME = "made for this problem"
INPUT_DIGEST = "problem of the operator"
PROBLEM_DIGEST = "problem digest"
DIGEST = "plan digest"
EVIDENCE = "evidence"
CAP = "cap on moves"
COUNTS = "counts"
MOVED = "moved load"
LEAST = "least that must move"
WEIGHTS = "weights"
BOUND = "bound"
LEVELS = "levels"
PER_BROKER = "load per broker"
FORECAST = "busiest hour"


@dataclass(frozen=True)
class Report:
    """All checks of one plan, and what was proved in figures.

    ``reasons``: what decides the bound, in words. ``forced``: how many leaders must move. ``unmeasured``: by topic, the
    number of partitions whose consumption is not measured.
    """

    digest: str
    checks: tuple[Check, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    reasons: str = ""
    forced: int = 0
    unmeasured: Mapping[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether everything that the plan claims is so."""
        return all(check.passed for check in self.checks)

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that is wrong, check by check."""
        return tuple(f"{check.name}: {fault}" for check in self.checks for fault in check.faults)

    def faults_of(self, name: str) -> tuple[str, ...] | None:
        """What is wrong by one check; None where it was not reached."""
        return next((check.faults for check in self.checks if check.name == name), None)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        checks = [
            {"check": c.name, "passed": c.passed, "said": c.said, "found": c.found, "faults": list(c.faults)}
            for c in self.checks
        ]
        found = {"digest": self.digest, "passed": self.passed, "checks": checks, "figures": dict(self.figures)}
        return {**found, "notes": [self.reasons] if self.reasons else []}


def verify(
    problem: ProblemHeader,
    document: str,
    partitions: pa.Table,
    loads: pa.Table,
    plan: RebalancePlan,
    moves: pa.Table,
    input_digest: str = "",
    hours: Sequence[int] = (),
    by_hour: Iterable[HourBlock] = (),
    account: Mapping[str, Any] | None = None,
) -> Report:
    """Check everything that a plan claims.

    ``document``: problem.json in one line, as it is hashed. ``loads``: keys, ``produce`` and ``consume`` of the
    statistic. ``input_digest``: of the problem that the operator wrote; it is compared if given. ``hours``: those of
    the week that are known; ``by_hour``: the rates in them, in the order of the loads. ``account``: what the loads rest
    on, by their job; the plan's evidence is compared with it if given.
    """
    faults, opened = Faults(), sum(b.open for b in problem.brokers)
    if not opened:
        faults.add(BROKERS, "no broker is open: no partition could have a leader")
    faults.check(BROKERS, found=f"{opened} of {len(problem.brokers)} open")
    wanted = _terms(problem)
    for name, said in _terms(plan).items():
        if said != wanted[name]:
            faults.add(SAME, f"{name} is {said!r} in the plan and {wanted[name]!r} in the problem")
    faults.check(SAME)
    keys, names = keys_of(partitions, loads, moves), (PROBLEM, LOADS, MOVES)
    table, measured, moved = map(Table, (partitions, loads, moves), keys, names, [faults] * 3)
    rates = rates_of(measured, table, problem.objective.statistic)
    stored = problem_digest(document, partitions) if input_digest else ""
    changed = f"the stored problem is not the one that the operator wrote: its digest is {stored}, not {input_digest}"
    digest = problem_digest(document, partitions, rates)
    other = f"the plan says {plan.problem_digest!r}, the files give {digest}: problem or loads are not those it is for"
    moving = plan_digest(plan.problem_digest, moves)
    forged = f"the plan says {plan.digest!r}, the files give {moving}: the moves are not those that the digest names"
    for name, said, found, fault in (
        (INPUT_DIGEST, input_digest, stored, changed),
        (PROBLEM_DIGEST, plan.problem_digest, digest, other),
        (DIGEST, plan.digest, moving, forged),
    ):
        if said != found:
            faults.add(name, fault)
        if said:
            faults.check(name, said[:32], found[:32])
    rows = rows_of(problem, table, rates, faults) if opened and not faults.any(PROBLEM) else None
    applied = None if rows is None else apply_moves(rows, moved, faults)
    forced = 0 if rows is None else int(rows.forced.sum())
    counts = {PROBLEM: f"{len(table):,}", MOVES: f"{len(moved):,}", FORCED: f"{forced:,}"}
    for name in (PROBLEM, LOADS, MOVES, FACTS, ORDERS, ELIGIBLE, STAY, FORCED, ORDERED):
        faults.check(name, found=counts.get(name, ""))
    if (
        rows is None
        or applied is None
        or any(faults.any(name) for name in (PROBLEM, LOADS, MOVES, FACTS, ORDERS, ELIGIBLE, STAY))
    ):
        return Report(plan.digest, tuple(faults.checks), forced=forced)
    sums = HourSums(problem, rows, applied.leader, tuple(hours), plan.certificate.hourly, faults) if hours else None
    if sums is not None:
        sums.add_all(by_hour)
    if faults.any(HOURS):
        faults.check(HOURS)
        return Report(plan.digest, tuple(faults.checks), forced=forced)
    if account is not None:
        faults.add(EVIDENCE, *_evidence(plan, account, rows, len(hours)))
        faults.check(EVIDENCE, found=f"{len(hours)} hours")
    return _Figures(problem, plan, rows, applied, sums, faults).report(forced)


class _Figures:
    """Compares the figures of a plan with those that the sums give."""

    def __init__(
        self,
        problem: ProblemHeader,
        plan: RebalancePlan,
        rows: Rows,
        applied: Applied,
        sums: HourSums | None,
        faults: Faults,
    ) -> None:
        self._problem, self._plan, self._rows, self._sums, self._faults = problem, plan, rows, sums, faults
        self._applied, leaders = applied, (rows.leader, applied.leader)
        self._ids, most = rows.ids.tolist(), problem.objective.max_moves
        self._allowed = None if most is None else max(most, int(rows.forced.sum()))
        size, self._bounds = rows.size, Bounds(rows)
        self._before, self._after = (rows.base + total(of, rows.load, len(size)) for of in leaders)
        self._top = highest(self._after[self._bounds.open], size[self._bounds.open])

    def report(self, forced: int) -> Report:
        """The checks of all figures, after those that were made."""
        rows, plan, bounds, faults, allowed = self._rows, self._plan, self._bounds, self._faults, self._allowed
        moved, most = self._applied.leader != rows.leader, self._problem.objective.max_moves
        if allowed is not None and moved.sum() > allowed:
            faults.add(CAP, f"{moved.sum()} leaders change where {allowed} may")
        faults.check(CAP, "none" if most is None else f"{most:,}", f"{moved.sum():,}")
        self._counts(int(moved.sum()))
        self._forecast()
        if plan.certificate.hourly is not None:
            self._bound_by_hour()
        self._brokers()
        if plan.losses is not None:
            kinds = [loss.kind for loss in plan.losses.kinds]
            if len(set(kinds)) < len(kinds) or not set(kinds) <= {"broker", "rack"}:
                faults.add(LOSSES, f"kinds are {kinds}: expected broker and rack, each once at most")
            else:
                carried = self._before, self._after
                judge_losses(rows, self._applied, plan.losses, carried, self._top, faults)
            faults.check(LOSSES)
        weights = self._weights(plan.certificate, WEIGHTS)
        faults.check(WEIGHTS, found="" if weights is None else f"{np.count_nonzero(weights.of)} above 0")
        least = bounds.least_moved(self._before, self._top)
        for name, said, found, near in (
            (MOVED, plan.moved.load, int(rows.load[moved].sum()), 0),
            (LEAST, plan.moved.lower_bound, least, 1),
        ):
            if abs(said - found) > near:
                faults.add(name, f"the plan says {said!r}, the files give {found!r}")
            faults.check(name, f"{said:,}", f"{found:,}")
        if weights is None:
            return Report(plan.digest, tuple(faults.checks), forced=forced)
        dual = bounds.dual(weights)
        bound = bounds.bound(dual)
        gap = self._top / bound - 1 if bound else None if self._top else Fraction(0)
        faults.figure(BOUND, "the plan says ", plan.certificate.bound, bound)
        faults.check(BOUND, _amount(plan.certificate.bound), _amount(bound))
        self._levels()
        faults.check(LEVELS, found=f"{len(plan.certificate.levels) + 1}")
        figures = {"dualBound": float(dual), "bound": float(bound), "gap": None if gap is None else float(gap)}
        reasons = bound_reasons(bounds, weights, dual, bound, self._ids, rows.table.name)
        topics = rows.table.table.column("topic").filter(pa.array(rows.rates.known & ~rows.rates.consumed))
        unmeasured = {one["values"]: one["counts"] for one in topics.value_counts().to_pylist()}
        return Report(plan.digest, tuple(faults.checks), figures, reasons, forced, unmeasured)

    def _counts(self, moved: int) -> None:
        plan, rows, rates = self._plan, self._rows, self._rows.rates
        reordered = int(self._applied.moving.sum()) - moved
        # Without hours no requests are known.
        without = 0 if not self._problem.objective.request_bytes else int(rates.known.sum())
        for name, said, found in (
            ("partitions", plan.partitions, len(rows)),
            ("withoutLoad", plan.without_load, int((~rates.known).sum())),
            ("withoutConsumption", plan.without_consumption, int((rates.known & ~rates.consumed).sum())),
            ("withoutRequests", plan.without_requests, without if self._sums is None else self._sums.without_requests),
            ("held", plan.held, int(rows.held.sum())),
            ("moved.partitions", plan.moved.partitions, moved),
            ("moved.reordered", plan.moved.reordered, reordered),
        ):
            if said != found:
                self._faults.add(COUNTS, f"{name} is {said}, there are {found}")
        self._faults.check(COUNTS, found=f"{moved:,} + {reordered:,} orders")

    def _forecast(self) -> None:
        """What is claimed of the busiest broker-hours."""
        said, sums, faults = self._plan.forecast, self._sums, self._faults
        if said is None or sums is None:
            if said is not None or sums is not None:
                what = "the plan has none" if said is None else "the plan has one, the loads have no hours"
                faults.add(FORECAST, what)
            faults.check(FORECAST, found="not known" if sums is None else "")
            return
        if said.hours != (count := len(sums.hours)):
            faults.add(FORECAST, f"hours is {said.hours}, the loads know {count}")
        unit = self._problem.objective.request_bytes
        if bool(unit) != (said.requests is not None):
            faults.add(FORECAST, f"requests is {said.requests}, and objective.requestBytes {unit}")
        elif said.requests is not None:
            size = sums.size[:, count:] * unit
            self._broker_hour("of requests before", said.requests.before, sums.before[:, count:], size)
            self._broker_hour("of requests after", said.requests.after, sums.after[:, count:], size)
        self._broker_hour("before", said.before, sums.before[:, :count], sums.size[:, :count])
        top = self._broker_hour("after", said.after, sums.after[:, :count], sums.size[:, :count])
        faults.check(FORECAST, _amount(said.after.load), _amount(top))

    def _broker_hour(self, when: str, said: BrokerHour, carried: Ints, size: Ints) -> Fraction:
        rows, faults = self._rows, self._faults
        hours = () if self._sums is None else self._sums.hours
        open_ = np.flatnonzero(rows.open)
        top = highest(carried[open_], size[open_])
        faults.figure(FORECAST, f"load {when} is ", said.load, top)
        who, ids = f"broker {said.broker} in hour {said.hour} {when}", rows.ids[open_].tolist()
        if said.broker not in ids or said.hour not in hours:
            faults.add(FORECAST, f"{who}: no open broker, or no hour that the loads know")
        else:
            at = open_[ids.index(said.broker)], hours.index(said.hour)
            if (load := Fraction(int(carried[at]), int(size[at]))) != top:
                faults.add(FORECAST, f"{who} is not the busiest: it has {float(load)!r}")
        return top

    def _bound_by_hour(self) -> None:
        """What is claimed of the busiest broker-hour of all plans."""
        claim, faults = self._plan.certificate.hourly, self._faults
        if claim is None or self._plan.forecast is None or self._sums is None:
            faults.add(HOURLY, "the plan has one and no forecast, or the loads have no hours")
            faults.check(HOURLY)
            return
        proved = self._sums.bound(self._allowed)
        faults.figure(HOURLY, "the plan says ", claim.bound, proved)
        faults.check(HOURLY, _amount(claim.bound), _amount(proved))

    def _brokers(self) -> None:
        brokers = [(b.id, b.rack, b.capacity, b.open) for b in self._problem.brokers]
        if [(b.id, b.rack, b.capacity, b.open) for b in self._plan.brokers] != brokers:
            self._faults.add(PER_BROKER, "the plan's brokers are not those of the problem, in its order")
        else:
            order = np.argsort([b.id for b in self._plan.brokers]).tolist()
            for at, b in enumerate(self._plan.brokers[i] for i in order):
                for when, said, carried in (("before", b.before, self._before), ("after", b.after, self._after)):
                    exact = Fraction(int(carried[at]), b.capacity)
                    self._faults.figure(PER_BROKER, f"broker {b.id} {when} is ", said, exact)
        self._faults.check(PER_BROKER, found=f"{len(brokers)} brokers")

    def _levels(self) -> None:
        """What is claimed of the brokers below the busiest ones."""
        faults, ids = self._faults, {b: at for at, b in enumerate(self._ids)}
        settled: dict[int, Fraction] = {}
        least, most = self._plan.certificate.bound, self._plan.after.max
        bounds, size, after = self._bounds, self._bounds.size, self._after
        for number, level in enumerate(self._plan.certificate.levels, start=2):
            name = f"level {number}"
            more = [ids[b] for b in level.settled if b in ids and bounds.open[ids[b]] and ids[b] not in settled]
            if len(set(more)) < len(level.settled):
                said = f"{name} settles {list(level.settled)}: expected ids of open brokers, each once"
                return faults.add(LEVELS, said)
            # A level may be below its bound by what settled brokers are above their limits.
            least, most = sorted((least, most))
            if not least <= level.limit <= most:
                said = f"{name} has the limit {level.limit!r}: expected one from {least!r} to {most!r}"
                return faults.add(LEVELS, said)
            settled |= dict.fromkeys(more, Fraction(level.limit))
            for b in more:
                if (load := Fraction(int(after[b]), int(size[b]))) > settled[b] * OVER_LIMIT:
                    what = f"broker {self._ids[b]} is settled at {level.limit!r} and carries {float(load)!r}"
                    faults.add(LEVELS, f"{name}: {what}: the limit does not hold for this plan")
            if faults.any(LEVELS) or (weights := self._weights(level, LEVELS)) is None:
                return None
            rest = [b for b in np.flatnonzero(bounds.open).tolist() if b not in settled]
            if not weights.of[rest].any():
                return faults.add(LEVELS, f"{name} has no weight on a broker that is not settled: it proves nothing")
            bound = bounds.bound(bounds.dual(weights, settled), settled)
            faults.figure(LEVELS, f"{name}: bound is ", level.bound, bound)
            least, most = level.bound, float(highest(after[rest], size[rest]))
        return None

    def _weights(self, claimed: Certificate | CertificateLevel, check: str) -> Weights | None:
        """The weights, or None where something is wrong with them."""
        ids, faults = {b: at for at, b in enumerate(self._ids)}, self._faults
        found = np.zeros(len(ids), np.int64)
        for b, weight in claimed.weights.items():
            if b not in ids or not self._bounds.open[ids[b]]:
                what = "closed" if b in ids else "no broker of the problem"
                faults.add(check, f"broker {b} has a weight and is {what}")
            else:
                found[ids[b]] = weight
        if claimed.move_weight and self._allowed is None:
            said = f"a changed leader has the weight {claimed.move_weight}, and the problem has no maxMoves"
            faults.add(check, said)
        if not found.any() and not faults.any(check):
            faults.add(check, "all are 0: they prove nothing")
        return None if faults.any(check) else Weights(found, claimed.move_weight, self._allowed or 0)


def _terms(of: ProblemHeader | RebalancePlan) -> dict[str, str]:
    """What a plan has in common with its problem, by its name in the files."""
    found = {"clusterId": of.cluster_id, "policy": of.policy, "madeAt": str(of.made_at)}
    return found | {f"objective.{name}": str(value) for name, value in asdict(of.objective).items()}


def _evidence(plan: RebalancePlan, account: Mapping[str, Any], rows: Rows, hours: int) -> Iterator[str]:
    """What differs from the account of the loads. ``hours``: how many hours of the week their files have."""
    found = Evidence.of(account, len(rows), int((~rows.rates.known).sum()))
    for name in ("since", "until", "hours", "share"):
        if (said := getattr(plan.evidence, name)) != (given := getattr(found, name)):
            yield f"{name} is {said}, the loads give {given}"
    if hours and found.hours > hours:  # fewer: those of the partitions with nearly all bytes
        yield f"_loads.json says {found.hours} hours, the loads have {hours}"


def _amount(value: float | Fraction) -> str:
    return f"{float(value):,.2f}"

"""Verify a plan: problem, loads and moves in, a report with one line per check out.

Nothing is taken from the plan but its moves and its weights; all its other claims are recomputed and compared.
Called by ``bellwether verify-plan``, and by the operator before a plan is shown for approval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from bellwether_load.plan.certificate import Certificate, CertificateLevel
from bellwether_load.plan.evidence import Evidence
from bellwether_load.plan.forecast import BrokerHour
from bellwether_load.plan.problem import ProblemHeader
from bellwether_load.plan.rebalance_plan import RebalancePlan
from bellwether_load.verify.bound_reasons import BoundReasons, bound_reasons
from bellwether_load.verify.checks import ERROR, Check, Faults, close
from bellwether_load.verify.hour_bound import HOURLY, HourBound
from bellwether_load.verify.load_bounds import Bounds, Weights
from bellwether_load.verify.load_rows import BITS, HOURS, LOADS, LoadRow, LoadRows
from bellwether_load.verify.loss_sums import LOSSES, LossSums
from bellwether_load.verify.partition_sums import (
    COLUMN,
    ELIGIBLE,
    FACTS,
    FORCED,
    ORDERED,
    ORDERS,
    PROBLEM,
    STAY,
    PartitionRow,
    Sums,
    sweep,
)
from bellwether_load.verify.row_streams import MOVES, MoveRow, MoveStream

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
WEIGHTS = "weights"
LEVELS = "levels"
PER_BROKER = "load per broker"
FORECAST = "busiest hour"

_Number = int | float | Fraction | None


@dataclass(frozen=True)
class Report:
    """All checks of one plan, and what was proved in figures. ``notes`` are worth knowing and refuse nothing.

    ``reasons``: what decides the bound; None if the plan proves none. ``forced``: how many leaders must move.
    ``unmeasured``: by topic, the number of partitions whose consumption is not measured.
    """

    digest: str
    checks: tuple[Check, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reasons: BoundReasons | None = None
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

    def faults_of(self, name: str) -> tuple[str, ...]:
        """What is wrong by one check."""
        return next((check.faults for check in self.checks if check.name == name), ())

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        checks = [
            {"check": c.name, "passed": c.passed, "said": c.said, "found": c.found, "faults": list(c.faults)}
            for c in self.checks
        ]
        figures, notes = dict(self.figures), list(self.notes)
        return {"digest": self.digest, "passed": self.passed, "checks": checks, "figures": figures, "notes": notes}


def verify(
    problem: ProblemHeader,
    document: str,
    partitions: Iterable[PartitionRow],
    loads: Iterable[LoadRow],
    plan: RebalancePlan,
    moves: Iterable[MoveRow],
    input_digest: str = "",
    hours: Sequence[int] = (),
    account: Mapping[str, Any] | None = None,
) -> Report:
    """Check everything that a plan claims.

    ``document``: problem.json in one line, as it is hashed. ``input_digest``: of the problem that the operator wrote;
    it is compared if given. ``hours``: those of the week that each row of the loads has. ``account``: what the loads
    rest on, by their job; the plan's evidence is compared with it if given.
    """
    faults, claim = Faults(), plan.certificate.hourly
    if not any(b.open for b in problem.brokers):
        faults.add(BROKERS, "no broker is open: no partition could have a leader")
    wanted = _terms(problem)
    for name, said in _terms(plan).items():
        if said != wanted[name]:
            faults.add(SAME, f"{name} is {said!r} in the plan and {wanted[name]!r} in the problem")
    stream = MoveStream(moves, plan.problem_digest, faults)
    counted = bool(problem.objective.request_bytes and hours)
    known = LoadRows(loads, faults, problem.objective.statistic, hours, requests=counted)
    bound = HourBound(problem, known.hours, claim, faults) if claim is not None and hours else None
    pinned = bool(input_digest)
    losses = None if plan.losses is None else LossSums(problem, plan.losses, faults)
    sums = sweep(problem, document, partitions, known, stream, faults, bound, losses, of_input=pinned)
    checks = [faults.check(BROKERS, found=f"{sum(b.open for b in problem.brokers)} of {len(problem.brokers)} open")]
    checks += [faults.check(SAME)]
    if pinned:
        if (found := sums.input_digest) != input_digest:
            said = "the stored problem is not the one that the operator wrote"
            faults.add(INPUT_DIGEST, f"{said}: its digest is {found}, not {input_digest}")
        checks.append(faults.check(INPUT_DIGEST, input_digest[:32], found[:32]))
    for name, digest, found, means in (
        (PROBLEM_DIGEST, plan.problem_digest, sums.problem_digest, "problem or loads are not those it is for"),
        (DIGEST, plan.digest, sums.plan_digest, "the moves are not those that the digest names"),
    ):
        if digest != found:
            faults.add(name, f"the plan says {digest!r}, the files give {found}: {means}")
        checks.append(faults.check(name, digest[:32], found[:32]))
    counts = {PROBLEM: f"{sums.partitions:,}", MOVES: f"{sums.moved + sums.reordered:,}", FORCED: f"{sums.forced:,}"}
    swept = (PROBLEM, LOADS, MOVES, FACTS, ORDERS, ELIGIBLE, STAY, FORCED, ORDERED)
    checks += [faults.check(name, found=counts.get(name, "")) for name in swept]
    if account is not None:
        faults.add(EVIDENCE, *_evidence_faults(plan, account, sums, len(hours)))
        checks.append(faults.check(EVIDENCE, found=f"{len(hours)} hours"))
    if faults.any(BROKERS):
        return Report(plan.digest, tuple(checks))
    return _Figures(problem, plan, sums, faults, known.hours, bound, checks).report()


class _Figures:
    """Compares the figures of a plan with those that the sums give."""

    def __init__(
        self,
        problem: ProblemHeader,
        plan: RebalancePlan,
        sums: Sums,
        faults: Faults,
        hours: Sequence[int],
        hourly: HourBound | None,
        checks: list[Check],
    ) -> None:
        self._problem, self._plan, self._sums, self._faults = problem, plan, sums, faults
        self._hours, self._hourly, self._checks = hours, hourly, checks
        most = problem.objective.max_moves
        self._allowed = None if most is None else max(most, sums.forced)
        before, after = sums.carried(sums.led_before), sums.carried(sums.led_after)
        self._hours_before, self._hours_after = ({b: of[1:] for b, of in each.items()} for each in (before, after))
        self._before, self._after = ({b: of[0] for b, of in each.items()} for each in (before, after))
        self._bounds = Bounds(problem.brokers, sums, {b: base & COLUMN for b, base in sums.base.items()})

    def report(self) -> Report:
        plan, bounds, sums, faults, proof = self._plan, self._bounds, self._sums, self._faults, self._plan.certificate
        top = max(Fraction(self._after[b], size) for b, size in bounds.size.items())
        checks = self._checks
        checks += [self._cap(), self._counts(), self._forecast()]
        if proof.hourly is not None:
            checks.append(self._bound_by_hour())
        checks.append(self._brokers())
        if sums.losses is not None:
            sums.losses.judge(bounds.base, (self._before, self._after), top)
            checks.append(faults.check(LOSSES))
        weights = self._weights(proof, WEIGHTS)
        checks.append(faults.check(WEIGHTS, found=f"{len(weights.of)} above 0" if weights else ""))
        least = bounds.least_moved(self._before, top)
        checks.append(_figure("moved load", plan.moved.load, sums.moved_load, show=_whole))
        checks.append(_figure("least that must move", plan.moved.lower_bound, least, 1, _whole))
        if weights is None:
            return Report(plan.digest, tuple(checks), forced=sums.forced)
        dual = bounds.dual(weights)
        bound = bounds.bound(dual)
        gap = top / bound - 1 if bound else None if top else Fraction(0)
        checks.append(_figure("bound", proof.bound, bound))
        self._levels()
        checks.append(faults.check(LEVELS, found=f"{len(proof.levels) + 1}"))
        reasons = bound_reasons(bounds, weights, dual, bound)
        figures = {"dualBound": float(dual), "bound": float(bound), "gap": None if gap is None else float(gap)}
        return Report(plan.digest, tuple(checks), figures, (reasons.text,), reasons, sums.forced, sums.unmeasured)

    def _cap(self) -> Check:
        moved, allowed = self._sums.moved, self._allowed
        if allowed is not None and moved > allowed:
            self._faults.add(CAP, f"{moved} leaders change where {allowed} may")
        return self._faults.check(CAP, _whole(self._problem.objective.max_moves), f"{moved:,}")

    def _counts(self) -> Check:
        plan, sums = self._plan, self._sums
        for name, said, found in (
            ("partitions", plan.partitions, sums.partitions),
            ("withoutLoad", plan.without_load, sums.without_load),
            ("withoutConsumption", plan.without_consumption, sums.without_consumption),
            ("withoutRequests", plan.without_requests, sums.without_requests),
            ("held", plan.held, sums.held),
            ("moved.partitions", plan.moved.partitions, sums.moved),
            ("moved.reordered", plan.moved.reordered, sums.reordered),
        ):
            if said != found:
                self._faults.add(COUNTS, f"{name} is {said}, there are {found}")
        return self._faults.check(COUNTS, found=f"{sums.moved:,} + {sums.reordered:,} orders")

    def _forecast(self) -> Check:
        """What is claimed of the busiest broker-hours."""
        said, hours, faults = self._plan.forecast, self._hours, self._faults
        if not hours or said is None:
            if bool(hours) != (said is not None):
                what = "the plan has none" if said is None else "the plan has one, the loads have no hours"
                faults.add(FORECAST, what)
            return faults.check(FORECAST, found="" if hours else "not known")
        faults.add(FORECAST, *faults.of(HOURS))
        if said.hours != len(hours):
            faults.add(FORECAST, f"hours is {said.hours}, the loads know {len(hours)}")
        size, count, unit = self._bounds.size, len(hours), self._problem.objective.request_bytes
        self._broker_hour("before", said.before, self._hours_before, size)
        top = self._broker_hour("after", said.after, self._hours_after, size)
        if bool(unit) != (said.requests is not None):
            faults.add(FORECAST, f"requests is {said.requests}, and objective.requestBytes {unit}")
        elif said.requests is not None:
            size = {b.id: b.request_capacity * unit for b in self._problem.brokers if b.open}
            before, after = ({b: of[count:] for b, of in c.items()} for c in (self._hours_before, self._hours_after))
            self._broker_hour("of requests before", said.requests.before, before, size)
            self._broker_hour("of requests after", said.requests.after, after, size)
        return faults.check(FORECAST, _amount(said.after.load), _amount(top))

    def _broker_hour(
        self, when: str, said: BrokerHour, carried: Mapping[int, Sequence[int]], size: Mapping[int, int]
    ) -> Fraction:
        hours, faults = self._hours, self._faults
        top = max(Fraction(max(carried[b][: len(hours)]), capacity) for b, capacity in size.items())
        if not close(said.load, top):
            faults.add(FORECAST, f"load {when} is {said.load!r}, the files give {float(top)!r}")
        who = f"broker {said.broker} in hour {said.hour} {when}"
        if said.broker not in size or said.hour not in hours:
            faults.add(FORECAST, f"{who}: no open broker, or no hour that the loads know")
        elif (load := Fraction(carried[said.broker][hours.index(said.hour)], size[said.broker])) != top:
            faults.add(FORECAST, f"{who} is not the busiest: it has {float(load)!r}")
        return top

    def _bound_by_hour(self) -> Check:
        """What is claimed of the busiest broker-hour of all plans."""
        claim, faults = self._plan.certificate.hourly, self._faults
        if claim is None or self._plan.forecast is None or self._hourly is None:
            faults.add(HOURLY, "the plan has one and no forecast, or the loads have no hours")
            return faults.check(HOURLY)
        proved = self._hourly.proved({b: base >> BITS for b, base in self._sums.base.items()}, self._allowed)
        if not close(claim.bound, proved):
            faults.add(HOURLY, f"the plan says {claim.bound!r}, the files give {float(proved)!r}")
        return faults.check(HOURLY, _amount(claim.bound), _amount(proved))

    def _brokers(self) -> Check:
        brokers = [(b.id, b.rack, b.capacity, b.open) for b in self._problem.brokers]
        if [(b.id, b.rack, b.capacity, b.open) for b in self._plan.brokers] != brokers:
            self._faults.add(PER_BROKER, "the plan's brokers are not those of the problem, in its order")
        else:
            for b in self._plan.brokers:
                for when, said, carried in (("before", b.before, self._before), ("after", b.after, self._after)):
                    exact = Fraction(carried[b.id], b.capacity)
                    if not close(said, exact):
                        self._faults.add(PER_BROKER, f"broker {b.id} {when} is {said!r}, there is {float(exact)!r}")
        return self._faults.check(PER_BROKER, found=f"{len(brokers)} brokers")

    def _levels(self) -> None:
        """What is claimed of the brokers below the busiest ones."""
        bounds, size, faults = self._bounds, self._bounds.size, self._faults
        settled: dict[int, Fraction] = {}
        least, most = self._plan.certificate.bound, self._plan.after.max
        carried = {b: Fraction(self._after[b], capacity) for b, capacity in size.items()}
        for number, level in enumerate(self._plan.certificate.levels, start=2):
            name = f"level {number}"
            if not all(b in size and b not in settled for b in level.settled):
                said = f"{name} settles {list(level.settled)}: expected ids of open brokers, each once"
                return faults.add(LEVELS, said)
            # A level may be below its bound by what settled brokers are above their limits.
            least, most = sorted((least, most))
            if not least <= level.limit <= most:
                said = f"{name} has the limit {level.limit!r}: expected one from {least!r} to {most!r}"
                return faults.add(LEVELS, said)
            settled |= dict.fromkeys(level.settled, Fraction(level.limit))
            for b in level.settled:
                if carried[b] > settled[b] * OVER_LIMIT:
                    what = f"broker {b} is settled at {level.limit!r} and carries {float(carried[b])!r}"
                    faults.add(LEVELS, f"{name}: {what}: the limit does not hold for this plan")
            if faults.any(LEVELS) or (weights := self._weights(level, LEVELS)) is None:
                return None
            rest = [b for b in size if b not in settled]
            if not any(b in weights.of for b in rest):
                return faults.add(LEVELS, f"{name} has no weight on a broker that is not settled: it proves nothing")
            bound = bounds.bound(bounds.dual(weights, settled), settled)
            highest = max(carried[b] for b in rest)
            if not close(level.bound, bound):
                faults.add(LEVELS, f"{name}: bound is {level.bound!r}, the files give {float(bound)!r}")
            least, most = level.bound, float(highest)
        return None

    def _weights(self, claimed: Certificate | CertificateLevel, check: str) -> Weights | None:
        """The weights above 0, or None where something is wrong with them or the threshold."""
        known, faults, found = {b.id for b in self._problem.brokers}, self._faults, {}
        for b, weight in claimed.weights.items():
            if b not in self._bounds.size:
                what = "is closed" if b in known else "is no broker of the problem"
                faults.add(check, f"broker {b} has a weight and {what}")
            elif weight:
                found[b] = weight
        threshold = claimed.threshold
        if threshold is not None and threshold <= 0:
            faults.add(check, f"threshold is {threshold!r}: expected a load above 0")
        if claimed.move_weight and self._allowed is None:
            said = f"a changed leader has the weight {claimed.move_weight}, and the problem has no maxMoves"
            faults.add(check, said)
        if not found and not faults.any(check):
            faults.add(check, "all are 0: they prove nothing")
        if faults.any(check):
            return None
        exact = None if threshold is None else Fraction(threshold)
        return Weights(found, claimed.move_weight, self._allowed or 0, exact)


def _terms(of: ProblemHeader | RebalancePlan) -> dict[str, str]:
    """What a plan has in common with its problem, by its name in the files."""
    found = {"clusterId": of.cluster_id, "policy": of.policy, "madeAt": str(of.made_at)}
    return found | {f"objective.{name}": str(value) for name, value in asdict(of.objective).items()}


def _evidence_faults(plan: RebalancePlan, account: Mapping[str, Any], sums: Sums, hours: int) -> Iterator[str]:
    """What differs from the account of the loads. ``hours``: how many hours of the week their files have."""
    found = Evidence.of(account, sums.partitions, sums.without_load)
    for name in ("since", "until", "hours", "share"):
        if (said := getattr(plan.evidence, name)) != (given := getattr(found, name)):
            yield f"{name} is {said}, the loads give {given}"
    if hours and found.hours > hours:  # fewer: those of the partitions with nearly all bytes
        yield f"_loads.json says {found.hours} hours, the loads have {hours}"


def _amount(value: _Number) -> str:
    return "none" if value is None else f"{float(value):,.2f}"


def _whole(value: _Number) -> str:
    return "none" if value is None else f"{value:,}"


def _figure(
    name: str, said: float, found: int | Fraction, allowed: int = 0, show: Callable[[_Number], str] = _amount
) -> Check:
    """A figure within the error of a double, and an ``allowed`` one beyond that."""
    exact = Fraction(found)
    fine = abs(Fraction(said) - exact) <= allowed + (0 if isinstance(found, int) else ERROR * abs(exact))
    shown = float(found) if isinstance(found, Fraction) else found
    faults = () if fine else (f"the plan says {said!r}, the files give {shown!r}",)
    return Check(name, faults, show(said), show(found))

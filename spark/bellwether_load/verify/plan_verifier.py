"""Verify a plan: problem, loads and moves in, a report with one line per check out.

Nothing is taken from the plan but its moves and its weights; all its other claims are recomputed and compared.
Called by ``bellwether verify-plan``, and by the operator before a plan is shown for approval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from bellwether_load.verify.check_report import Check, Faults, Report
from bellwether_load.verify.hour_bound import HOURLY, HourBound
from bellwether_load.verify.hour_sums import HOURS, Busiest, HourRow, HourSums
from bellwether_load.verify.load_bounds import (
    Balance,
    able_below,
    balance,
    dual_bound,
    fixed_loads,
    item_bound,
    largest_item,
    least_moved,
)
from bellwether_load.verify.load_table import EVIDENCE, LoadTable, evidence_faults
from bellwether_load.verify.move_stream import MOVES, MoveRow, MoveStream
from bellwether_load.verify.partition_sums import (
    ELIGIBLE,
    FACTS,
    FORCED,
    LOADS,
    ORDERED,
    ORDERS,
    PROBLEM,
    STAY,
    PartitionRow,
    Sums,
    sweep,
)
from bellwether_load.verify.plan_documents import (
    LARGEST,
    Broker,
    BrokerHour,
    Certificate,
    Figures,
    HourlyClaim,
    Level,
    OtherCap,
    Plan,
    Problem,
)
from bellwether_load.verify.proof_search import bound_proof

ERROR = Fraction(1, 10**9)
"""Relative error that is allowed to figures that were rounded to a double."""

AIM = Fraction(1, 1000)
"""The target gap, in addition to what indivisible loads cost."""

OVER_LIMIT = Fraction(1002, 1000) + ERROR
"""A settled broker may be above its limit by the tolerance of the level that it is settled at."""

BROKERS = "brokers of the problem"
SAME = "made for this problem"
INPUT_DIGEST = "problem of the operator"
PROBLEM_DIGEST = "problem digest"
DIGEST = "plan digest"
CAP = "cap on moves"
COUNTS = "counts"
WEIGHTS = "weights"
LEVELS = "levels"
OTHER_CAPS = "other caps on moves"
PER_BROKER = "load per broker"
FORECAST = "busiest hour"

_SWEPT = (PROBLEM, LOADS, MOVES, FACTS, ORDERS, ELIGIBLE, STAY, FORCED, ORDERED)


def verify(
    problem: Problem,
    partitions: Iterable[PartitionRow],
    loads: LoadTable,
    plan: Plan,
    moves: Iterable[MoveRow],
    progress: Callable[[int], None] | None = None,
    input_digest: str = "",
    hours: Sequence[int] = (),
    hour_rows: Iterable[HourRow] = (),
    account: Mapping[str, Any] | None = None,
) -> Report:
    """Check everything that a plan claims. ``progress`` receives the number of partitions read.

    ``input_digest``: of the problem that the operator wrote; it is compared if given. ``hours``: those of the week that
    the loads know; ``hour_rows`` are the loads in these hours, in the order of the partitions. ``account``: what the
    loads rest on, by their job; the plan's evidence is compared with it if given.
    """
    faults = Faults()
    twins = sorted({b.id for b in problem.brokers if sum(o.id == b.id for o in problem.brokers) > 1})
    faults.extend(BROKERS, (f"broker {b} is listed twice" for b in twins))
    if not any(b.open for b in problem.brokers):
        faults.add(BROKERS, "no broker is open: no partition could have a leader")
    _same(problem, plan, faults)
    stream = MoveStream(moves, plan.problem_digest, faults)
    claimed = None if plan.certificate.hourly is None else HourBound(problem, hours, plan.certificate.hourly, faults)
    hourly = HourSums(problem, hours, hour_rows, faults, claimed) if hours else None
    sums = sweep(problem, partitions, loads, stream, faults, progress, hourly, of_input=bool(input_digest))
    checks = [_of(BROKERS, faults, found=f"{sum(b.open for b in problem.brokers)} of {len(problem.brokers)} open")]
    checks += [_of(SAME, faults)]
    if input_digest:
        checks += [_input(input_digest, sums.input_digest)]
    checks += [
        _compared(PROBLEM_DIGEST, plan.problem_digest, sums.problem_digest, "problem or loads are not those it is for"),
        _compared(DIGEST, plan.digest, sums.plan_digest, "the moves are not those that the digest names"),
    ]
    found = {PROBLEM: f"{sums.partitions:,}", MOVES: f"{sums.moved + sums.reordered:,}", FORCED: f"{sums.forced:,}"}
    checks += [_of(name, faults, found=found.get(name, "")) for name in _SWEPT]
    checks += [_cap(problem, sums), _counts(plan, sums)]
    if account is not None:
        faults.extend(EVIDENCE, evidence_faults(plan.evidence, account, sums.partitions, sums.without_load, len(hours)))
        checks.append(_of(EVIDENCE, faults, found=f"{len(hours)} hours"))
    if faults.any(BROKERS):
        return Report(plan.digest, tuple(checks))
    checks.append(_forecast(plan, hourly, faults))
    if plan.certificate.hourly is not None:
        checks.append(_hourly_bound(plan.certificate.hourly, plan, hourly, _allowed(problem, sums), faults))
    return _proved(problem, plan, sums, checks, faults)


def _proved(problem: Problem, plan: Plan, sums: Sums, checks: list[Check], faults: Faults) -> Report:
    before = balance(problem.brokers, sums, sums.led_before)
    after = balance(problem.brokers, sums, sums.led_after)
    checks += [_brokers(problem.brokers, plan, sums)]
    checks += _balances("before", plan.before, before) + _balances("after", plan.after, after)
    weights = _weights(problem, plan.certificate, faults, WEIGHTS)
    checks.append(_of(WEIGHTS, faults, found=f"{len(weights)} above 0" if weights else ""))
    item = largest_item(problem.brokers, sums)
    least = least_moved(problem.brokers, sums, after.max)
    checks += [_figure("largest item", plan.certificate.largest_item, item)]
    checks += [_whole("moved load", plan.moved.load, sums.moved_load)]
    checks += [_whole("least that must move", plan.moved.lower_bound, least, allowed=1)]
    figures: dict[str, Any] = {
        "partitions": sums.partitions,
        "moved": sums.moved,
        "reordered": sums.reordered,
        "movedLoad": sums.moved_load,
        "movedLoadLowerBound": least,
        "before": _document(before),
        "after": _document(after),
        "largestItem": float(item),
    }
    if not weights:
        return Report(plan.digest, tuple(checks), figures)
    fixed = fixed_loads(problem.brokers, sums)
    dual = _dual(problem, sums, weights, plan.certificate, fixed, {})
    bound = item_bound(problem.brokers, sums, fixed, dual)
    gap = after.max / bound - 1 if bound else None if after.max else Fraction(0)
    checks += [_figure("bound", plan.certificate.bound, bound), _gap(plan.certificate.gap, gap)]
    checks.append(_levels(problem, plan, sums, fixed, faults))
    if plan.certificate.other_caps:
        checks.append(_other_caps(problem, plan, sums, fixed, faults))
    aim = AIM + (item / bound if bound else 0)
    kept = gap is not None and gap <= aim
    figures |= {"dualBound": float(dual), "bound": float(bound), "gap": None if gap is None else float(gap)}
    figures |= {"aim": float(aim), "aimKept": kept}
    proof = bound_proof(problem, plan, sums, fixed, weights, dual, bound)
    figures |= {"proof": proof.document()}
    note = f"the gap is {'within' if kept else 'above'} the {_percent(aim)} to aim at: 0.1 % and one item on top"
    notes = (note, proof.text, *_claims(plan.certificate))
    return Report(plan.digest, tuple(checks), figures, notes, proof, sums.unmeasured)


def _claims(certificate: Certificate) -> Iterator[str]:
    """Figures of plans that are not stored: they only must be possible."""
    for other in certificate.other_caps:
        cap = "without maxMoves" if other.max_moves is None else f"with maxMoves {other.max_moves:,}"
        yield f"claimed, not verified: {other.load:,.2f} with {other.partitions:,} changed leaders {cap}"
    if certificate.hourly is not None and (by := certificate.hourly.statistic_plan) is not None:
        said = f"a busiest hour of {by.load:,.2f} with {by.partitions:,} changed leaders by the statistic alone"
        yield f"claimed, not verified: {said}"


def _same(problem: Problem, plan: Plan, faults: Faults) -> None:
    whose = {"clusterId": plan.cluster_id, "policy": plan.policy, "madeAt": plan.made_at, "objective": plan.objective}
    for name, said in whose.items():
        if said != (wanted := problem.document[name]):
            faults.add(SAME, f"{name} is {said!r} in the plan and {wanted!r} in the problem")


def _cap(problem: Problem, sums: Sums) -> Check:
    allowed = _allowed(problem, sums)
    if allowed is None:
        return Check(CAP, said="none", found=f"{sums.moved:,}")
    faults = () if sums.moved <= allowed else (f"{sums.moved} leaders change where {allowed} may",)
    return Check(CAP, faults, f"{problem.max_moves:,}", f"{sums.moved:,}")


def _allowed(problem: Problem, sums: Sums) -> int | None:
    """How many leaders may change; None for any number."""
    return None if problem.max_moves is None else max(problem.max_moves, sums.forced)


def _counts(plan: Plan, sums: Sums) -> Check:
    pairs = (
        ("partitions", plan.partitions, sums.partitions),
        ("withoutLoad", plan.without_load, sums.without_load),
        ("withoutConsumption", plan.without_consumption, sums.without_consumption),
        ("held", plan.held, sums.held),
        ("moved.partitions", plan.moved.partitions, sums.moved),
        ("moved.reordered", plan.moved.reordered, sums.reordered),
    )
    faults = tuple(f"{name} is {said}, there are {found}" for name, said, found in pairs if said != found)
    return Check(COUNTS, faults, found=f"{sums.moved:,} + {sums.reordered:,} orders")


def _forecast(plan: Plan, hourly: HourSums | None, faults: Faults) -> Check:
    """What is claimed of the busiest broker-hours."""
    said = plan.forecast
    if hourly is None or said is None:
        if (hourly is None) != (said is None):
            faults.add(FORECAST, "the plan has none" if said is None else "the plan has one, the loads have no hours")
        return _of(FORECAST, faults, found="" if hourly else "not known")
    before, after = hourly.finish()
    faults.extend(FORECAST, faults.of(HOURS))
    if said.hours != len(hourly.hours):
        faults.add(FORECAST, f"hours is {said.hours}, the loads know {len(hourly.hours)}")
    faults.extend(FORECAST, _broker_hour("before", said.before, before, hourly.hours))
    faults.extend(FORECAST, _broker_hour("after", said.after, after, hourly.hours))
    return Check(FORECAST, faults.of(FORECAST), f"{said.after.load:,.2f}", f"{float(after.load):,.2f}")


def _hourly_bound(
    claim: HourlyClaim, plan: Plan, hourly: HourSums | None, allowed: int | None, faults: Faults
) -> Check:
    """What is claimed of the busiest broker-hour of all plans. The plan of the statistic alone is not stored: it only
    must be possible."""
    proved = None if hourly is None else hourly.proved(allowed)
    if plan.forecast is None or proved is None:
        faults.add(HOURLY, "the plan has one and no forecast, or the loads have no hours")
        return _of(HOURLY, faults)
    if not _close(claim.bound, proved):
        faults.add(HOURLY, f"the plan says {claim.bound!r}, the files give {float(proved)!r}")
    other, load = claim.statistic_plan, plan.forecast.after.load
    if other is not None:
        if not load < other.load:
            faults.add(HOURLY, f"statisticPlan.load is {other.load!r}, expected above {load!r} of this plan")
        if allowed is not None and other.partitions > allowed:
            faults.add(HOURLY, f"statisticPlan: {other.partitions} leaders change where {allowed} may")
    return Check(HOURLY, faults.of(HOURLY), f"{claim.bound:,.2f}", f"{float(proved):,.2f}")


def _broker_hour(when: str, said: BrokerHour, found: Busiest, hours: Sequence[int]) -> Iterator[str]:
    if not _close(said.load, found.load):
        yield f"load {when} is {said.load!r}, the files give {float(found.load)!r}"
    who = f"broker {said.broker} in hour {said.hour} {when}"
    if said.broker not in found.loads or said.hour not in hours:
        yield f"{who}: no open broker, or no hour that the loads know"
    elif (load := found.loads[said.broker][hours.index(said.hour)]) != found.load:
        yield f"{who} is not the busiest: it has {float(load)!r}"


def _levels(problem: Problem, plan: Plan, sums: Sums, fixed: Mapping[int, int], faults: Faults) -> Check:
    """What is claimed of the brokers below the busiest ones."""
    free = {b.id: b for b in problem.brokers if b.open}
    settled: dict[int, Fraction] = {}
    least, most = plan.certificate.bound, plan.after.max
    for number, level in enumerate(plan.certificate.levels, start=2):
        name = f"level {number}"
        if not all(type(b) is int and b in free and b not in settled for b in level.settled):
            faults.add(LEVELS, f"{name} settles {level.settled}: expected ids of open brokers, each once")
            break
        # A level may be below its bound by what settled brokers are above their limits.
        least, most = sorted((least, most))
        if not least <= level.limit <= most:
            faults.add(LEVELS, f"{name} has the limit {level.limit!r}: expected one from {least!r} to {most!r}")
            break
        settled |= dict.fromkeys(level.settled, Fraction(level.limit))
        for b in level.settled:
            carried = Fraction(sums.base[b] + sums.led_after[b], free[b].capacity)
            if carried > settled[b] * OVER_LIMIT:
                what = f"broker {b} is settled at {level.limit!r} and carries {float(carried)!r}"
                faults.add(LEVELS, f"{name}: {what}: the limit does not hold for this plan")
        if faults.any(LEVELS):
            break
        weights = _weights(problem, level, faults, LEVELS)
        rest = [b for b in free.values() if b.id not in settled]
        if not any(b.id in weights for b in rest):
            faults.add(LEVELS, f"{name} has no weight on a broker that is not settled: it proves nothing")
            break
        dual = _dual(problem, sums, weights, level, fixed, settled)
        bound = item_bound(problem.brokers, sums, fixed, dual, settled)
        highest = max(Fraction(sums.base[b.id] + sums.led_after[b.id], b.capacity) for b in rest)
        for what, said, found in (("load", level.load, highest), ("bound", level.bound, bound)):
            if not _close(said, found):
                faults.add(LEVELS, f"{name}: {what} is {said!r}, the files give {float(found)!r}")
        least, most = level.bound, level.load
    return _of(LEVELS, faults, found=f"{len(plan.certificate.levels) + 1}")


def _other_caps(problem: Problem, plan: Plan, sums: Sums, fixed: Mapping[int, int], faults: Faults) -> Check:
    """The bounds with higher caps. The plans that were found with them are not stored: they only must be possible."""
    allowed = _allowed(problem, sums)
    if allowed is None:
        faults.add(OTHER_CAPS, "the problem has no maxMoves")
    least, most = allowed or 0, plan.after.max
    for number, other in enumerate(plan.certificate.other_caps):
        name = "without a cap" if other.max_moves is None else f"{other.max_moves:,} changed leaders"
        last = number == len(plan.certificate.other_caps) - 1
        if not (last if other.max_moves is None else other.max_moves > least):
            faults.add(OTHER_CAPS, f"{name}: expected higher and higher caps, the last of them null")
            break
        least = least if other.max_moves is None else max(other.max_moves, sums.forced)
        _other_cap(problem, other, name, most, sums, fixed, faults)
        most = other.load
    return _of(OTHER_CAPS, faults, found=f"{len(plan.certificate.other_caps)}")


def _other_cap(
    problem: Problem, other: OtherCap, name: str, most: float, sums: Sums, fixed: Mapping[int, int], faults: Faults
) -> None:
    weights = _weights(problem, other, faults, OTHER_CAPS)
    if other.move_weight and other.max_moves is None:
        faults.add(OTHER_CAPS, f"{name}: a changed leader has the weight {other.move_weight}, expected 0")
    if not weights or faults.any(OTHER_CAPS):
        return
    allowed = 0 if other.max_moves is None else max(other.max_moves, sums.forced)
    dual = dual_bound(problem.brokers, sums, weights, other.move_weight, allowed)
    bound = item_bound(problem.brokers, sums, fixed, dual)
    if not _close(other.bound, bound):
        faults.add(OTHER_CAPS, f"{name}: bound is {other.bound!r}, the files give {float(bound)!r}")
    if not other.bound * (1 - float(ERROR)) <= other.load < most:
        faults.add(OTHER_CAPS, f"{name}: load is {other.load!r}, expected {other.bound!r} or more, below {most!r}")
    if other.max_moves is not None and other.partitions > allowed:
        faults.add(OTHER_CAPS, f"{name}: {other.partitions} leaders change where {allowed} may")


def _dual(
    problem: Problem,
    sums: Sums,
    weights: Mapping[int, int],
    claimed: Certificate | Level,
    fixed: Mapping[int, int],
    settled: Mapping[int, Fraction],
) -> Fraction:
    """The bound of the claimed weights and threshold."""
    threshold = None if claimed.threshold is None else Fraction(claimed.threshold)
    able = {} if threshold is None else able_below(problem.brokers, fixed, threshold, settled)
    most = _allowed(problem, sums) or 0
    return dual_bound(problem.brokers, sums, weights, claimed.move_weight, most, settled, able, threshold)


def _weights(problem: Problem, claimed: Certificate | Level | OtherCap, faults: Faults, check: str) -> dict[int, int]:
    """The weights above 0, or none where something is wrong with them or the threshold."""
    free = {str(b.id): b.id for b in problem.brokers if b.open}
    known = {str(b.id) for b in problem.brokers}
    found = {}
    for name, weight in claimed.weights.items():
        if not isinstance(weight, int) or isinstance(weight, bool) or not 0 <= weight <= LARGEST:
            faults.add(check, f"broker {name!r} has the weight {weight!r}: expected a whole number, 0 or more")
        elif name not in free:
            what = "is closed" if name in known else "is no broker of the problem"
            faults.add(check, f"broker {name!r} has a weight and {what}")
        elif weight:
            found[free[name]] = weight
    threshold = None if isinstance(claimed, OtherCap) else claimed.threshold
    if threshold is not None and threshold <= 0:
        faults.add(check, f"threshold is {threshold!r}: expected a load above 0")
    if claimed.move_weight and problem.max_moves is None:
        faults.add(check, f"a changed leader has the weight {claimed.move_weight}, and the problem has no maxMoves")
    if not found and not faults.any(check):
        faults.add(check, "all are 0: they prove nothing")
    return {} if faults.any(check) else found


def _brokers(brokers: Sequence[Broker], plan: Plan, sums: Sums) -> Check:
    faults = Faults()
    if [b[:4] for b in plan.brokers] != list(brokers):
        faults.add(PER_BROKER, "the plan's brokers are not those of the problem, in its order")
    else:
        for b in plan.brokers:
            for when, claimed, led in (("before", b.before, sums.led_before), ("after", b.after, sums.led_after)):
                exact = Fraction(sums.base[b.id] + led[b.id], b.capacity)
                if not _close(claimed, exact):
                    faults.add(PER_BROKER, f"broker {b.id} {when} is {claimed!r}, there is {float(exact)!r}")
    return Check(PER_BROKER, faults.of(PER_BROKER), found=f"{len(brokers)} brokers")


def _balances(when: str, said: Figures, found: Balance) -> list[Check]:
    return [
        _figure(f"maximum {when}", said.max, found.max),
        _figure(f"mean {when}", said.mean, found.mean),
        _ratio(f"spread {when}", said.spread, found.spread),
    ]


def _of(name: str, faults: Faults, found: str = "") -> Check:
    return Check(name, faults.of(name), found=found)


def _compared(name: str, said: str, found: str, means: str) -> Check:
    faults = () if said == found else (f"the plan says {said!r}, the files give {found}: {means}",)
    return Check(name, faults, said[:32], found[:32])


def _input(pinned: str, found: str) -> Check:
    text = f"the stored problem is not the one that the operator wrote: its digest is {found}, not {pinned}"
    return Check(INPUT_DIGEST, () if found == pinned else (text,), pinned[:32], found[:32])


def _figure(name: str, said: float, found: Fraction) -> Check:
    faults = () if _close(said, found) else (f"the plan says {said!r}, the files give {float(found)!r}",)
    return Check(name, faults, f"{said:,.2f}", f"{float(found):,.2f}")


def _ratio(name: str, said: float, found: Fraction) -> Check:
    fine = abs(Fraction(said) - found) <= ERROR * (1 + abs(found))
    faults = () if fine else (f"the plan says {said!r}, the files give {float(found)!r}",)
    return Check(name, faults, _percent(said), _percent(found))


def _gap(said: float | None, found: Fraction | None) -> Check:
    if found is None:
        faults = () if said is None else (f"the plan says {said!r}, and the bound of 0 leaves none",)
        return Check("gap", faults, "none" if said is None else _percent(said), "none")
    if said is None:
        return Check("gap", (f"the plan says none, the files give {float(found)!r}",), "none", _percent(found))
    return _ratio("gap", said, found)


def _whole(name: str, said: int, found: int, allowed: int = 0) -> Check:
    fine = abs(said - found) <= max(allowed, 0)
    faults = () if fine else (f"the plan says {said}, the files give {found}",)
    return Check(name, faults, f"{said:,}", f"{found:,}")


def _close(said: float, exact: Fraction) -> bool:
    return abs(Fraction(said) - exact) <= ERROR * abs(exact)


def _percent(share: float | Fraction) -> str:
    return f"{float(share):.4%}".replace("%", " %")


def _document(found: Balance) -> dict[str, float]:
    return {"max": float(found.max), "mean": float(found.mean), "spread": float(found.spread)}

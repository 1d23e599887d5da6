"""Why a verified bound is not lower: the brokers that cannot go lower, what they must carry, their heaviest partitions.

In: the bounds of a problem and the weights of a plan. Out: a text. Nothing is taken from the plan's own words. Shown by
``verify-plan``, status and page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from bellwether_load.verify.load_bounds import Bounds, Weights

MOST_NAMED = 6
"""Brokers that a text names; of more it names the first ones and their number."""
MOST_PARTITIONS = 3
"""Partitions that are named, if each is at least this share of the bound."""
_SHARE = 0.1


def bound_reasons(
    bounds: Bounds, weights: Weights, dual: Fraction, bound: Fraction, ids: Sequence[int], name: Callable[[int], str]
) -> str:
    """What decides a bound: ``weights``, whose bound is ``dual``, or a single broker or partition if that is lower.

    ``ids`` of the brokers; ``name`` of a partition.
    """
    opened = np.flatnonzero(bounds.open).tolist()
    if not bound:
        return "The bound is 0: nothing that is measured must stay on any broker."
    if bound > dual:
        held = [b for b in opened if Fraction(int(bounds.fixed[b]), int(bounds.size[b])) == bound]
        if not held:
            return _alone(bounds, bound, ids, name)
        weights = Weights((np.arange(len(ids)) == held[0]).astype(np.int64))
    of = weights.of[opened]
    if (of == of[0]).all() and not weights.change:
        return f"All {len(opened):,} open brokers prove the bound: it is their mean."
    proving = np.flatnonzero(weights.of).tolist()
    cap = f"With {weights.most:,} changed leaders " if weights.change else ""
    said = f"{cap}{proving_brokers([ids[b] for b in proving], len(opened), start=not cap)} cannot go lower"
    may, leader, none = bounds.may, bounds.cheapest(weights), len(ids)
    paid = bounds.load * np.append(weights.of, 0)[leader].astype(np.float64)
    least = np.append(weights.of, np.iinfo(np.int64).max)[may].min(axis=1) > 0
    parts = {
        "is following": float((weights.of * bounds.base.astype(np.float64)).sum()),
        "are leaders that must stay": paid[bounds.sole].sum(),
        "are leaders that no other broker may have": paid[~bounds.sole & least].sum(),
        "are leaders that would need further moves": paid[~bounds.sole & ~least].sum(),
    }
    shares = {what: part / (sum(parts.values()) or 1) for what, part in parts.items()}
    listed = _listed([f"{_percent(share)} {what}" for what, share in shares.items() if share >= 0.005])
    said += f": of what {'it' if len(proving) == 1 else 'they'} must carry, {listed}."
    on = np.where((may < none) & (np.append(weights.of, 0)[may] > 0), np.append(bounds.size, 0)[may], 0).max(axis=1)
    of_bound = np.where(paid > 0, bounds.load / (float(bound) * np.maximum(on, 1)), 0.0)
    heavy = [row for row in np.argsort(-of_bound, kind="stable")[:MOST_PARTITIONS] if of_bound[row] >= _SHARE]
    if heavy:
        first, *others = [(name(int(bounds.rows[row])), _percent(of_bound[row])) for row in heavy]
        said += (
            f" {first[0]} alone needs {first[1]} of the bound{''.join(f', {one} {share}' for one, share in others)}."
        )
    return said


def _alone(bounds: Bounds, bound: Fraction, ids: Sequence[int], name: Callable[[int], str]) -> str:
    """That one partition needs the bound on each broker that may lead it."""
    _, row = bounds.alone(bound * Fraction(999_999, 1_000_000), {})
    if row is None:
        raise ValueError("no broker and no partition has that bound")
    load, may = int(bounds.load[row]), [b for b in bounds.may[row].tolist() if b < len(ids)]
    best = next(b for b in may if Fraction(int(bounds.fixed[b]) + load, int(bounds.size[b])) == bound)
    share = load / float(bound * int(bounds.size[best]))
    rest = f" The rest is what broker {ids[best]}, the best one for it, carries in any case." if share <= 0.995 else ""
    said = f"{name(int(bounds.rows[row]))} alone needs {_percent(share)} of the bound"
    return f"{said}, whichever broker leads it.{rest}"


def proving_brokers(brokers: Sequence[int], opened: int, *, start: bool = True) -> str:
    """Brokers as a subject: all of a few, the number and the first ones of many."""
    word = f"{'B' if start else 'b'}roker{'s' * (len(brokers) != 1)}"
    if len(brokers) <= MOST_NAMED:
        return f"{word} {_listed([str(b) for b in brokers])}"
    first = ", ".join(map(str, brokers[:3]))
    return f"{len(brokers):,} of {opened:,} open brokers ({first}, …) together"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share < 0.995 or share >= 0.9995 else "over 99 %"

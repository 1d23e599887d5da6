"""Balance with a limited number of moves: the higher the target, the fewer leaders move."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from bellwether_load.planning.brokers import Brokers
from bellwether_load.planning.pools import Pool
from bellwether_load.planning.rounds import Balance, balance

HALVINGS = 7


def capped(pool: Pool, brokers: Brokers, most: int | None, *, tell: Callable[[str], None] = lambda _: None) -> Balance:
    """Balance with at most ``most`` changed leaders; mandatory changes count, and are always made."""
    forced = pool.changed()
    found = balance(pool, brokers, tell=tell)
    if most is None or pool.changed() <= max(most, forced):
        return found
    pool.reset()
    low, high = Fraction(found.floor), _highest(pool, brokers)
    best: Fraction | None = None
    for _ in range(HALVINGS):
        target = (low + high) / 2
        pool.reset()
        balance(pool, brokers, target=target)
        moved = pool.changed()
        tell(f"target {float(target):.4g} for the busiest broker: {moved} leaders move, limit {most}")
        if moved <= max(most, forced):
            best = high = target
        else:
            low = target
    pool.reset()
    return balance(pool, brokers, target=high if best is None else best)


def _highest(pool: Pool, brokers: Brokers) -> Fraction:
    """Load of the busiest broker with mandatory moves only."""
    return brokers.busiest(balance(pool, brokers, target=Fraction(2**62)).carried)

"""Certificate of a rebalance plan: the weights that prove how good it is, for the busiest broker and for those below
it.

Made by the plan job, verified by the verifier, shown in the terminal and on the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CertificateLevel:
    """Proof for the brokers below the busiest ones.

    ``settled`` are the brokers of the level above, in addition to those settled there; ``limit`` is their relative
    load: the bound of the level above or, where the plan is not close to it, their highest one in this plan. As long
    as settled brokers keep to their limits, no plan has a lower highest load of the others than ``bound``.
    """

    settled: tuple[int, ...]
    limit: float
    weights: Mapping[int, int]
    move_weight: int
    bound: float


@dataclass(frozen=True)
class HourlyProof:
    """No plan has a lower busiest broker-hour than ``bound``.

    ``weights``: by hour of the week and broker, ``request_weights`` likewise for requests; ``move_weight``: of a
    changed leader. ``partition``: row of the problem
    of a partition whose leader, whichever it is, reaches the bound in an hour; None unless that decides the bound.
    """

    weights: Mapping[int, Mapping[int, int]]
    move_weight: int
    partition: int | None
    bound: float
    request_weights: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    def gap(self, load: float) -> float | None:
        """How far a busiest broker-hour is above the bound, as a ratio minus 1; None where the bound is 0."""
        return load / self.bound - 1 if self.bound else None


@dataclass(frozen=True)
class Certificate:
    """Proof of a plan's quality: dual weights per eligible broker, and the lower bound that they give.

    ``move_weight`` is the weight of a changed leader, above 0 only where ``maxMoves`` limits them. ``levels``
    prove how low the brokers below the busiest ones are, level by level. ``hourly``: the same question for the busiest
    broker-hour; None where no hour is known.
    """

    weights: Mapping[int, int]
    move_weight: int
    bound: float
    levels: tuple[CertificateLevel, ...] = ()
    hourly: HourlyProof | None = None

    @property
    def proving(self) -> tuple[int, ...]:
        """The brokers with a weight."""
        return tuple(sorted(b for b, weight in self.weights.items() if weight))

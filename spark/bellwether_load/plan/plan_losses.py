"""What a plan says of losses: the worst loss of a broker and of a rack, before and after, and a proof.

Made by the plan job, verified by the verifier, shown in status, in the terminal and on the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

HEAVIEST = 1_000
"""Of the partitions with a choice, the heaviest ones, in the problem's order where equal: what a threshold of a bound
excludes is derived from these."""


@dataclass(frozen=True, slots=True)
class WorstLoss:
    """The loss that brings a broker highest: what is ``lost`` (a broker's id, or a rack), that ``broker``, and its
    relative ``load``."""

    lost: str
    broker: int
    load: float


@dataclass(frozen=True, slots=True)
class PlanLoss:
    """Losses of one ``kind``, ``broker`` or ``rack``.

    No plan whose busiest broker is as low as this one's has a lower worst loss than ``bound``. ``lost_weights``: whole
    numbers by what is lost and survivor; ``normal_weights``: of brokers while none is lost. ``threshold``: relative
    load; the weights count only leaders and heirs that a plan below it can have.
    """

    kind: str
    before: WorstLoss
    after: WorstLoss
    bound: float
    lost_weights: Mapping[str, Mapping[int, int]]
    normal_weights: Mapping[int, int]
    threshold: float | None

    @property
    def gap(self) -> float | None:
        """How far the worst loss is above the bound, as a ratio minus 1; None where the bound is 0."""
        return self.after.load / self.bound - 1 if self.bound else None


@dataclass(frozen=True, slots=True)
class PlanLosses:
    """Each kind of loss."""

    kinds: tuple[PlanLoss, ...]

    def line(self, busiest: float, *, capped: bool = False) -> str:
        """The losses in a sentence, in multiples of the busiest broker of the plan while none is lost.

        ``capped``: a limit of changed leaders holds, which the bounds do not know.
        """
        return "; ".join(_said(loss, busiest, capped=capped) for loss in self.kinds) if busiest else ""


def _said(loss: PlanLoss, busiest: float, *, capped: bool) -> str:
    name = "one broker" if loss.kind == "broker" else f"a {loss.kind}"
    before, after = loss.before.load / busiest, loss.after.load / busiest
    proved = ""
    if loss.gap is not None:  # rounded up: the claim must hold
        proved = f", at most {math.ceil(max(loss.gap, 0.0) * 1000) / 10:g} % above the best possible"
        proved += " without maxMoves" * capped
    worst = f"without {loss.kind} {loss.after.lost}, broker {loss.after.broker} carries {after:.2f} times"
    return f"worst loss of {name}: {worst} the busiest broker (before the plan {before:.2f} times){proved}"

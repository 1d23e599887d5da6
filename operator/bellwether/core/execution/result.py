"""Execution result: leaders reordered and elected, partitions held, and why the run was aborted, if so.

Created by the executor; ``reporting`` uses it for conditions and the audit log.
"""

from __future__ import annotations

from dataclasses import dataclass

from bellwether.core.model.refusals import Hold, Refusal
from bellwether.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """Changes made in Kafka. ``touched`` names partitions whose replica set changed around our reorder.

    ``refused_orders`` and ``refused_elections`` are those of the ``holds`` whose new order, or whose election, Kafka
    refused.
    """

    reordered: int = 0
    elected: int = 0
    holds: tuple[Hold, ...] = ()
    touched: tuple[Hold, ...] = ()
    stopped: Refusal | None = None
    refused_orders: tuple[Hold, ...] = ()
    refused_elections: tuple[Hold, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether Kafka accepted any change, visible or not, so that the next reconcile should follow at once."""
        accepted = any(h.reason is Reason.NO_ANSWER for h in self.holds)
        return bool(self.reordered or self.elected or accepted)

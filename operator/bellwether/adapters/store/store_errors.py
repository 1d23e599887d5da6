"""Errors of a store and of a plan in one, named by what the caller must do next.

Apart from the store itself, so that the operator can handle them without Arrow, which only a policy that rebalances
needs. Raised by everything that keeps Parquet.
"""

from __future__ import annotations

from bellwether.ports.errors import BellwetherError, Terminal, Transient


class StoreError(BellwetherError):
    """Base of what goes wrong with a store; raised as one of the classes below, which say what to do next."""


class StoreUnusable(StoreError, Terminal):
    """A person must act: no such place, no permission, no such file system."""


class StoreUnavailable(StoreError, Transient):
    """It may pass: no answer, no room, a fault of the network."""


class StoreMissing(StoreUnusable):
    """The file is not there, or no longer."""


class StoreDamaged(StoreUnusable):
    """The file is there and is not what it should be: truncated, or no Parquet at all."""


class PlanUnfit(Terminal):
    """A plan that is not what was asked for, or not what was approved; it is not applied."""

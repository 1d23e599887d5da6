"""Errors of a store and of the plans in it, classified by what the caller must do next.

Separate from the store, so that the operator can handle them without Arrow, which is needed only for rebalancing.
Raised by everything that stores Parquet.
"""

from __future__ import annotations

from bellwether.ports.errors import BellwetherError, Terminal, Transient


class StoreError(BellwetherError):
    """Base of store errors; raised as one of the classes below, which say what to do next."""


class StoreUnusable(StoreError, Terminal):
    """Manual action is needed: the location does not exist, a permission is missing, or the file system is not
    supported.
    """


class StoreUnavailable(StoreError, Transient):
    """May be temporary: no response, no space, a network error."""


class StoreMissing(StoreUnusable):
    """The file is not there, or no longer."""


class StoreDamaged(StoreUnusable):
    """The file exists but is invalid: truncated, or not Parquet."""


class StoreNewer(StoreError, Terminal):
    """The file is of a later release: it is valid, and this release must not go on without it."""


class PlanUnfit(Terminal):
    """A plan that does not match the request or the approval; it is not applied."""

"""Ports of the quarantine agent: the broker's process, and the orders to hold it."""

from __future__ import annotations

from typing import Protocol

from bellwether.core.quarantine.agent import OrderRead, ProcessState


class BrokerProcess(Protocol):
    """The process of the agent's broker."""

    def state(self) -> ProcessState:
        """How it is now."""
        ...

    def remedy(self) -> str:
        """Why it cannot be held, with figures, and what to set; empty where that is not known."""
        ...

    def hold(self) -> None:
        """Shut it down, and stop it as soon as no client is left. Takes seconds. Raises Transient when that fails."""
        ...

    def release(self) -> None:
        """Let it go on; nothing happens to one that runs. Raises Transient."""
        ...

    def guarded(self) -> bool:
        """Whether it would be released should we die this moment; asking is a sign of life."""
        ...


class Orders(Protocol):
    """Reads the agent's orders. Raises Transient or Terminal."""

    def read(self) -> OrderRead:
        """The current order for its broker, and whether another broker is held."""
        ...

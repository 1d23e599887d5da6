"""``python -m testkit.processes.crash_points operator ...``: bellwether, killed, frozen or hung at a side effect.

In: the variable DIES_AT (SIGKILL), FREEZES_AT (SIGSTOP) or HANGS_AT (that thread alone goes no further), such as
``after elect 1`` or ``before reorder 2``; only the requests of this process count. ``event loop 1`` hangs the watches.
At ``before reorder`` the undo record is durable and the request not yet sent; at ``after`` Kafka has done its part and
the operator does not know it. It says on stderr when it gets there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import Any

from bellwether.adapters.kafka.leader_mover import KafkaMover
from bellwether.cli.main import main
from bellwether.controllers import policy_manager
from bellwether.telemetry.heartbeat import Heartbeat

REACHED = "reached its point:"
WENT_ON = "went on after:"
HANGS_SECONDS = 3600.0


def hang_event_loop() -> None:
    """Let the event loop of the watches hang once it has begun."""

    async def stuck(pulse: Heartbeat) -> None:
        pulse.beat()
        await asyncio.sleep(1)
        os.write(2, f"{REACHED} event loop\n".encode())
        time.sleep(HANGS_SECONDS)

    policy_manager._beat = stuck


def arm(point: str, number: signal.Signals | None) -> None:
    """Let this process send itself a signal, or a thread hang, at a point. ValueError for a point that there is not."""
    when, effect, count = point.split()
    if when not in ("before", "after") or effect not in ("reorder", "elect"):
        raise ValueError(f"{point!r}: say before or after, reorder or elect, and a number")
    request: Callable[..., Any] = getattr(KafkaMover, effect)
    done = 0

    def strike() -> None:
        os.write(2, f"{REACHED} {point}\n".encode())
        if number is None:
            time.sleep(HANGS_SECONDS)
            return
        signal.raise_signal(number)  # to this very thread, which goes no further before it strikes

    def fateful(*arguments: Any) -> Any:
        nonlocal done
        done += 1
        if done == int(count) and when == "before":
            strike()
        answer = request(*arguments)
        if done == int(count) and when == "after":
            strike()
        if done == int(count):
            os.write(2, f"{WENT_ON} {point}\n".encode())
        return answer

    setattr(KafkaMover, effect, fateful)


if __name__ == "__main__":
    if "DIES_AT" in os.environ:
        arm(os.environ["DIES_AT"], signal.SIGKILL)
    if "FREEZES_AT" in os.environ:
        arm(os.environ["FREEZES_AT"], signal.SIGSTOP)
    if os.environ.get("HANGS_AT") == "event loop 1":
        hang_event_loop()
    elif "HANGS_AT" in os.environ:
        arm(os.environ["HANGS_AT"], None)
    main(prog_name="bellwether")

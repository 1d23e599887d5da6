"""Call a plug-in on a thread of its own, so that a call that hangs does not block its caller.

In: a kind and what it is to measure. Out: a validated ``Measurement``, available when the call has returned. A thread
cannot be ended from outside, so a call that hangs keeps its own; it is for the caller to bound how many may. Called by
``plugin_probe``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from queue import SimpleQueue

from bellwether.core.settings.detection import Plugin
from bellwether.ports.clock import Clock
from bellwether.probes.plugins.plugin_api import Kind, Measurement
from bellwether.probes.plugins.plugin_window import Unsound, vetted, worded

# Extra time for a call to be scheduled and to report its own timeout.
GRACE_SECONDS = 0.3


class Attempt:
    """One measurement under way. ``trouble`` names a failure of the plug-in itself, empty if none."""

    def __init__(
        self,
        kind: Kind,
        broker: int,
        addresses: Mapping[str, str],
        settings: Plugin,
        done: SimpleQueue[Attempt],
        clock: Clock,
    ) -> None:
        self.broker = broker
        self.result = Measurement(None)
        self.trouble = ""
        self.deadline = clock.monotonic() + settings.timeout_seconds + GRACE_SECONDS
        self._kind = kind
        self._addresses = dict(addresses)
        self._settings = settings
        self._done = done
        self._thread = threading.Thread(target=self._run, name=f"measure-{broker}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _run(self) -> None:
        wanted = self._settings
        try:
            result = self._kind.measure(
                self.broker, self._addresses, dict(wanted.settings), float(wanted.timeout_seconds)
            )
            self.result, self.trouble = vetted(result), ""
        except Unsound as error:
            self.result, self.trouble = Measurement(None, str(error)), "returns nonsense"
        except BaseException as error:  # a kind that calls sys.exit() must not end its thread in silence
            name = worded(type(error).__name__, 80)
            self.result, self.trouble = (
                Measurement(None, f"the measurement raised {name}{_text(error)}"),
                f"raises {name}",
            )
        finally:
            self._done.put(self)


def overdue(settings: Plugin) -> Measurement:
    """The result of a call that has not returned in time."""
    return Measurement(None, f"the measurement has not ended within {settings.timeout_seconds} s")


def attempted(
    kind: Kind, brokers: Mapping[int, Mapping[str, str]], settings: Plugin, clock: Clock, at_once: int = 32
) -> dict[int, Measurement]:
    """Measure every broker once."""
    found: dict[int, Measurement] = {}
    waiting = sorted(brokers.items())
    for start in range(0, len(waiting), at_once):
        done: SimpleQueue[Attempt] = SimpleQueue()
        begun = [Attempt(kind, b, addresses, settings, done, clock) for b, addresses in waiting[start:][:at_once]]
        for attempt in begun:
            attempt.start()
        for _ in begun:
            try:
                ended = done.get(timeout=max(0.0, begun[-1].deadline - clock.monotonic()))
            except queue.Empty:
                break
            found[ended.broker] = ended.result
        found |= {attempt.broker: overdue(settings) for attempt in begun if attempt.broker not in found}
    return dict(sorted(found.items()))


def _text(error: BaseException) -> str:
    try:
        text = worded(str(error), 200)
    except Exception:  # an error whose text is an error
        return ""
    return f": {text}" if text else ""

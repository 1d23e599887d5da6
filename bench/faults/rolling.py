"""Restarts as they happen: a broker goes, comes back, and the load balancer takes its time to find it again.

In: a running ``Stage``. Out: faults for ``scenarios``. The storage prober goes and comes with its broker, as a sidecar
does; the next broker follows when the one before is in every ISR and registered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from faults.breaking import cut
from faults.stage import QUICK, Stage

REGISTRATION_SECONDS = 20.0
ISR_SECONDS = 90.0


@contextmanager
def crashed(stage: Stage, broker: int = 2) -> Iterator[None]:
    """A broker is killed and started again at once."""
    with _released(stage):
        _restart(stage, broker, politely=False)
        yield


def rolling(stage: Stage) -> AbstractContextManager[None]:
    """Every broker in turn, under the settings that a policy has by default, promotion included."""

    @contextmanager
    def broken() -> Iterator[None]:
        stage.site.change(promotion=None)
        try:
            with _released(stage):
                for broker in stage.brokers:
                    _restart(stage, broker, politely=True)
                yield
        finally:
            stage.site.change(promotion=QUICK)

    return broken()


def _restart(stage: Stage, broker: int, *, politely: bool) -> None:
    one, prober = stage.kafka.broker(broker), stage.storage_prober(broker)
    stage.watch.broken(broker)
    stage.excuse(prober)
    prober.stop(5)
    cut(stage, broker)
    if politely:
        one.stop()
    else:
        one.kill()
    prober.start()
    stage.excuse(prober, excused=False)
    one.start()
    stage.rest(REGISTRATION_SECONDS)
    stage.release(broker)
    stage.watch.broken(None)
    stage.until(lambda: _caught_up(stage), ISR_SECONDS, f"broker {broker} is in every ISR")


def _caught_up(stage: Stage) -> bool:
    return stage.watch.ask(lambda seen: all(set(p.isr) == set(p.replicas) for p in seen.view.values()))


@contextmanager
def _released(stage: Stage) -> Iterator[None]:
    try:
        yield
    finally:
        stage.watch.broken(None)
        for broker in stage.brokers:
            stage.kafka.broker(broker).process.start()  # a broker that a failed step left down
            stage.release(broker)

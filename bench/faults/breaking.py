"""The ways to break a stage, each undone on leaving: what ``scenarios`` is made of.

In: a running ``Stage``. Out: context managers, entered when all is well. A fault of several steps says itself when it
has begun (``stage.witness.begin``), all others begin as they are entered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from faults.busywork import repeated, starved
from faults.expectations import Demotion, Expected
from faults.lossy_path import LossyPath
from faults.stage import VANTAGES, Stage
from realparts.blackholes import Blackhole
from realparts.processes import ManagedProcess
from realparts.slowdisk import Mode, SlowDisk

Break = Callable[[Stage], AbstractContextManager[None]]

HOUR = 3600
DEMOTED_SECONDS = 60.0


def way(act: Callable[[Stage, int], None], *brokers: int) -> Break:
    """Something done to the way from the load balancer to some brokers."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        try:
            for broker in brokers:
                act(stage, broker)
            yield
        finally:
            for broker in brokers:
                stage.release(broker)

    return broken


def cut(stage: Stage, broker: int) -> None:
    """Connections are closed and refused."""
    stage.proxy.cut(stage.name_of(broker))


def swallow(stage: Stage, broker: int) -> None:
    """Packets are dropped."""
    stage.swallow(broker)


def silence(stage: Stage, broker: int) -> None:
    """Connections are accepted and nothing ever answers."""
    stage.proxy.blackhole(stage.name_of(broker))


def reset(stage: Stage, broker: int) -> None:
    """Connections are accepted, and reset as soon as something is said."""
    stage.proxy.reset_peer(stage.name_of(broker))


def reset_some(share: float) -> Callable[[Stage, int], None]:
    """A share of the connections is reset as soon as something is said, and the others work."""
    return lambda stage, broker: stage.proxy.reset_some(stage.name_of(broker), share)


def delay(milliseconds: int) -> Callable[[Stage, int], None]:
    """Every answer comes so much later."""
    return lambda stage, broker: stage.proxy.slow(stage.name_of(broker), milliseconds)


def mislead(to: int) -> Callable[[Stage, int], None]:
    """The load balancer sends one broker's address to another broker."""
    return lambda stage, broker: stage.proxy.lead(stage.name_of(broker), stage.name_of(to))


def expired(broker: int) -> Break:
    """The certificate that a broker shows outside has expired; it is renewed in the end. Nothing restarts for it."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        try:
            stage.kafka.certify(broker, expired=True)
            yield
        finally:
            stage.kafka.certify(broker, expired=False)

    return broken


def own_path(*vantages: str, brokers: tuple[int, ...] = (), dropped: bool) -> Break:
    """The vantages' own path to these brokers (to all by default) is broken, and no one else's."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        ports = [stage.external_port(broker) for broker in brokers or stage.brokers]
        with ExitStack() as stack:
            end = stage.closed_port()
            if dropped:
                stack.enter_context(Blackhole(end))
            for vantage in vantages:
                stack.callback(stage.detours[vantage].clear)
                stage.detours[vantage].send(dict.fromkeys(ports, end))
            yield

    return broken


def losing_packets(vantage: str, share: float) -> Break:
    """A vantage's own path to every broker, outside and inside, loses that share of its packets."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        inside = [int(broker.internal.rpartition(":")[2]) for broker in stage.kafka.brokers.values()]
        with ExitStack() as stack:
            lossy = {
                port: stack.enter_context(LossyPath(port, share)).port
                for port in (*inside, *map(stage.external_port, stage.brokers))
            }
            stack.callback(stage.detours[vantage].clear)
            stage.detours[vantage].send(lossy)
            yield

    return broken


def flapping(down_seconds: float, up_seconds: float, broker: int) -> Break:
    """The way to a broker is cut and restored again and again."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        def flap(stop: threading.Event) -> None:
            cut(stage, broker)
            stop.wait(down_seconds)
            stage.release(broker)
            stop.wait(up_seconds)

        try:
            with repeated(flap):
                yield
        finally:
            stage.release(broker)

    return broken


def disk(milliseconds: int, *brokers: int, mode: Mode = "write+fsync") -> Break:
    """Every write below the brokers' log directories takes so much longer, together with its sync; or every read."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        try:
            # It learns late what the controller has decided, or never, as that goes to its log directory first.
            stage.watch.broken(brokers[0] if len(brokers) == 1 else None)
            for broker in brokers:
                stage.kafka.slow_disk(broker).set(milliseconds, mode)
            yield
        finally:
            for broker in brokers:
                stage.kafka.slow_disk(broker).clear()
            stage.watch.broken(None)

    return broken


def stalled(broker: int) -> Break:
    """A disk that has stopped answering."""
    return disk(SlowDisk.STALLED, broker)


def bursts(milliseconds: int, seconds: float, of_seconds: float, *brokers: int) -> Break:
    """Disks that are slow now and then, one after the other."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        disks = [stage.kafka.slow_disk(broker) for broker in brokers]

        def burst(stop: threading.Event) -> None:
            for disk in disks:
                disk.set(milliseconds)
                stop.wait(seconds)
                disk.clear()
            stop.wait(of_seconds - seconds * len(disks))

        try:
            with repeated(burst):
                yield
        finally:
            for disk in disks:
                disk.clear()

    return broken


def drip(steps: Sequence[tuple[float, int]], broker: int) -> Break:
    """A disk that gets slower step by step (seconds, milliseconds) and stays as slow as in the last step."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        slow = stage.kafka.slow_disk(broker)

        def step(stop: threading.Event) -> None:
            for seconds, milliseconds in steps:
                slow.set(milliseconds)
                if stop.wait(seconds):
                    return
            stop.wait()

        try:
            stage.watch.broken(broker)
            with repeated(step):
                yield
        finally:
            slow.clear()
            stage.watch.broken(None)

    return broken


@contextmanager
def dead_and_cut(stage: Stage, dead: int = 2, unreachable: int = 1) -> Iterator[None]:
    """One broker is killed and stays dead; when Kafka has fenced it, another one is cut off from its clients."""
    one, prober = stage.kafka.broker(dead), stage.storage_prober(dead)
    stage.watch.broken(dead)
    stage.excuse(prober)
    try:
        prober.stop(5)
        one.kill()
        stage.until(lambda: stage.watch.ask(lambda seen: seen.leaders().get(dead, 0) == 0), 60, f"{dead} leads nothing")
        cut(stage, unreachable)
        stage.witness.begin()
        yield
    finally:
        stage.release(unreachable)
        prober.start()
        stage.excuse(prober, excused=False)
        one.process.start()
        stage.watch.broken(None)


def frozen(broker: int, seconds: float | None = None) -> Break:
    """A broker's process is frozen: for so long, or until the scenario ends."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        one = stage.kafka.broker(broker)
        stage.watch.broken(broker)
        one.pause()
        try:
            if seconds is not None:
                stage.rest(seconds)
                one.resume()
            yield
        finally:
            one.resume()
            stage.watch.broken(None)

    return broken


def freezing(broker: int, frozen_seconds: float, of_seconds: float) -> Break:
    """A broker's process is frozen again and again, each time for less than Kafka needs to fence it."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        one = stage.kafka.broker(broker)

        def freeze(stop: threading.Event) -> None:
            one.pause()
            stop.wait(frozen_seconds)
            one.resume()
            stop.wait(of_seconds - frozen_seconds)

        stage.watch.broken(broker)
        try:
            with repeated(freeze):
                yield
        finally:
            one.resume()
            stage.watch.broken(None)

    return broken


def both(*faults: Break) -> Break:
    """Several at once."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        with ExitStack() as stack:
            for fault in faults:
                stack.enter_context(fault(stage))
            yield

    return broken


def few_cycles(share: float, which: Callable[[Stage], list[ManagedProcess]]) -> Break:
    """Probers get a small share of the machine's time."""
    return lambda stage: starved(which(stage), share)


@contextmanager
def halted(processes: list[ManagedProcess]) -> Iterator[None]:
    """Probers neither measure nor renew their Leases."""
    try:
        for process in processes:
            process.pause()
        yield
    finally:
        for process in processes:
            process.resume()


def all_halted(stage: Stage) -> AbstractContextManager[None]:
    """No prober reports any more."""
    return halted(list(stage.probers.values()))


@contextmanager
def halted_while_demoted(stage: Stage, broker: int = 3) -> Iterator[None]:
    """A broker is demoted, then its probers go silent; that its listener works again is not seen."""
    try:
        cut(stage, broker)
        demoted = Expected((broker,), ("Sick/ExternallyUnreachable",), Demotion.MUST)
        stage.until(lambda: stage.witness.ask(demoted.reached), DEMOTED_SECONDS, f"broker {broker} is demoted")
        with halted(stage.reachability_probers()):
            stage.release(broker)
            stage.witness.begin()
            yield
    finally:
        stage.release(broker)


@contextmanager
def clocks_off(stage: Stage) -> Iterator[None]:
    """One vantage is an hour ahead, another an hour behind, as are two storage probers: a quorum needs one of them."""
    wrong = {
        f"reachability-{VANTAGES[0]}": HOUR,
        f"reachability-{VANTAGES[1]}": -HOUR,
        "storage-1": HOUR,
        "storage-2": -HOUR,
    }
    try:
        for name, seconds in wrong.items():
            stage.clocks[name].set(seconds)
        yield
    finally:
        for name in wrong:
            stage.clocks[name].set(0)


def while_clocks_are_off(fault: Break, seconds: float = 15.0) -> Break:
    """A fault, and its repair, both judged by probers whose clocks are off."""

    @contextmanager
    def broken(stage: Stage) -> Iterator[None]:
        with clocks_off(stage):
            stage.rest(seconds)
            stage.witness.begin()
            with fault(stage):
                yield
            stage.settle()

    return broken

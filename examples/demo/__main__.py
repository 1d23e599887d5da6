"""``python -m demo``: set the stage, play, report, judge, and leave nothing running.

Exit status: 0 when every invariant held, 1 when one was broken or the run ended early, 130 after Ctrl-C.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from contextlib import ExitStack
from types import FrameType

from rich.console import Console

from demo import summary
from demo.health import Health
from demo.invariants import broken
from demo.losses import losses
from demo.report import compile_report, save
from demo.samples import Kind, Sample
from demo.scenario import Scenario, TookTooLong
from demo.settings import Settings, parse
from demo.stage import POLICY, PartDied, Stage
from demo.startup import AlreadyRunning, Startup, alone
from demo.table import Scene, Screen, recent
from demo.traffic import Traffic, TrafficFailed, read_back
from demo.watch import Watch
from realparts.kubernetes_binaries import kubectl
from realparts.processes import StartFailed
from realparts.toolruns import DownloadFailed

LOG_WIDTH = 130
"""Columns where there is no terminal to ask: in a log the tables must not be squeezed into eighty."""


def main() -> int:
    """Run the demo once; see the module for the exit status."""
    settings = parse(sys.argv[1:])
    console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    stack = ExitStack()
    try:
        with alone(settings.reports):
            return run(settings, console, stack)
    except (AlreadyRunning, DownloadFailed, StartFailed) as problem:
        console.print(f"error: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\ninterrupted", style="bold")
        return 130
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # cleaning up must not be interrupted
        console.print(
            "stopping everything, and removing the brokers' many small files (up to a minute) ...", style="dim"
        )
        stack.close()


def run(settings: Settings, console: Console, stack: ExitStack) -> int:
    """Everything between start and end; what is started goes onto ``stack``."""
    started = time.monotonic()
    with Startup(console) as startup:
        stage = stack.enter_context(Stage(settings, startup))
    console.print(f"everything is up after {time.monotonic() - started:.0f} s; logs: {settings.logs}", highlight=False)
    watch = stack.enter_context(Watch({broker.id: broker.internal for broker in stage.kafka.brokers.values()}))
    health = stack.enter_context(Health(stage.api.kubeconfig, POLICY))
    console.print(f"filling {settings.partitions} partitions and starting the traffic ...")
    traffic = stack.enter_context(
        Traffic(
            stage.kafka.external_bootstrap,
            settings.topics,
            settings.partitions,
            settings.rate,
            settings.logs / "traffic.log",
        )
    )
    scenario = Scenario(stage, watch, health, traffic, settings)

    def scene() -> Scene:
        now = time.monotonic()
        leaders = watch.ask(lambda seen: seen.leaders())
        return Scene(scenario.step, now - started, health.words, leaders, recent(traffic.samples(), now))

    problems: list[str] = []
    with Screen(console, scene):
        try:
            scenario.wait_healthy()
            scenario.play()
        except (TookTooLong, PartDied, TrafficFailed) as problem:
            problems.append(str(problem))
            console.print(str(problem), style="red", highlight=False, markup=False)
    return finish(settings, console, stage, scenario, watch, traffic, problems)


def finish(
    settings: Settings,
    console: Console,
    stage: Stage,
    scenario: Scenario,
    watch: Watch,
    traffic: Traffic,
    problems: list[str],
) -> int:
    """End the traffic, count what was lost, report and judge."""
    console.print("ending the traffic and reading every record back ...")
    samples: tuple[Sample, ...] = traffic.samples()
    lost = None
    try:
        samples = traffic.finish()
        found = read_back(stage.kafka.bootstrap, settings.topics)
        lost = {kind: losses(samples, found, kind) for kind in (Kind.ACKS_1, Kind.ACKS_ALL)}
    except TrafficFailed as problem:
        problems.append(str(problem))
    report = watch.ask(lambda seen: compile_report(settings, scenario.faults, samples, seen, lost, problems))
    wrong = broken(report)
    report["broken"] = wrong
    save(report, settings.report)
    summary.show(console, report, wrong)
    console.print(f"figures: {settings.report}", highlight=False)
    if settings.keep:
        keep(console, stage)
    return 1 if wrong else 0


def keep(console: Console, stage: Stage) -> None:
    """Leave everything up until Ctrl-C, and say how to look around."""
    path = "" if shutil.which("kubectl") else f"    export PATH=$PATH:{kubectl().parent}\n"
    console.print(
        f"""
Everything is left up. To look around, in another terminal:

{path}    export KUBECONFIG={stage.api.kubeconfig}
    kubectl get lp,bh
    kubectl patch bh {POLICY}-1 --type merge -p '{{"spec":{{"override":{{"state":"Demoted","reason":"trying it"}}}}}}'

Kafka, internal listeners: {stage.kafka.bootstrap}
Kafka, external listeners: {stage.kafka.external_bootstrap}
Bellwether's metrics:      http://127.0.0.1:{stage.metrics_port}/metrics

Ctrl-C here stops all of it.""",
        highlight=False,
    )
    try:
        signal.pause()
    except KeyboardInterrupt:
        return


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

"""``python -m demo``: set the stage, play, report, judge, and leave nothing running.

Exit status: 0 when every invariant held, 1 when one was broken or the run ended early, 130 after Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import ExitStack
from types import FrameType

from rich.console import Console

from demo import keeping, summary
from demo.health import Health
from demo.invariants import broken
from demo.losses import losses
from demo.picture import Picture
from demo.report import Report, compile_report, save
from demo.samples import Kind, Sample
from demo.scenario import Scenario, TookTooLong
from demo.screen import Screen, Story
from demo.settings import Settings, parse
from demo.stage import NAMESPACE, POLICY, PartDied, Stage
from demo.startup import AlreadyRunning, Startup, alone
from demo.steps import about
from demo.table import Scene, recent
from demo.traffic import Traffic, TrafficFailed, read_back
from demo.watch import Watch
from realparts.processes import StartFailed
from realparts.toolruns import DownloadFailed

LOG_WIDTH = 80
"""Columns where there is no terminal to ask."""


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
        began = time.monotonic()
        console.print("stopping everything and removing the brokers' files ...", style="dim")
        stack.close()
        console.print(f"stopped after {time.monotonic() - began:.0f} s", style="dim", highlight=False)


def run(settings: Settings, console: Console, stack: ExitStack) -> int:
    """Everything between start and end; what is started goes onto ``stack``."""
    started = time.monotonic()
    with Startup(console, settings) as startup:
        stage = stack.enter_context(Stage(settings, startup))
    console.print(f"everything is up after {time.monotonic() - started:.0f} s; logs: {settings.logs}", highlight=False)
    watch = stack.enter_context(Watch({broker.id: broker.internal for broker in stage.kafka.brokers.values()}))
    health = stack.enter_context(Health(stage.api.kubeconfig, POLICY, NAMESPACE))
    console.print(f"filling {settings.partitions:,} partitions and starting the traffic ...", highlight=False)
    traffic = stack.enter_context(started_traffic(stage, settings))
    picture = Picture() if settings.picture else None
    scenario = Scenario(stage, watch, health, traffic, settings, Story(console, started, picture))

    def scene() -> Scene:
        return now_seen(watch, health, traffic, scenario.progress.heading(time.monotonic()), started)

    problems: list[str] = []
    with Screen(console, scene, picture):
        try:
            scenario.wait_healthy()
            left = scenario.progress.left(time.monotonic())
            console.print(f"{len(scenario.progress.steps)} steps, {about(left)} in all", style="bold", highlight=False)
            scenario.play()
            scenario.begin()
        except (TookTooLong, PartDied, TrafficFailed) as problem:
            problems.append(str(problem))
            console.print(str(problem), style="red", highlight=False, markup=False)
    report, wrong = finish(settings, console, stage, scenario, watch, traffic, problems)
    if picture and settings.picture:
        summary.show(picture.console, report, wrong)
        picture.save(settings.picture)
        console.print(f"picture: {settings.picture}", highlight=False, soft_wrap=True)
    if settings.keep:
        keep(settings, console, stage, watch, health, stack)
    return 1 if wrong else 0


def started_traffic(stage: Stage, settings: Settings) -> Traffic:
    """Traffic through the external listeners; entered by the caller."""
    return Traffic(
        stage.kafka.external_bootstrap,
        settings.topics,
        settings.partitions,
        settings.rate,
        settings.logs / "traffic.log",
    )


def now_seen(watch: Watch, health: Health, traffic: Traffic, heading: str, started: float) -> Scene:
    """This moment, for the table."""
    now = time.monotonic()
    leaders = watch.ask(lambda seen: seen.leaders())
    late = traffic.late(now)
    latencies = recent([*traffic.samples(), *late], now)
    return Scene(heading, now - started, health.words, leaders, latencies, len(late))


def finish(
    settings: Settings,
    console: Console,
    stage: Stage,
    scenario: Scenario,
    watch: Watch,
    traffic: Traffic,
    problems: list[str],
) -> tuple[Report, list[str]]:
    """End the traffic, count what was lost, report and judge. The report, and what did not hold, a sentence each."""
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
    console.print(f"figures: {settings.report}; logs: {settings.logs}", highlight=False, soft_wrap=True)
    return report, wrong


def keep(settings: Settings, console: Console, stage: Stage, watch: Watch, health: Health, stack: ExitStack) -> None:
    """Leave everything up until Ctrl-C, with new traffic and the live table, and say what to type."""
    broker = stage.brokers[1]
    health.change(quarantine={"mode": "Off"})  # nothing would start a broker that was shut down
    console.print()
    console.print(
        keeping.commands(stage, broker, settings.delay_milliseconds), highlight=False, markup=False, soft_wrap=True
    )
    traffic = stack.enter_context(started_traffic(stage, settings))
    started = time.monotonic()
    try:
        with Screen(console, lambda: now_seen(watch, health, traffic, "kept; Ctrl-C stops all of it", started)):
            signal.pause()
    except KeyboardInterrupt:
        return


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

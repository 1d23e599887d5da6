"""``python -m evacuation``: move all leaders of a broker away and back, by bare requests, by other tools and by ours.

All contenders take turns on the same three real brokers, in each round on another broker, after a round of the floor
that warms the brokers up and is not counted. An independent client looks every 20 ms. Out: rows in
``reports/bench.json`` (``load``: the highest load average of a minute), a table and a picture. Exit status: 0, or 130
after Ctrl-C; ratios are not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from evacuation import plots
from evacuation.contenders import ByHand, Contender, CruiseControl, Floor, KafkaTools, Operator
from evacuation.figures import Row, markdown, merged, rows
from evacuation.observer import Leaders, Observer
from evacuation.warm_up import settling, warm_up
from realparts.apiserver import ApiServer
from realparts.kafka import KafkaCluster
from testkit.kafka.kafka_site import KafkaSite
from testkit.processes.sites import Site

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/images/evacuation.svg"
BROKERS = 3
TOPICS = 10
PATIENT = {"replica.lag.time.max.ms": "300000", "broker.session.timeout.ms": "60000"}
"""A machine that stalls takes no broker out of an ISR: elections would be refused to every contender."""
PATIENCE_SECONDS = 60.0
QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. ``against`` is another source tree, measured in the same rounds and named by its folder."""

    partitions: tuple[int, ...] = (1000, 3000, 10_000)
    rounds: int = 5
    against: Path | None = None
    reports: Path = ROOT / "reports"


def parse(arguments: Sequence[str]) -> Settings:
    """Settings from the command line. Exits with a message on bad input."""
    default = Settings()
    parser = argparse.ArgumentParser(prog="python -m evacuation", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=default.partitions, help="sizes (%(default)s)")
    parser.add_argument("--rounds", type=int, default=default.rounds, help="at each size (%(default)s)")
    parser.add_argument("--against", type=Path, help="another checkout, to compare with")
    parser.add_argument("--reports", type=Path, default=default.reports, help="folder for the figures (%(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1 or any(n < TOPICS or n % TOPICS for n in chosen.partitions):
        parser.error(f"--rounds must be at least 1, and --partitions multiples of {TOPICS}")
    if chosen.against and not (chosen.against / "operator" / "bellwether").is_dir():
        parser.error(f"--against {chosen.against} holds no operator/bellwether: name a checkout of this project")
    return Settings(tuple(chosen.partitions), chosen.rounds, chosen.against, chosen.reports)


def main() -> int:
    """Run every size; see the module for the exit status."""
    settings = parse(sys.argv[1:])
    report, logs = settings.reports / "bench.json", settings.reports / "evacuation-logs"
    shutil.rmtree(logs, ignore_errors=True)
    try:
        with ApiServer() as server:
            server.apply(*sorted((ROOT / "crds").glob("*.yaml")))
            for partitions in settings.partitions:
                found = json.loads(report.read_text()) if report.exists() else []
                found = merged(found, run(settings, partitions, server, logs / str(partitions)))
                report.parent.mkdir(parents=True, exist_ok=True)
                report.write_text(json.dumps(found, indent=2) + "\n")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    plots.draw(found, PICTURE)
    print(markdown(found))
    print(f"figures: {report}, picture: {PICTURE}")
    return 0


def run(settings: Settings, partitions: int, server: ApiServer, logs: Path) -> list[Row]:
    """One size, on brokers of its own."""
    with ExitStack() as stack:
        # In memory, with a heap that fits: thousands of small files or a collector at its limit hide all else.
        memory = Path("/dev/shm")
        place = stack.enter_context(TemporaryDirectory(prefix="bench-", dir=memory if memory.is_dir() else None))
        heap = f"{max(512, partitions // 8)}m"
        kafka = stack.enter_context(
            KafkaCluster(brokers=BROKERS, directory=Path(place), proxied=False, heap=heap, properties=PATIENT)
        )
        topics = {f"bench-{number}": partitions // TOPICS for number in range(TOPICS)}
        logs.mkdir(parents=True, exist_ok=True)
        trees = {"": ROOT} | ({f" ({settings.against.resolve().name})": settings.against} if settings.against else {})
        sites = [Site(server, kafka, logs / f"site{label.replace(' ', '-')}") for label in trees]
        for site in sites:
            stack.callback(site.close)
        for topic, count in topics.items():  # a controller refuses requests for more than 10,000 partitions
            sites[0].topics({topic: count})
        cluster = KafkaSite(kafka)
        settle = settling(cluster)
        settle()
        addresses = kafka.bootstrap.split(",")
        contenders: list[Contender] = [
            Floor(addresses, list(topics)),
            CruiseControl(addresses, list(topics)),
            KafkaTools(kafka.bootstrap, list(topics), logs),
        ]
        for site, (label, tree) in zip(sites, trees.items(), strict=True):
            contenders += [ByHand(kafka.bootstrap, logs, tree, label), Operator(site, list(topics), tree, label)]
        seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        busiest = 0.0
        warm_up(cluster, list(topics), settle)
        for number in range(settings.rounds):
            broker = number % BROKERS + 1
            for contender in contenders[number % len(contenders) :] + contenders[: number % len(contenders)]:
                with Observer(kafka.broker(broker % BROKERS + 1).internal, list(topics)) as observer:
                    took = play(contender, broker, observer)
                settle()
                for work, one in took.items():
                    seconds[work][contender.name].append(one)
                said = ", ".join(f"{work} {one:.2f} s" for work, one in took.items())
                load = os.getloadavg()[0]
                busiest = max(busiest, load)
                print(
                    f"{partitions} partitions, round {number + 1}, {contender.name}: {said}; load {load:.1f}",
                    flush=True,
                )
    measured = {work: in_order(seconds[work]) for work in ("evacuate", "return", "start")}
    return [{**row, "load": round(busiest, 1)} for work, one in measured.items() for row in rows(work, partitions, one)]


def in_order(seconds: dict[str, list[float]]) -> dict[str, list[float]]:
    """The floor first, in any order of the rounds."""
    return dict(sorted(seconds.items(), key=lambda one: (one[0] != "floor", one[0])))


def play(contender: Contender, broker: int, observer: Observer) -> dict[str, float]:
    """One turn of one contender: seconds until no leader is left, and until all are back."""
    led = observer.now()[broker]
    if isinstance(contender, Operator):
        contender.begin()
    time.sleep(QUIET_SECONDS)

    def gone(leaders: Leaders) -> bool:
        return not leaders.get(broker)

    def back(leaders: Leaders) -> bool:
        return leaders.get(broker) == led

    began = contender.evacuate(broker)
    evacuated = observer.wait(gone, began, PATIENCE_SECONDS, f"broker {broker} leads nothing") - began
    contender.finish()
    time.sleep(QUIET_SECONDS)
    began = contender.give_back(broker)
    returned = observer.wait(back, began, PATIENCE_SECONDS, f"broker {broker} leads {led} again") - began
    contender.finish()
    took = {"evacuate": evacuated, "return": returned}
    if isinstance(contender, ByHand) and contender.started is not None:
        took["start"] = contender.started
    if isinstance(contender, Operator):
        contender.lift(broker)
        contender.end()
    return took


if __name__ == "__main__":
    sys.exit(main())

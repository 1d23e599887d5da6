"""A real incident becomes a golden test: real faults are recorded, and the replay says what the operator said then.

``--update-golden`` puts the trace next to the scenarios; ``tests/scenarios/test_traces.py`` replays it from then on.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from bellwether.cli.main import main
from bellwether.recording.trace_files import TraceReader
from bellwether.recording.traces.cluster_section import read_cluster
from bellwether.recording.traces.merge_patch import patched
from bellwether.simulation.replay_comparison import SLACK_SECONDS, differences
from bellwether.simulation.replay_run import Replay
from bellwether.simulation.replay_timeline import Timeline
from testkit.processes.sites import demoted
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster
    from realparts.processes import ManagedProcess
    from testkit.processes.sites import Site

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]

TRACES = Path(__file__).parents[2] / "scenarios" / "traces"
VANTAGES = {"externalReachability": {"vantages": ["zone-a", "zone-b"]}}
BROKERS = (1, 2, 3)
# A recorder reads metadata every 5 s; a busy machine may need as long again for it.
METADATA_SECONDS = 12.0
# A recorder looks twice a second, so its dwell ends later than the operator's: a fault repaired in between would
# not have demoted anyone in the replay.
LATE_SECONDS = 5.0


def recorder(site: Site, output: Path, *arguments: str) -> ManagedProcess:
    command = [
        "record",
        "--policy",
        "main",
        "-n",
        site.namespace,
        "--output-file",
        str(output),
        "--period",
        "0.5",
        *arguments,
    ]
    process = site.start("recorder", [sys.executable, "-m", "bellwether", *command])
    site.until(lambda: output.exists() and output.stat().st_size > 300, 30, "the recorder writes", process.tail)
    return process


def ended(site: Site, process: ManagedProcess) -> None:
    """End a recorder as Ctrl-C does."""
    os.kill(process.pid, signal.SIGINT)
    site.until(lambda: not process.alive, 30, "the recorder ends", process.tail)
    assert "samples in" in process.tail(1), process.tail()


def probed(site: Site, kafka: KafkaCluster) -> None:
    """Real probers, of both kinds, until everyone is called healthy."""
    site.change(detection=VANTAGES)
    for vantage in ("zone-a", "zone-b"):
        site.prober(vantage)
    for broker in BROKERS:
        directory, disk = str(kafka.broker(broker).log_dir), kafka.slow_disk(broker)
        command = ["probe", "storage", "--policy", "main", "-n", site.namespace]
        whole = [sys.executable, "-m", "bellwether", *command, "--directory", directory]
        site.start(f"storage-{broker}", whole, disk.environment())

    def reports(broker: int) -> bool:
        readings = [signal["reading"] for signal in site.health(broker).get("signals", ())]
        return readings.count("Passing") == 3  # reads cannot be measured: no partition has an old segment

    site.until(lambda: all(map(reports, BROKERS)), 60, "all probers report")
    site.until(lambda: [site.verdict(b)[0] for b in BROKERS] == ["Healthy"] * 3, 60, "all are Healthy", site.status)


def judged(path: Path) -> Timeline:
    reader = TraceReader(path)
    timeline = Replay(reader.header).play(reader.instants())
    assert not reader.truncated
    return timeline


def states(words: object, broker: int) -> list[tuple[str, str, bool]]:
    """What was said of a broker, one word after another, without what a moment between two vantages made of it.

    Nor the moment between Sick and demoted: a recorder may look in between, and a replay does both in one turn.
    """
    found: list[tuple[str, str, bool]] = []
    for _, said in words:  # type: ignore[attr-defined]
        word = said.get(broker)
        if word is None or word.state in ("Unknown", "Suspect"):
            continue
        now = (word.state, word.reason, word.demoted)
        if found and now == ("Sick", word.reason, True) and found[-1] == ("Sick", word.reason, False):
            found.pop()
        if not found or found[-1] != now:
            found.append(now)
    return found


def test_cut_listener_and_slow_disk_are_judged_same_again(
    site: Site, breakable_kafka: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    probed(site, breakable_kafka)
    before = site.orders()
    path = tmp_path / "cut-and-slow-disk.jsonl"
    recording = recorder(site, path)
    assert breakable_kafka.proxy is not None
    time.sleep(LATE_SECONDS)  # the replay sees it healthy first, too
    breakable_kafka.proxy.cut("broker-2")
    site.until_demoted(2, before)
    time.sleep(LATE_SECONDS)
    breakable_kafka.proxy.mend("broker-2")
    site.until_restored(before)
    site.until(lambda: site.verdict(2)[0] == "Healthy" and not demoted(site.health(2)), 30, "2 is Healthy again")
    breakable_kafka.slow_disk(3).set(80)
    site.until_demoted(3, before)
    time.sleep(LATE_SECONDS)
    breakable_kafka.slow_disk(3).clear()
    site.until_restored(before, 120)
    site.until(lambda: site.verdict(3)[0] == "Healthy" and not demoted(site.health(3)), 30, "3 is Healthy again")
    time.sleep(LATE_SECONDS)
    ended(site, recording)

    timeline = judged(path)
    for broker, reason in ((2, "ExternallyUnreachable"), (3, "StorageSlow")):
        then, now = states(timeline.said, broker), states(timeline.replayed, broker)
        assert then == now
        assert ("Sick", reason, True) in now
        assert now[-1] == ("Healthy", "SignalsPassing", False)
    assert states(timeline.replayed, 1) == [("Healthy", "SignalsPassing", False)]
    # A busy machine may show one of the two a moment of Suspect, or Healthy again, that the other missed.
    unlike = map(str, differences(timeline.said, timeline.replayed, limit(SLACK_SECONDS)))
    assert [text for text in unlike if "Sick" in text or "Down" in text or "demoted" in text] == []
    assert sum(row.what == "moved" for row in timeline.rows) >= 4, "away and back, twice"
    site.tell(f"{path.stat().st_size / 1000:.1f} kB for {timeline.rows[-1].at - timeline.rows[0].at} of trace")

    found = CliRunner().invoke(main, ["replay", str(path), "--set", "detection.storageLatency.enabled=false"])
    assert "broker 2 is demoted" in found.output
    assert "broker 3 is demoted" not in found.output
    if request.config.getoption("--update-golden"):
        TRACES.mkdir(exist_ok=True)
        shutil.copy(path, TRACES / path.name)


def test_frozen_broker_is_fenced_in_replay_as_it_was(
    site: Site, breakable_kafka: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site.change(detection=VANTAGES)
    for vantage in ("zone-a", "zone-b"):
        site.prober(vantage)
    site.until(lambda: [site.verdict(b)[0] for b in BROKERS] == ["Healthy"] * 3, 60, "all are Healthy", site.status)
    path = tmp_path / "frozen-and-fenced.jsonl"
    recording = recorder(site, path)
    breakable_kafka.broker(3).pause()
    site.until(lambda: site.verdict(3) == ("Down", "BrokerDown"), 90, "3 is fenced", lambda: site.health(3))
    time.sleep(METADATA_SECONDS)
    breakable_kafka.broker(3).resume()
    site.until(lambda: site.verdict(3)[0] == "Healthy", 90, "3 is Healthy again", lambda: site.health(3))
    site.until(lambda: all(3 in p.isr for p in site.partitions().values()), 60, "3 is in every ISR", site.partitions)
    time.sleep(METADATA_SECONDS)
    ended(site, recording)

    timeline = judged(path)
    for words in (timeline.said, timeline.replayed):
        # No broker may answer before the fencing: until then it hangs on when each of the two read metadata.
        found = [(state, reason) for state, reason, _ in states(words, 3)]
        assert (found[0], found[-1]) == (("Healthy", "SignalsPassing"),) * 2
        assert ("Down", "BrokerDown") in found
        assert {state for state, _, _ in states(words, 1)} == {"Healthy"}
    state: dict[str, Any] = {}
    reader = TraceReader(path)
    clusters = []
    for instant in reader.instants():
        state = patched(state, instant.news)
        if "cluster" in instant.news:
            clusters.append(read_cluster(state["cluster"]))
    fenced = next(c for c in clusters if c.brokers[3].fenced)
    assert fenced.leaders()[3] == 0
    assert clusters[-1].live == {1, 2, 3}
    if request.config.getoption("--update-golden"):
        shutil.copy(path, TRACES / path.name)

"""What every verb of ``bellwether probe`` shares: a sidecar follows its policy, and one that ends leaves nothing."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.files.meta_properties import LogDirIdentity, read_log_dir
from bellwether.adapters.kubernetes.api_client import POLICIES
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.api.v1alpha1.leadership_policy import LeadershipPolicy
from bellwether.core.settings.harm import Objectives
from bellwether.core.signals import SignalType
from bellwether.destinations import ANYWHERE
from bellwether.ports.errors import Terminal
from bellwether.probes.runtime import prober_process
from bellwether.probes.runtime.prober import ProbeDied, Prober
from bellwether.probes.runtime.prober_process import PolicyProber, SidecarProcess, run_each
from bellwether.telemetry.health_server import Health
from bellwether.telemetry.metrics.metric_registry import JointRegistry
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from testkit.kafka.formatted_directories import formatted
from testkit.kubernetes.api_objects import policy
from testkit.kubernetes.memory_api import MemoryApi
from waiting import limit, until


class Sidecar:
    """Records its calls."""

    def __init__(self, stop: threading.Event) -> None:
        self.noted: list[object] = []
        self._stop = stop

    def configure(self, objectives: Objectives) -> None:
        self.noted.append(objectives.produce_milliseconds)
        self._stop.set()

    def stop(self) -> None:
        self.noted.append("stop")

    def repeat(self) -> None:
        pass

    def alive(self) -> bool:
        return True


def beside(api: MemoryApi, stop: threading.Event) -> list[object]:
    clock, metrics = SystemClock(), ProbeMetrics()
    prober = Prober(api, "default", "main", SignalType.STORAGE_LATENCY, "broker-1", clock, metrics)
    sidecar = Sidecar(stop)

    def follow(found: LeadershipPolicy | None) -> bool:
        if found is not None:
            sidecar.configure(found.policy().detection.objectives)
        return found is not None

    PolicyProber(prober, metrics, clock, stop, SecretReader(api, "default", destinations=ANYWHERE)).run(sidecar, follow)
    return sidecar.noted


def test_probe_measures_under_its_policys_settings_until_it_is_ended() -> None:
    api = MemoryApi()
    api.put(POLICIES, policy(detection={"objectives": {"produceMilliseconds": 70}}))
    assert beside(api, threading.Event()) == [70, "stop"]


def test_without_a_policy_it_goes_on_as_it_was() -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    assert beside(MemoryApi(), stop) == ["stop"]


def test_death_of_one_probe_stops_others_and_the_process() -> None:
    stop, ended = threading.Event(), []

    def dies() -> None:
        raise ProbeDied("no measurement")

    def measures() -> None:
        stop.wait()
        ended.append("measures")

    with pytest.raises(ProbeDied, match="no measurement"):
        run_each([measures, dies], stop)
    assert ended == ["measures"]


HOLDS_A_SECRET = """
import base64, sys
from bellwether.adapters.kubernetes.kafka_cluster.secret_reader import SecretReader
from bellwether.cli.main import main
from bellwether.destinations import ANYWHERE

class Api:
    def get(self, *_named):
        return {"metadata": {}, "data": {"ca.crt": base64.b64encode(b"a certificate").decode()}}

secrets = SecretReader(Api(), "default", destinations=ANYWHERE)
print(secrets.open("kafka").file("ca.crt"), flush=True)
main(["probe", "self", "--once", "--port", sys.argv[1]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads in /proc which signals are caught")
def test_a_single_measurement_that_is_ended_early_leaves_no_credentials() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # no client comes, so it looks for half a minute
        command = [sys.executable, "-c", HOLDS_A_SECRET, str(server.getsockname()[1])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            written = Path(process.stdout.readline().strip())
            assert written.read_text() == "a certificate"
            until(lambda: _catches(process.pid, signal.SIGTERM))
            process.terminate()
            assert process.wait(limit(60)) == 128 + signal.SIGTERM
    assert not written.parent.exists()


def _catches(pid: int, number: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(line for line in lines if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def sidecar_process(api: MemoryApi) -> SidecarProcess:
    page = JointRegistry("prober", {"policy": "main"})
    return SidecarProcess((api, "default"), "main", SignalType.STORAGE_LATENCY, page, Health(), threading.Event())


def test_sidecar_started_before_broker_waits_for_formatted_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prober_process, "IDENTIFY_SECONDS", 0.05)
    process, found = sidecar_process(MemoryApi()), list[LogDirIdentity | None]()
    waiting = threading.Thread(target=lambda: found.append(process.identify(lambda: read_log_dir(tmp_path))))
    with capture_logs() as logs:
        waiting.start()
        until(lambda: logs)
        waiting.join(0.3)
        assert waiting.is_alive()
        formatted(tmp_path, 3)
        waiting.join(limit(10))
    assert [one.broker for one in found if one is not None] == [3]
    assert [log["event"] for log in logs] == ["broker_id_unknown"]
    assert "waiting until Kafka has formatted the directory" in logs[0]["reason"]


def test_a_sidecar_that_is_ended_while_it_waits_ends(tmp_path: Path) -> None:
    process = sidecar_process(MemoryApi())
    threading.Timer(0.1, process.stop.set).start()
    assert process.identify(lambda: read_log_dir(tmp_path)) is None


def test_two_brokers_behind_one_sidecar_are_refused(tmp_path: Path) -> None:
    formatted(tmp_path / "a", 1)
    formatted(tmp_path / "b", 3)
    with pytest.raises(Terminal, match=r"node\.id 1 of .* has 3"):
        sidecar_process(MemoryApi()).identify(lambda: read_log_dir(tmp_path))

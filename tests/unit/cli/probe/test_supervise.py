"""``bellwether supervise``: a command that ends is started again, and a signal ends both."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from realparts import tls
from realparts.ports import HeldPorts
from testkit.messages import assert_wording
from waiting import limit, until

SUPERVISE = [sys.executable, "-m", "bellwether", "supervise", "--"]


def started(log: Path, *command: str) -> subprocess.Popen[bytes]:
    """The supervisor of a command; what both print goes to the log."""
    with log.open("wb") as output:
        return subprocess.Popen([*SUPERVISE, *command], stdout=output, stderr=output)


def test_a_command_that_fails_is_started_again_and_the_supervisor_keeps_running(tmp_path: Path) -> None:
    log = tmp_path / "log"
    running = started(log, "probe", "storage", "--no-such-option")
    try:
        until(lambda: log.read_text().count("ended with status 2"), 120, so=lambda times: times >= 2)
        assert running.poll() is None
        said = log.read_text()
        assert said.count("No such option") >= 2
        assert_wording(said)
    finally:
        running.terminate()
        running.wait(limit(60))


def test_a_signal_ends_the_command_too_and_its_status_is_that_of_the_supervisor(tmp_path: Path) -> None:
    log = tmp_path / "log"
    certificate, key = tls.Authority(tmp_path / "tls").issue("webhook", hosts=["localhost"])
    files = [f"--tls-cert={certificate}", f"--tls-key={key}"]
    with HeldPorts() as ports:
        running = started(log, "sidecar-webhook", *files, "--sidecars={}", f"--port={ports.take()}")
        until(lambda: "webhook_listening" in log.read_text(), 120)
        running.send_signal(signal.SIGTERM)
        assert running.wait(limit(60)) == 0
    assert "process_stopping" in log.read_text()

"""What the shims do to a process, and what a swallowing port does, seen by a process that knows nothing of them."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from realparts import shims
from realparts.blackholes import Blackhole
from realparts.detours import MOST_PORTS, Detour
from realparts.ports import HeldPorts, accepts
from realparts.slowdisk import SlowDisk
from realparts.wrongclock import WrongClock
from waiting import limit

pytestmark = pytest.mark.slow

CLOCKS = "import time; print(time.time(), time.monotonic(), time.time())"
CONNECTING = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=0.5).close()
    print("connected")
except OSError as problem:
    print(type(problem).__name__)
"""
STALLING = """
import os, sys
with open(sys.argv[1], "wb", buffering=0) as file:
    print("writing", flush=True)
    file.write(b"x"); os.fdatasync(file)
    print("written", flush=True)
"""


@pytest.fixture
def ports() -> Iterator[HeldPorts]:
    with HeldPorts() as held:
        yield held


def said(environment: dict[str, str], program: str, *arguments: object) -> str:
    command = [sys.executable, "-I", "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("hours", [1, -1])
def test_a_wrong_clock_is_shifted_and_time_passes_as_usual(tmp_path: Path, hours: int) -> None:
    clock = WrongClock(tmp_path / "control")
    assert abs(float(said(clock.environment(), CLOCKS).split()[0]) - time.time()) < 60
    clock.set(3600 * hours)
    first, monotonic, second = (float(word) for word in said(clock.environment(), CLOCKS).split())
    assert abs(first - time.time() - 3600 * hours) < 60
    assert 0 <= second - first < 60
    assert abs(monotonic - time.monotonic()) < 60


def test_detour_breaks_path_to_named_ports_for_one_process_alone(tmp_path: Path, ports: HeldPorts) -> None:
    closed = ports.take()
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        named, unnamed = one.getsockname()[1], other.getsockname()[1]
        detour = Detour(tmp_path / "control")
        assert said(detour.environment(), CONNECTING, named) == "connected"
        detour.send({named: closed})
        assert said(detour.environment(), CONNECTING, named) == "ConnectionRefusedError"
        assert said(detour.environment(), CONNECTING, unnamed) == "connected"
        assert accepts(named)
        detour.clear()
        assert said(detour.environment(), CONNECTING, named) == "connected"


def test_more_ports_than_a_detour_holds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 64 ports"):
        Detour(tmp_path / "control").send(dict.fromkeys(range(1, MOST_PORTS + 2), 9))


def test_a_blackhole_answers_nothing_and_frees_its_port(ports: HeldPorts) -> None:
    port = ports.take()
    with Blackhole(port):
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                socket.create_connection(("127.0.0.1", port), timeout=0.3)
            assert time.monotonic() - began >= 0.3
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=limit(5))
    with socket.socket() as later:
        later.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        later.bind(("127.0.0.1", port))
        later.listen()
        assert accepts(port)


def test_a_stalled_disk_blocks_a_write_until_it_is_repaired(tmp_path: Path) -> None:
    disk = SlowDisk(tmp_path / "slow", tmp_path / "control")
    disk.set(SlowDisk.STALLED)
    command = [sys.executable, "-I", "-c", STALLING, str(disk.directory / "file")]
    process = subprocess.Popen(command, env=disk.environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        mended = threading.Timer(1.0, disk.clear)
        began = time.monotonic()
        mended.start()
        assert process.stdout.readline() == "written\n"
        assert time.monotonic() - began >= 0.9
        assert process.wait(limit(30)) == 0
    finally:
        process.kill()
        process.communicate()


def test_shims_of_one_process_do_not_displace_each_other(tmp_path: Path, ports: HeldPorts) -> None:
    clock, detour = WrongClock(tmp_path / "clock"), Detour(tmp_path / "detour")
    both = shims.together(clock.environment(), detour.environment(), {"LANG": "C"})
    clock.set(3600)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        detour.send({port: ports.take()})
        assert float(said(both, CLOCKS).split()[0]) - time.time() > 3000
        assert said(both, CONNECTING, port) == "ConnectionRefusedError"
    assert both["LANG"] == "C"

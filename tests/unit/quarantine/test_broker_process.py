"""A broker's process is found, held and released; the holder may die in any way, and it runs again."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bellwether.core.quarantine.agent import ProcessState
from bellwether.ports.errors import Transient
from bellwether.quarantine import broker_process, hold_watchdog
from bellwether.quarantine.broker_process import BrokerProcess
from testkit.kafka.formatted_directories import formatted, locking
from testkit.messages import assert_wording
from waiting import limit, until

PROC = Path("/proc")
SLEEPS = ("-c", "import time; time.sleep(120)")
# Looks like no other broker on this machine.
MINE = rf"(^|.*/)java\0.*\0test\.Kafka{os.getpid()}\0"
# Holds the process of that id, and then hangs or ends without output, as it is asked.
AGENT = """
import structlog, sys, time
from bellwether.quarantine.broker_process import BrokerProcess
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
broker = BrokerProcess(int(sys.argv[1]))
broker.hold()
print(broker.guarded(), flush=True)
time.sleep(120)
"""


def like_kafka() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["java", *SLEEPS, f"test.Kafka{os.getpid()}", "x"], executable=sys.executable)


@pytest.fixture
def broker() -> Iterator[subprocess.Popen[bytes]]:
    made = like_kafka()
    yield made
    made.kill()
    made.wait()


@pytest.fixture
def process(broker: subprocess.Popen[bytes]) -> Iterator[BrokerProcess]:
    made = BrokerProcess(broker.pid)
    yield made
    made.release()


def stopped(broker: subprocess.Popen[bytes]) -> bool:
    return hold_watchdog.state_of(PROC, broker.pid) == hold_watchdog.STOPPED


def test_it_is_held_and_released(broker: subprocess.Popen[bytes], process: BrokerProcess) -> None:
    assert process.state() is ProcessState.RUNNING
    assert not process.guarded(), "what is not held has no guard"
    with capture_logs() as logs:
        process.hold()
    assert [one["event"] for one in logs] == ["broker_not_shut_down"], "it has no network thread"
    assert stopped(broker)
    assert process.state() is ProcessState.STOPPED
    assert process.guarded()
    process.release()
    assert not stopped(broker)
    assert process.state() is ProcessState.RUNNING
    assert not process.guarded(), "the keeper has gone home"
    process.release()
    assert process.state() is ProcessState.RUNNING, "once more does no harm"


def test_broker_is_found_by_arguments_and_not_taken_for_starter() -> None:
    starter = subprocess.Popen(["tini", *SLEEPS, "java", f"test.Kafka{os.getpid()}"], executable=sys.executable)
    try:
        found = BrokerProcess(pattern=MINE)
        assert found.state() is ProcessState.ABSENT
        made = like_kafka()
        try:
            until(lambda: found.state() is ProcessState.RUNNING)
            found.hold()
            assert stopped(made)
            assert not stopped(starter)
            found.release()
        finally:
            made.kill()
            made.wait()
        assert found.state() is ProcessState.ABSENT
        with pytest.raises(Transient, match="was not found"):
            found.hold()
    finally:
        starter.kill()
        starter.wait()


def test_of_two_that_match_neither_is_meant() -> None:
    two = [like_kafka(), like_kafka()]
    try:
        until(lambda: all(b"Kafka" in (PROC / str(p.pid) / "cmdline").read_bytes() for p in two))
        found = BrokerProcess(pattern=MINE)
        assert found.state() is ProcessState.ABSENT
        assert found.remedy().startswith("2 processes match")
    finally:
        for one in two:
            one.kill()
            one.wait()


def test_a_pod_without_a_shared_process_namespace_is_named(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "cmdline").write_bytes(b"/usr/bin/python3\0-m\0bellwether\0supervise\0")
    assert "set shareProcessNamespace: true" in BrokerProcess(proc=tmp_path).remedy()


def test_broker_of_another_user_is_named_with_field_to_set(
    broker: subprocess.Popen[bytes], process: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = (PROC / str(broker.pid)).stat().st_uid
    assert process.state() is ProcessState.RUNNING
    monkeypatch.setattr(os, "getuid", lambda: 10001)
    wanted = f"runAsUser: {owner}" if owner else "another user than root"
    assert process.remedy().startswith(f"it runs as user {owner}, the agent as user 10001: ")
    assert wanted in process.remedy()


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="--process: no regular expression"):
        BrokerProcess(pattern="(")


def test_process_is_broker_of_log_directories_that_it_has_locked(tmp_path: Path) -> None:
    with locking(formatted(tmp_path / "kafka-broker-1", 3), formatted(tmp_path / "b", 3)) as made:
        found = BrokerProcess(made.pid)
        assert found.identify().broker == 3
        found.expect(3)
        assert found.state() is ProcessState.RUNNING
        found.hold()
        assert stopped(made)
        found.release()


def test_order_for_broker_1_never_stops_process_of_broker_3(tmp_path: Path) -> None:
    with locking(formatted(tmp_path / "kafka-broker-1", 3)) as made:
        found = BrokerProcess(made.pid)
        found.expect(1)
        assert found.state() is ProcessState.UNPROVEN
        assert (
            f"it is broker 3 by {tmp_path}/kafka-broker-1, and this agent obeys the orders of broker 1"
            in found.remedy()
        )
        with pytest.raises(Transient, match=r"cannot hold process .*: it is broker 3"):
            found.hold()
        assert not stopped(made)


def test_another_process_in_its_place_is_identified_again(tmp_path: Path) -> None:
    directory = formatted(tmp_path / "data", 3)
    pattern = rf".*\0{re.escape(str(directory))}\0"
    found = BrokerProcess(pattern=pattern)
    with locking(directory):
        found.expect(found.identify().broker)
        assert found.state() is ProcessState.RUNNING
    formatted(directory, 1)
    with locking(directory):
        until(lambda: found.state() is ProcessState.UNPROVEN)


def test_a_process_without_a_formatted_log_directory_is_not_held(tmp_path: Path) -> None:
    with locking(tmp_path) as made:
        found = BrokerProcess(made.pid)
        with pytest.raises(Transient, match=rf"which broker process {made.pid} is cannot be read: {tmp_path}: no meta"):
            found.identify()
        found.expect(3)
        assert found.state() is ProcessState.UNPROVEN
        with pytest.raises(Transient, match="cannot hold"):
            found.hold()
        assert not stopped(made)
        formatted(tmp_path, 3)
        assert found.state() is ProcessState.RUNNING


def test_a_restarted_broker_is_another_process(broker: subprocess.Popen[bytes], tmp_path: Path) -> None:
    # The same number, begun at another time: what a process id that is used again looks like.
    stat = (PROC / str(broker.pid) / "stat").read_text()
    (tmp_path / str(broker.pid)).mkdir()
    (tmp_path / str(broker.pid) / "stat").write_text(stat)
    assert hold_watchdog.start_of(tmp_path, broker.pid) == hold_watchdog.start_of(PROC, broker.pid)
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    fields[19] = str(int(fields[19]) + 1)
    (tmp_path / str(broker.pid) / "stat").write_text(f"{head}) {' '.join(fields)}")
    assert hold_watchdog.start_of(tmp_path, broker.pid) != hold_watchdog.start_of(PROC, broker.pid)


def test_a_given_pid_means_its_present_process_and_no_later(
    broker: subprocess.Popen[bytes], process: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert process.state() is ProcessState.RUNNING
    monkeypatch.setattr(hold_watchdog, "start_of", lambda _proc, _pid: "another's")
    assert process.state() is ProcessState.ABSENT
    assert process.state() is ProcessState.ABSENT, "not even when it is asked again"
    with pytest.raises(Transient, match="was not found"):
        process.hold()
    assert not stopped(broker)


@pytest.mark.parametrize("handles", [True, False], ids=["by a handle", "where there are no handles"])
def test_new_owner_of_brokers_number_is_not_stopped(
    broker: subprocess.Popen[bytes], process: BrokerProcess, monkeypatch: pytest.MonkeyPatch, *, handles: bool
) -> None:
    start = hold_watchdog.start_of(PROC, broker.pid)
    begin, begun = broker_process._keeper, []

    def slowly(found: tuple[int, str], proc: Path) -> subprocess.Popen[bytes]:
        begun.append(found)
        return begin(found, proc)

    def unknown(_pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(broker_process, "_keeper", slowly)
    monkeypatch.setattr(hold_watchdog, "start_of", lambda _proc, _pid: "another's" if begun else start)
    if not handles:
        monkeypatch.setattr(os, "pidfd_open", unknown)
    with pytest.raises(Transient, match="cannot hold process"):
        process.hold()
    assert not stopped(broker)
    assert not process.guarded(), "and the keeper has gone home"


def test_without_handles_it_is_held_by_number(
    broker: subprocess.Popen[bytes], process: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_pid: int) -> int:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "pidfd_open", forbidden)
    process.hold()
    assert stopped(broker)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_agent_killed_while_holding_leaves_broker_running(
    broker: subprocess.Popen[bytes], number: signal.Signals
) -> None:
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(broker.pid)], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"True\n"
        assert stopped(broker)
        agent.send_signal(number)
        agent.wait()
        until(lambda: not stopped(broker))
    finally:
        agent.kill()
        agent.wait()
        assert agent.stdout is not None
        agent.stdout.close()


def test_a_keeper_that_hears_nothing_releases_the_broker(broker: subprocess.Popen[bytes]) -> None:
    start = hold_watchdog.start_of(PROC, broker.pid)
    words = [str(broker.pid), start, "3", "/proc"]  # long enough for us to see it stopped
    keeper = subprocess.Popen(
        [sys.executable, "-I", "-S", hold_watchdog.__file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.read(1) == b"r"
        broker.send_signal(signal.SIGSTOP)
        until(lambda: stopped(broker))
        until(lambda: not stopped(broker)), "its quarantine agent is there, and says nothing: it may be frozen"


def test_a_keeper_that_is_gone_is_missed(broker: subprocess.Popen[bytes], process: BrokerProcess) -> None:
    process.hold()
    keeper = process._keeper
    assert keeper is not None
    keeper.kill()
    keeper.wait()
    assert not process.guarded()
    process.release()
    assert not stopped(broker)


# Has a network thread of Kafka's kind with a client, and another listener; the thread of a controller stays.
SERVER = """
import ctypes, signal, socket, sys, threading, time
manner, clients, exporter = sys.argv[1], *(socket.create_server(("127.0.0.1", 0)) for _ in range(2))
print(clients.getsockname()[1], flush=True)
connection, _ = clients.accept()
asked, begun = threading.Event(), threading.Barrier(3 if manner == "combined" else 2)
def serve(stays):
    ctypes.CDLL(None).prctl(15, b"data-plane-kafk")
    begun.wait()
    asked.wait()
    time.sleep(120 if stays else 0.5)
    clients.close()
    time.sleep(0.2)
    connection.sendall(b"answered")
    connection.close()
def end(*_):
    if manner == "exporter first":
        exporter.close()
    if manner != "deaf":
        asked.set() if manner != "hasty" else sys.exit()
signal.signal(signal.SIGTERM, end)
for number in range(begun.parties - 1):
    threading.Thread(target=serve, args=(number > 0,), daemon=True).start()
begun.wait()
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


class Server:
    """A process that answers clients, and one client of it."""

    def __init__(self, manner: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, manner], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.client = socket.create_connection(("127.0.0.1", int(self.process.stdout.readline())))
        assert self.process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def server() -> Iterator[Callable[[str], Server]]:
    made: list[Server] = []
    yield lambda manner: made.append(Server(manner)) or made[-1]
    for one in made:
        one.close()


@pytest.mark.parametrize("manner", ["orderly", "exporter first", "combined"])
def test_it_shuts_down_first_and_stops_after_answers(server: Callable[[str], Server], manner: str) -> None:
    broker = server(manner)
    process = BrokerProcess(broker.process.pid)
    process.hold()
    assert stopped(broker.process)
    broker.client.settimeout(limit(10))
    assert broker.client.recv(100) == b"answered"
    process.release()
    assert not stopped(broker.process)


def may_copy_descriptors(of: int) -> bool:
    """Whether a sandbox lets this process do so (pidfd_getfd(2))."""
    handle = os.pidfd_open(of)
    copy = ctypes.CDLL(None).syscall(438, handle, 1, 0)
    for descriptor in (handle, copy) if copy >= 0 else (handle,):
        os.close(descriptor)
    return bool(copy >= 0)


def test_a_broker_that_ignores_closing_is_stopped_with_its_clients(
    server: Callable[[str], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_process, "CLOSING_SECONDS", 0.5)
    broker = server("deaf")
    process = BrokerProcess(broker.process.pid)
    process.hold()
    assert stopped(broker.process)
    if may_copy_descriptors(broker.process.pid):
        broker.client.settimeout(limit(10))
        assert broker.client.recv(100) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(broker.client.getpeername(), timeout=limit(10))
    process.release()
    assert not stopped(broker.process)


def test_a_broker_that_ends_before_the_hold_is_reported(server: Callable[[str], Server]) -> None:
    broker = server("hasty")
    with pytest.raises(Transient, match="it has ended"):
        BrokerProcess(broker.process.pid).hold()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become an unprivileged user")
def test_who_may_not_signal_the_broker_says_so(broker: subprocess.Popen[bytes]) -> None:
    script = (
        "import os, sys\n"
        "from bellwether.quarantine.broker_process import BrokerProcess\n"
        "os.setuid(65534)\n"
        "print(BrokerProcess(int(sys.argv[1])).state())"
    )
    found = subprocess.run([sys.executable, "-c", script, str(broker.pid)], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "Barred", found.stderr


CLOSED = not all(f.stat().st_mode & 1 for p in [Path(sys.executable)] for f in (*p.parents, *p.resolve().parents))
SAME_USER = """
import os, sys, time
from bellwether.ports.errors import Transient
from bellwether.quarantine.broker_process import BrokerProcess
pid, group = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([])
os.setgid(group); os.setuid(65534)
agent = BrokerProcess(pid)
print(agent.state())
print(agent.remedy())
try:
    agent.hold()
except Transient as error:
    print(error)
until = time.monotonic() + 30
while agent.state() == "Running" and time.monotonic() < until:
    time.sleep(0.05)  # on a busy machine a stopped process is seen as such after a while
print(agent.state())
agent.release()
"""


@pytest.mark.skipif(os.getuid() != 0 or CLOSED, reason="needs root, and a Python that two others may run")
@pytest.mark.parametrize("group", [65534, 65533])
def test_agent_that_can_only_pause_holds_nothing_and_names_field(group: int) -> None:
    arguments = ["java", "-c", "sleep 60; :", f"test.Kafka{os.getpid()}"]
    broker = subprocess.Popen(
        arguments, executable="/bin/sh", user=65534, group=65534, extra_groups=[], start_new_session=True
    )
    try:
        found = subprocess.run(
            [sys.executable, "-c", SAME_USER, str(broker.pid), str(group)], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert not stopped(broker)
    finally:
        os.killpg(broker.pid, signal.SIGKILL)  # the shell, and what it started
        broker.wait()
    if group == 65534:
        assert (found[0], found[-1]) == ("Running", "Stopped"), "with the same group it sees that there are no sockets"
    else:
        assert (found[0], found[-1]) == ("Unseen", "Unseen"), found
        assert_wording(found[1])
        assert "runAsGroup: 65534" in found[1]
        assert "could only pause it" in found[2]

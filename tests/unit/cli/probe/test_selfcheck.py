from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from bellwether.cli.probe import probe
from realparts.ports import HeldPorts
from waiting import limit


@pytest.fixture
def talked_to() -> Iterator[int]:
    """The port of a listener with one client that has just spoken."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        accepted, _ = server.accept()
        stop = threading.Event()

        def speak() -> None:
            while not stop.wait(0.2):
                client.sendall(b"hello")

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        stop.set()
        thread.join(limit(5))
        accepted.close()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(probe, ["self", *arguments])
    return done.exit_code, done.output


def test_one_measurement_needs_neither_policy_nor_broker(talked_to: int) -> None:
    code, said = run("--once", "--port", str(talked_to))
    assert (code, said.splitlines()[0].split()) == (
        0,
        ["PORT", "TABLE", "CONNECTIONS", "CLIENTS", "LAST", "SEEN", "MESSAGE"],
    )
    assert said.splitlines()[1].split()[:4] == [str(talked_to), "netlink", "1", "Passing"]


def test_a_port_without_listener_is_unknown_and_no_success() -> None:
    with HeldPorts() as ports:
        code, said = run("--once", "--port", str(ports.take()))
    assert code == 4
    assert "Unknown" in said
    assert "no process listens on this port" in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--once"], "'--port'"),
        (["--port", "9094"], "'--policy'"),
        (["--port", "9094", "--policy", "main"], "'--directory'"),
        (["--port", "0"], "'--port'"),
        (["--port", "9094", "--ignore", "10.0.0.0/99"], "'--ignore'"),
        (["--port", "9094", "--ignore", "our operator"], "use a network such as 10.0.0.0/8"),
    ],
)
def test_what_is_missing_or_wrong_is_named_by_its_option(arguments: list[str], complaint: str) -> None:
    code, said = run(*arguments)
    assert (code, complaint in said) == (2, True), said

"""A held port is ours, whether or not something listens at it."""

from __future__ import annotations

import socket

import pytest

from realparts.ports import HeldPorts, accepts


def listener(port: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_a_server_can_listen_at_a_held_port_again_and_again() -> None:
    with HeldPorts() as ports:
        port = ports.take()
        assert not accepts(port)
        for _ in range(2):
            with listener(port):
                assert accepts(port)
            assert not accepts(port)


def test_the_kernel_gives_a_held_port_to_nobody_else() -> None:
    with HeldPorts() as ports:
        port = ports.take()
        with socket.socket() as rude, pytest.raises(OSError, match="in use"):
            rude.bind(("127.0.0.1", port))
        given = set()
        for _ in range(2000):
            with socket.socket() as other:
                other.bind(("127.0.0.1", 0))
                given.add(other.getsockname()[1])
        assert port not in given


def test_a_released_port_is_free() -> None:
    ports = HeldPorts()
    port = ports.take()
    ports.release()
    with socket.socket() as anyone:
        anyone.bind(("127.0.0.1", port))

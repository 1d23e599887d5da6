"""The path that loses packets delays what TCP would repeat, and delivers everything."""

from __future__ import annotations

import socket
import threading

from faults.lossy_path import LossyPath


def echo(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        while data := connection.recv(1024):
            connection.sendall(data)


def test_everything_arrives_both_ways():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with (
            LossyPath(listener.getsockname()[1], 0.0) as path,
            socket.create_connection(("127.0.0.1", path.port), timeout=30) as client,
        ):
            client.sendall(b"request")
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while data := client.recv(1024):
                answer += data
    assert answer == b"request"


def test_one_packet_in_twenty_is_late_and_each_repetition_takes_twice_as_long():
    with LossyPath(9092, 0.05) as path:
        delays = [path.delay(0.2) for _ in range(20_000)]
    late = [seconds for seconds in delays if seconds]
    assert 0.04 < len(late) / len(delays) < 0.06
    assert sorted({round(seconds, 1) for seconds in late})[:3] == [0.2, 0.6, 1.4]

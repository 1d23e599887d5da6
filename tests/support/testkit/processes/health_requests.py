"""Asks a process for its health, as the kubelet does. In: a port and a path. Out: status and text, or OSError."""

from __future__ import annotations

import http.client


def ask(port: int, path: str, timeout_seconds: float = 5.0) -> tuple[int, str]:
    """The answer of a process on this machine. Raises OSError when there is none in time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except http.client.HTTPException as error:
        raise OSError(f"no HTTP answer: {error}") from error
    finally:
        connection.close()


def answers(port: int) -> bool:
    """Whether anyone answers within two seconds."""
    try:
        return ask(port, "/healthz", 2)[0] in (200, 503)
    except OSError:
        return False

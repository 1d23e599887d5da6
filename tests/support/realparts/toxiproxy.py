"""The load balancer before every external listener: one toxiproxy server, controlled over its HTTP API what to break.

In: named ways from a listening port to an upstream port, all on 127.0.0.1. Out: cut, silent, slow or whole ways.
Called by the Kafka starter, and through ``KafkaCluster.proxy`` by tests that play the fault.
"""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from realparts import gotools
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess
from realparts.started import Started
from waiting import limit


class Toxiproxy(Started):
    """A running toxiproxy. Names are the caller's; the Kafka starter uses ``broker-1`` and so on."""

    def __init__(self, log: Path, *, elsewhere: tuple[str, int] | None = None) -> None:
        """Nothing runs yet. ``elsewhere`` is where one runs already, which is controlled alike."""
        self._log = log
        self._ports = HeldPorts()
        self._address = elsewhere or ("127.0.0.1", self._ports.take())
        self._upstreams: dict[str, str] = {}
        self.process: ManagedProcess | None = None

    @property
    def url(self) -> str:
        """Where its HTTP API is."""
        return f"http://{self._address[0]}:{self._address[1]}"

    def start(self) -> None:
        """Start the server and wait until its API answers. Raises StartFailed."""
        self.process = ManagedProcess(
            "toxiproxy",
            [gotools.binary(gotools.TOXIPROXY), "-host", "127.0.0.1", "-port", str(self._address[1])],
            log=self._log,
            environment={"LOG_LEVEL": "warn"},
        )
        self.process.start()
        self.process.wait_ready(self.answers, 60, every_seconds=0.02)

    def stop(self) -> None:
        """End the server; every way through it ends."""
        if self.process is not None:
            self.process.stop(5)
        self._ports.release()

    def add(self, name: str, upstream: str, listen: str) -> None:
        """Open a way from ``listen`` to ``upstream`` (both "127.0.0.1:port")."""
        self._call("POST", "/proxies", {"name": name, "upstream": upstream, "listen": listen, "enabled": True})
        self._upstreams[name] = upstream

    def cut(self, name: str) -> None:
        """Close the way's listener and its connections: new ones are refused."""
        self._call("POST", f"/proxies/{name}", {"enabled": False})

    def mend(self, name: str) -> None:
        """Make the way whole again, whatever was done to it."""
        for toxic in self._call("GET", f"/proxies/{name}/toxics"):
            self._call("DELETE", f"/proxies/{name}/toxics/{toxic['name']}")
        self._call("POST", f"/proxies/{name}", {"enabled": True, "upstream": self._upstreams[name]})

    def upstream(self, name: str) -> str:
        """Where a way leads when it is whole, as ``host:port``."""
        return self._upstreams[name]

    def lead(self, name: str, elsewhere: str) -> None:
        """Let a way lead where another one leads, or to a ``host:port``; ``mend`` undoes it."""
        upstream = self._upstreams.get(elsewhere, elsewhere)
        self._call("POST", f"/proxies/{name}", {"enabled": True, "upstream": upstream})

    def blackhole(self, name: str) -> None:
        """Drop all data both ways; connections are accepted and stay open, and nothing ever answers."""
        self._poison(name, "timeout", {"timeout": 0})

    def reset_peer(self, name: str) -> None:
        """Reset every connection as soon as it sends or gets data."""
        self._poison(name, "reset_peer", {"timeout": 0})

    def reset_some(self, name: str, share: float) -> None:
        """Reset that share of the connections, from 0 to 1, as soon as they send data; the others are whole."""
        kind = {"name": "reset-some", "type": "reset_peer", "stream": "upstream", "toxicity": share}
        self._call("POST", f"/proxies/{name}/toxics", {**kind, "attributes": {"timeout": 0}})

    def slow(self, name: str, latency_ms: int) -> None:
        """Delay what upstream answers by that many milliseconds."""
        kind = {"name": "latency-downstream", "type": "latency", "stream": "downstream"}
        self._call("POST", f"/proxies/{name}/toxics", {**kind, "attributes": {"latency": latency_ms}})

    def _poison(self, name: str, kind: str, attributes: dict[str, int]) -> None:
        for stream in ("upstream", "downstream"):
            toxic = {"name": f"{kind}-{stream}", "type": kind, "stream": stream, "attributes": attributes}
            self._call("POST", f"/proxies/{name}/toxics", toxic)

    def answers(self) -> bool:
        """Whether its API does."""
        try:
            self._call("GET", "/version")
        except (OSError, HTTPException):
            return False
        return True

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        connection = HTTPConnection(*self._address, timeout=limit(30))
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"toxiproxy refused {method} {path}: {answer.status} {text.decode(errors='replace')}")
        return json.loads(text) if text.startswith((b"{", b"[")) else None

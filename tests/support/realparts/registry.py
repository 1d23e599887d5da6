"""A container registry on this machine: CNCF Distribution, without TLS and accounts, with its content in a folder.

In: a folder, and which of this machine's addresses to listen on. Out: its address. Called by the release's dry run and
by tests on a node, which sees the host at another address than 127.0.0.1.
"""

from __future__ import annotations

import json
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from realparts import gotools
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess
from realparts.started import Started


def answers(address: str) -> bool:
    """Whether a registry without TLS answers there."""
    try:
        with urlopen(f"http://{address}/v2/", timeout=10) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError, HTTPException):
        return False


class Registry(Started):
    """A context manager."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        self._folder = folder
        self._ports = HeldPorts()
        self.address = f"{host}:{self._ports.take()}"
        self._process: ManagedProcess | None = None

    def start(self) -> None:
        """Start it and wait until it listens. Raises StartFailed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        log, settings = self._folder / "registry.log", self._folder / "registry.yaml"
        storage = {"filesystem": {"rootdirectory": str(self._folder / "content")}}
        settings.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": self.address}}))
        command: list[str | Path] = [gotools.binary(gotools.REGISTRY), "serve", settings]
        self._process = ManagedProcess("registry", command, log=log, environment={"OTEL_TRACES_EXPORTER": "none"})
        self._process.start()
        self._process.wait_ready(lambda: "listening on" in log.read_text(), 60)

    def stop(self) -> None:
        """End it; its content stays."""
        if self._process is not None:
            self._process.stop(5)
        self._ports.release()

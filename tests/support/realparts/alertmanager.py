"""A real Alertmanager on 127.0.0.1 that sends to one webhook, told over its API which alerts fire.

In: the webhook's address and the file of its token. Out: alerts fired and resolved, as Prometheus would. Groups wait
for nothing and are flushed every second, so that tests need not wait.
"""

from __future__ import annotations

import datetime
import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from realparts import gotools
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess
from realparts.started import Started
from waiting import limit


class Alertmanager(Started):
    """One server. ``ca`` is trusted for an https webhook; ``repeat_seconds`` is its repeat_interval."""

    def __init__(
        self, folder: Path, webhook: str, token_file: Path, *, ca: Path | None = None, repeat_seconds: int = 3600
    ) -> None:
        self._folder = folder
        self._ports = HeldPorts()
        self._port = self._ports.take()
        http: dict[str, Any] = {"authorization": {"type": "Bearer", "credentials_file": str(token_file)}}
        if ca is not None:
            http["tls_config"] = {"ca_file": str(ca)}
        timing: dict[str, Any] = {"group_wait": "0s", "group_interval": "1s", "repeat_interval": f"{repeat_seconds}s"}
        hook = {"url": webhook, "send_resolved": True, "http_config": http}
        self._settings: dict[str, Any] = {
            "route": {**timing, "receiver": "bellwether", "group_by": ["alertname"]},
            "receivers": [{"name": "bellwether", "webhook_configs": [hook]}],
        }
        self.process: ManagedProcess | None = None

    def start(self) -> None:
        """Start the server and wait until it is ready. Raises StartFailed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        settings = self._folder / "alertmanager.yml"
        settings.write_text(json.dumps(self._settings))
        self.process = ManagedProcess(
            "alertmanager",
            [
                gotools.binary(gotools.ALERTMANAGER),
                f"--config.file={settings}",
                f"--storage.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                "--cluster.listen-address=",
            ],
            log=self._folder / "alertmanager.log",
        )
        self.process.start()
        self.process.wait_ready(self._answers, 60)

    def stop(self) -> None:
        """End the server."""
        if self.process is not None:
            self.process.stop(5)
        self._ports.release()

    def fire(self, name: str, **labels: str) -> None:
        """An alert fires, until it is resolved."""
        self._post(name, labels, datetime.timedelta(hours=1))

    def resolve(self, name: str, **labels: str) -> None:
        """An alert with these very labels is over."""
        self._post(name, labels, datetime.timedelta(0))

    def _post(self, name: str, labels: dict[str, str], lasts: datetime.timedelta) -> None:
        now = datetime.datetime.now(datetime.UTC)
        times = {"startsAt": (now - datetime.timedelta(minutes=1)).isoformat(), "endsAt": (now + lasts).isoformat()}
        self._call("POST", "/api/v2/alerts", [{"labels": {"alertname": name, **labels}, **times}])

    def _answers(self) -> bool:
        try:
            self._call("GET", "/-/ready")
        except (OSError, HTTPException, RuntimeError):
            return False
        return True

    def _call(self, method: str, path: str, body: object = None) -> None:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=limit(30))
        try:
            content = {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), content)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"Alertmanager refused {method} {path}: {answer.status} {text}")

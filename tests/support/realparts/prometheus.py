"""Starts a real Prometheus on 127.0.0.1: with a past that it did not live through, or scraping targets of the caller's.

In: samples with times, as OpenMetrics text, or the addresses of pages to scrape each second. Out: a server whose
``url`` answers PromQL. Called by the tests of ready-made queries and of the prober that asks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from realparts import gotools
from realparts.ports import HeldPorts
from realparts.processes import ManagedProcess, StartFailed
from realparts.started import Started
from waiting import limit, ran


class PrometheusServer(Started):
    """One Prometheus. ``targets`` maps addresses (``host:port``) to the labels that their series get.

    ``job`` is the name of the one job that they belong to; labels that a target tells itself win (``honor_labels``).
    ``rules`` are rule files, evaluated each second. With ``certificate``, the files of a certificate and of its key, it
    speaks TLS. ``users`` are names and bcrypt hashes of passwords: with any, it lets no one else in.
    """

    def __init__(
        self,
        directory: Path,
        *,
        targets: Mapping[str, Mapping[str, str]] | None = None,
        certificate: tuple[Path, Path] | None = None,
        users: Mapping[str, str] | None = None,
        rules: Sequence[Path] = (),
        job: str = "kafka",
    ) -> None:
        self._directory = directory
        self._rules = rules
        self._job = job
        self._targets = targets or {}
        self._certificate = certificate
        self._users = dict(users or {})
        self._ports = HeldPorts()
        self._port = self._ports.take()
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self._port}"
        self.process: ManagedProcess | None = None

    def remember(self, openmetrics: str) -> None:
        """Give it a past, before it starts. The text has a time on every line and ends in ``# EOF``."""
        self._directory.mkdir(parents=True, exist_ok=True)
        text = self._directory / "past.om"
        text.write_text(openmetrics)
        made = ran([gotools.binary(gotools.PROMTOOL), "tsdb", "create-blocks-from", "openmetrics", text, self._data])
        if made.returncode != 0:
            raise StartFailed(f"promtool did not take the past:\n{made.stdout}{made.stderr}")

    def start(self) -> None:
        """Start it and wait until it answers. Raises StartFailed."""
        self._directory.mkdir(parents=True, exist_ok=True)
        configuration = self._directory / "prometheus.yml"
        configuration.write_text(json.dumps(self._configuration()))  # JSON is YAML
        self.process = ManagedProcess(
            "prometheus",
            [
                gotools.binary(gotools.PROMETHEUS),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self._data}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                f"--web.config.file={self._web_configuration()}",
                "--log.level=info",
            ],
            log=self._directory / "prometheus.log",
        )
        self.process.start()
        self.process.wait_ready(self._ready, 120, every_seconds=0.05)

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.stop(10)
        self._ports.release()

    def query(self, promql: str) -> list[dict[str, Any]]:
        """The series of an instant query, as the API gives them. Raises RuntimeError with the server's words."""
        found: list[dict[str, Any]] = self._asked(f"query?{urlencode({'query': promql})}")["result"]
        return found

    def query_range(self, promql: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """The series of a query over Unix times, a value every ``step`` seconds."""
        asked = urlencode({"query": promql, "start": start, "end": end, "step": step})
        found: list[dict[str, Any]] = self._asked(f"query_range?{asked}")["result"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The alerts that are pending or fire, with their labels and annotations."""
        found: list[dict[str, Any]] = self._asked("alerts")["alerts"]
        return found

    def _asked(self, what: str) -> dict[str, Any]:
        try:
            with urlopen(f"{self.url}/api/v1/{what}", timeout=limit(30)) as answer:
                found: dict[str, Any] = json.load(answer)["data"]
        except URLError as error:
            said = error.read().decode(errors="replace") if hasattr(error, "read") else str(error)
            raise RuntimeError(f"{said}\nwas the answer to: {what}") from error
        return found

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _configuration(self) -> dict[str, Any]:
        static = [{"targets": [address], "labels": dict(labels)} for address, labels in self._targets.items()]
        jobs = [{"job_name": self._job, "honor_labels": True, "static_configs": static}] if static else []
        every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        return {"global": every, "scrape_configs": jobs, "rule_files": [str(path) for path in self._rules]}

    def _web_configuration(self) -> Path:
        path = self._directory / "web.yml"
        files = dict(zip(("cert_file", "key_file"), map(str, self._certificate or ()), strict=False))
        words: dict[str, Any] = {"tls_server_config": files} if files else {}
        path.write_text(json.dumps(words | ({"basic_auth_users": self._users} if self._users else {})))
        return path

    def _ready(self) -> bool:
        if self.process is not None and (self._certificate is not None or self._users):
            # It asks for a password that is not known here, and until it is ready it answers with 503.
            return "Server is ready to receive web requests" in self.process.tail(50)
        try:
            with urlopen(f"{self.url}/-/ready", timeout=limit(5)) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

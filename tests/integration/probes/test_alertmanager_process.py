"""``bellwether probe alertmanager`` as a process, told by a real Alertmanager and by strangers, on a real API."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from realparts.alertmanager import Alertmanager
from realparts.ports import HeldPorts, accepts
from realparts.tls import Authority
from waiting import limit, until

pytestmark = [pytest.mark.apiserver, pytest.mark.slow]

TOKEN = "a-token-that-nobody-guesses"
WELL: dict[str, Any] = {"version": "4", "alerts": []}


class Hook:
    """The webhook of a bench's policy, and what its Alertmanager, or a stranger, sends to it."""

    def __init__(self, bench: Any, folder: Path, authority: Authority | None = None) -> None:
        self.bench = bench
        self.folder = folder
        self.authority = authority
        self.ports = HeldPorts()
        self.port = self.ports.take()
        self.health: dict[int, int] = {}
        self.token = folder / "token"
        self.token.write_text(TOKEN)
        self.alertmanagers: list[Alertmanager] = []
        self.name_alerts("DiskSlow", "NicDown")
        for broker in (1, 2, 3):
            hosts = [f"main-kafka-{broker}.main-kafka-brokers.kafka.svc"]
            name = object_names.broker_health("main", broker)
            self.bench.api.merge(
                BROKER_HEALTHS, self.bench.namespace, name, {"status": {"advertisedHosts": hosts}}, "status"
            )

    def name_alerts(self, *names: str) -> None:
        of_main = [{"name": "cluster", "value": "main"}]
        spec = {"detection": {"alertmanager": {"alerts": list(names), "matchers": of_main, "brokerLabel": "pod"}}}
        self.bench.api.merge(POLICIES, self.bench.namespace, "main", {"spec": spec})

    def start(self, *, port: int | None = None, ready: bool = True, options: tuple[str, ...] = ()) -> Any:
        files = []
        if self.authority:
            certificate, key = self.authority.issue("webhook")
            files = ["--tls-cert", str(certificate), "--tls-key", str(key)]
        at = port or self.port
        self.health[at] = self.health.get(at) or self.ports.take()
        arguments = ("--listen", f"127.0.0.1:{at}", "--token-file", str(self.token), *files, *options)
        process = self.bench.start("alertmanager", *arguments, "--health-port", str(self.health[at]))
        wanted = 200 if ready else 503
        # In this order: the process serves /readyz a moment before it knows what it has to be ready for.
        self.bench.until(lambda: accepts(at) and self.readiness(at) == wanted, 40)
        return process

    def readiness(self, port: int) -> int | None:
        """What the process with the webhook on that port answers to the kubelet; None when it does not."""
        client = http.client.HTTPConnection("127.0.0.1", self.health[port], timeout=limit(20))
        try:
            client.request("GET", "/readyz")
            return int(client.getresponse().status)
        except OSError:
            return None
        finally:
            client.close()

    def alertmanager(self, **how: Any) -> Alertmanager:
        scheme, ca = ("https", self.authority.path) if self.authority else ("http", None)
        url = f"{scheme}://127.0.0.1:{self.port}/alerts"
        made = Alertmanager(self.folder / f"am-{len(self.alertmanagers)}", url, self.token, ca=ca, **how)
        self.alertmanagers.append(made)
        made.start()
        return made

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = TOKEN, port: int | None = None
    ) -> int | None:
        """The answer's status; None when there is none."""
        if self.authority:
            context = ssl.create_default_context(cafile=str(self.authority.path))
            client: Any = http.client.HTTPSConnection(
                "127.0.0.1", port or self.port, timeout=limit(20), context=context
            )
        else:
            client = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=limit(20))
        try:
            client.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
            return int(client.getresponse().status)
        except OSError:
            return None
        finally:
            client.close()

    def send(self, name: str, pod: str, status: str = "firing", **how: Any) -> int | None:
        """The answer's status, asked for again as Alertmanager does: a slow machine may miss the time for headers."""
        alert = {
            "status": status,
            "labels": {"alertname": name, "cluster": "main", "pod": pod},
            "fingerprint": f"{hash((name, pod)):x}",
        }
        alert["fingerprint"] = str(alert["fingerprint"]).lstrip("-")
        body = json.dumps({**WELL, "alerts": [alert]})
        return until(lambda: self.ask("POST", "/alerts", body, **how), 30, "an answer", every=0.2)

    def entries(self) -> dict[tuple[int, str], str]:
        found = {}
        for broker in (1, 2, 3):
            for one in (self.bench.health(broker).get("status") or {}).get("signals") or []:
                found[broker, one["source"]] = one["reading"]
        return found

    def entry(self, broker: int, source: str) -> Any:
        signals = (self.bench.health(broker).get("status") or {}).get("signals") or []
        return next(one for one in signals if one["source"] == source)

    def until(self, entries: dict[tuple[int, str], str], seconds: float = 60) -> float:
        return float(self.bench.until(lambda: self.entries() == entries, seconds))

    def close(self) -> None:
        for one in self.alertmanagers:
            one.stop()
        self.ports.release()


@pytest.fixture
def hook(dry_bench: Any, tmp_path: Path) -> Iterator[Hook]:
    hook = Hook(dry_bench, tmp_path)
    yield hook
    hook.close()


@pytest.fixture
def secure_hook(dry_bench: Any, tmp_path: Path) -> Iterator[Hook]:
    hook = Hook(dry_bench, tmp_path, Authority(tmp_path / "tls"))
    yield hook
    hook.close()


@pytest.mark.parametrize("door", ["hook", "secure_hook"])
def test_what_a_real_alertmanager_says_becomes_signals_and_its_resolution_clears_them(
    door: str, request: pytest.FixtureRequest
) -> None:
    hook: Hook = request.getfixturevalue(door)
    hook.start()
    alertmanager = hook.alertmanager()
    alertmanager.fire("DiskSlow", cluster="main", pod="main-kafka-2", volume="a")
    alertmanager.fire("DiskSlow", cluster="main", pod="main-kafka-2", volume="b")
    alertmanager.fire("SomebodyElses", cluster="main", pod="main-kafka-1")
    alertmanager.fire("DiskSlow", cluster="main", pod="main-kafka-77")
    alertmanager.fire("NicDown", cluster="main", node="without-the-label")
    alertmanager.fire("NicDown", cluster="main", pod="3")
    both = {(2, "DiskSlow"): "Failing", (3, "NicDown"): "Failing"}
    hook.until(both)
    hook.bench.until(lambda: hook.entry(2, "DiskSlow")["value"] == "2", 10)
    entry = hook.entry(2, "DiskSlow")
    assert (entry["type"], entry["message"]) == ("Alertmanager", "DiskSlow fires (2)")

    before = hook.bench.versions(1, 2, 3)
    renewed = hook.bench.lease()["renewTime"]
    time.sleep(5)
    assert hook.bench.versions(1, 2, 3) == before
    hook.bench.until(lambda: hook.bench.lease()["renewTime"] > renewed, 30)

    alertmanager.resolve("DiskSlow", cluster="main", pod="main-kafka-2", volume="a")
    hook.bench.until(lambda: hook.entry(2, "DiskSlow")["value"] == "1", 60)
    assert hook.entries() == both
    alertmanager.resolve("DiskSlow", cluster="main", pod="main-kafka-2", volume="b")
    hook.until({**both, (2, "DiskSlow"): "Passing"})
    logs = hook.bench.logs()
    assert TOKEN not in logs
    assert logs.count("alert_not_listed") == 1


def test_after_a_crash_it_carries_on_from_what_it_had_written_until_alertmanager_speaks_again(hook: Hook) -> None:
    process = hook.start()
    alertmanager = hook.alertmanager()
    alertmanager.fire("DiskSlow", cluster="main", pod="main-kafka-2")
    hook.until({(2, "DiskSlow"): "Failing"})
    first = hook.entry(2, "DiskSlow")
    process.kill()
    process.wait()
    hook.start()  # the repeat_interval is an hour: nobody tells it
    hook.bench.until(lambda: hook.entry(2, "DiskSlow")["proberUID"] != first["proberUID"], 60)
    second = hook.entry(2, "DiskSlow")
    assert (second["reading"], second["since"], second["value"]) == ("Failing", first["since"], "1")
    alertmanager.resolve("DiskSlow", cluster="main", pod="main-kafka-2")
    hook.until({(2, "DiskSlow"): "Passing"})


def test_an_alert_that_is_resolved_while_the_webhook_is_down_is_told_when_it_is_back(hook: Hook) -> None:
    process = hook.start()
    alertmanager = hook.alertmanager()
    alertmanager.fire("DiskSlow", cluster="main", pod="main-kafka-2")
    hook.until({(2, "DiskSlow"): "Failing"})
    process.kill()
    process.wait()
    alertmanager.resolve("DiskSlow", cluster="main", pod="main-kafka-2")
    time.sleep(2)
    hook.start()
    hook.until({(2, "DiskSlow"): "Passing"}, 60)


def test_one_that_stands_by_takes_nothing_until_it_takes_over_and_a_stopped_one_tells_all_it_took(hook: Hook) -> None:
    first = hook.start()
    other = hook.ports.take()
    hook.start(port=other, ready=False)
    assert hook.send("DiskSlow", "main-kafka-2", port=other) == 503
    assert hook.entries() == {}
    assert hook.send("DiskSlow", "main-kafka-2") == 200
    first.send_signal(signal.SIGTERM)
    assert first.wait(limit(60)) == 0, hook.bench.logs()
    assert hook.entries() == {(2, "DiskSlow"): "Failing"}
    hook.bench.until(lambda: hook.readiness(other) == 200, 60)
    assert hook.send("DiskSlow", "main-kafka-2", "resolved", port=other) == 200
    hook.until({(2, "DiskSlow"): "Passing"})


def test_an_alert_that_the_policy_names_no_longer_takes_its_entries_along(hook: Hook) -> None:
    hook.start()
    assert hook.send("DiskSlow", "main-kafka-2") == 200
    assert hook.send("NicDown", "main-kafka-3") == 200
    hook.until({(2, "DiskSlow"): "Failing", (3, "NicDown"): "Failing"})
    hook.name_alerts("NicDown")
    hook.until({(3, "NicDown"): "Failing"}, 40)


def memory_kib(pid: int) -> int:
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1])


def test_strangers_floods_and_forgeries_change_nothing_and_are_said_once(hook: Hook) -> None:
    process = hook.start()
    assert hook.send("DiskSlow", "main-kafka-2") == 200
    hook.until({(2, "DiskSlow"): "Failing"})
    before, kib = hook.bench.versions(1, 2, 3), memory_kib(process.pid)
    good = json.dumps(
        {**WELL, "alerts": [{"status": "firing", "labels": {"alertname": "NicDown", "cluster": "main", "pod": "1"}}]}
    )
    forged = [good, good[:-5], "[" * 500_000, '{"a":' * 100_000, "x" * 2_000_000, "null", "", '{"version": "4"}']
    unlisted = json.dumps({**WELL, "alerts": [self_made(n) for n in range(5000)]})
    with ThreadPoolExecutor(20) as senders:
        strangers = list(senders.map(lambda n: hook.send("NicDown", "1", token=f"guess-{n}"), range(300)))
        refused = list(senders.map(lambda n: hook.ask("POST", "/alerts", forged[n % len(forged)]), range(80)))
        passed = list(senders.map(lambda _: hook.ask("POST", "/alerts", unlisted), range(20)))
    assert set(strangers) == {401}
    assert set(refused) <= {400, 413, None}  # None: it hung up on a body that is too long
    assert set(passed) - {None} == {200}  # None: on a slow machine a request may take longer than is allowed
    assert hook.bench.versions(1, 2, 3) == before
    assert memory_kib(process.pid) - kib < 100 * 1024
    logs = hook.bench.logs()
    for event in ("request_unauthorized", "request_invalid"):
        assert logs.count(event) == 1
    assert logs.count("alert_not_listed") <= 50
    assert hook.send("DiskSlow", "main-kafka-2", "resolved") == 200
    hook.until({(2, "DiskSlow"): "Passing"})


def self_made(number: int) -> dict[str, Any]:
    labels = {"alertname": f"Made-{number}", "cluster": "main", "pod": str(number)}
    return {"status": "firing", "labels": labels, "fingerprint": f"{number:x}"}


def test_an_alert_going_to_and_fro_writes_about_once_a_second(hook: Hook) -> None:
    hook.start()
    assert hook.send("DiskSlow", "main-kafka-2") == 200
    hook.until({(2, "DiskSlow"): "Failing"})
    first, began = hook.entry(2, "DiskSlow")["sequence"], time.monotonic()
    for n in range(300):
        assert hook.send("DiskSlow", "main-kafka-2", ("resolved", "firing")[n % 2]) == 200
    hook.until({(2, "DiskSlow"): "Failing"})
    assert hook.entry(2, "DiskSlow")["sequence"] - first <= 2 * (time.monotonic() - began) + 3

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from structlog.testing import capture_logs

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import Alertmanager
from bellwether.core.signals import Reading, Signal
from bellwether.ports.errors import Transient
from bellwether.probes.alertmanager import alert_receiver
from bellwether.probes.alertmanager.alert_payload import Notification, read
from bellwether.probes.alertmanager.alert_receiver import Alerts, NotReady
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from bellwether.telemetry.metrics.webhook_metrics import WebhookMetrics
from waiting import until

MAIN = (("cluster", "main"),)
SETTINGS = Alertmanager(alerts=("DiskSlow", "NicDown"), matchers=MAIN)
HOSTS = {b: (f"main-kafka-{b}.main-kafka-brokers.kafka.svc",) for b in (1, 2, 3)}
EARLIER = datetime(2026, 1, 2, tzinfo=UTC)


def alert(
    name: str = "DiskSlow", broker: Any = "2", status: str = "firing", cluster: str | None = "main", **more: Any
) -> dict[str, Any]:
    labels = {"alertname": name, **({} if broker is None else {"broker": broker})}
    labels |= {key: more.pop(key) for key in ("pod", "broker_id", "namespace", "instance") if key in more}
    if cluster is not None:
        labels["cluster"] = cluster
    return {
        "status": status,
        "labels": labels,
        "fingerprint": sha256(f"{name}{broker}".encode()).hexdigest()[:16],
        **more,
    }


def body(*sent: dict[str, Any], **more: Any) -> Notification:
    return read(json.dumps({"version": "4", "alerts": sent, **more}).encode())


@pytest.fixture(autouse=True)
def entries_are_soon_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_receiver, "_RECALL_SECONDS", 0.1)


class Bench:
    def __init__(self, **how: Any) -> None:
        self.posts: list[Signal] = []
        self.forgotten: list[tuple[int, str]] = []
        self.standing: list[tuple[Signal, bool]] = []
        self.trouble: Exception | None = None
        self.leading = True
        self.recalls = 0
        self.metrics = ProbeMetrics()
        self.alerts = Alerts(
            self.recall,
            lambda: self.leading,
            self.posts.append,
            lambda broker, name: self.forgotten.append((broker, name)),
            SystemClock(),
            WebhookMetrics(self.metrics),
            **how,
        )

    def recall(self) -> list[tuple[Signal, bool]]:
        self.recalls += 1
        if self.trouble is not None:
            raise self.trouble
        return self.standing

    def begin(self) -> None:
        self.alerts.configure(SETTINGS)
        self.alerts.refresh(HOSTS)
        self.alerts.start()

    def last(self) -> dict[tuple[int, str], Reading]:
        return {(s.broker, s.source): s.reading for s in self.posts}

    def counted(self) -> dict[str, float]:
        return {
            s.labels["result"]: s.value
            for m in self.metrics.registry.collect()
            for s in m.samples
            if s.name == "bellwether_probe_webhook_alerts_total"
        }


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    bench.begin()
    until(bench.alerts.ready)
    yield bench
    bench.alerts.stop()


def test_an_alert_that_fires_fails_its_broker_alone_and_its_resolution_passes(bench: Bench) -> None:
    bench.alerts.receive(body(alert(broker="main-kafka-2")))
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.FAILING})
    bench.alerts.receive(body(alert(broker="main-kafka-2", status="resolved")))
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.PASSING})


def test_pod_of_a_second_pool_is_the_broker_that_advertises_its_host(bench: Bench) -> None:
    bench.alerts.refresh({1: (), 2: (), 101: ("kafka-broker-1.kafka-broker-headless.kafka.svc.cluster.local",)})
    bench.alerts.receive(body(alert(broker=None, pod="kafka-broker-1", namespace="kafka")))
    until(lambda: bench.last() == {(101, "DiskSlow"): Reading.FAILING})


def test_what_fires_and_is_resolved_in_one_notification_fires(bench: Bench) -> None:
    bench.alerts.receive(body(alert(), alert(status="resolved")))
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.FAILING})


@pytest.mark.parametrize(
    ("sent", "counted"),
    [
        (alert("SomethingElse"), "unlisted"),
        (alert("diskslow"), "unlisted"),
        (alert(""), "unlisted"),
        (alert(cluster="another"), "other_cluster"),
        (alert(cluster=None), "other_cluster"),
        (alert(cluster="x" * 500_000), "other_cluster"),
        (alert(broker=None), "no_broker"),
        (alert(broker=""), "no_broker"),
        (alert(broker="kafka"), "no_broker"),
        (alert(broker="10.0.0.2"), "no_broker"),
        (alert(broker="kafka-2:9404"), "no_broker"),
        (alert(broker="kafka-2\n"), "no_broker"),
        (alert(broker="kafka-2"), "no_broker"),
        (alert(broker="main-kafka-7d9c5b6f8-x2x2"), "no_broker"),
        (alert(broker=None, pod="main-kafka-2", broker_id="1"), "no_broker"),
        (alert(broker="-2 "), "no_broker"),
        (alert(broker="ip-10-0-0-2"), "no_broker"),
        (alert(broker="x" * 500_000 + "-2"), "no_broker"),
        (alert(broker="7"), "unknown_broker"),
        (alert(broker="99999999999"), "unknown_broker"),
    ],
)
def test_what_the_policy_does_not_name_and_what_names_no_broker_is_passed_over_and_counted(
    bench: Bench, sent: dict[str, Any], counted: str
) -> None:
    bench.alerts.receive(body(sent, alert("NicDown", "3")))
    until(lambda: bench.last() == {(3, "NicDown"): Reading.FAILING})
    assert bench.counted() == {counted: 1.0, "firing": 1.0}


def test_what_is_passed_over_is_said_once(bench: Bench) -> None:
    with capture_logs() as logs:
        for _ in range(200):
            bench.alerts.receive(body(alert("Else"), alert(broker="kafka"), alert(broker="9")))
    assert len(logs) == 3
    assert bench.counted() == {"unlisted": 200.0, "no_broker": 200.0, "unknown_broker": 200.0}


def test_a_flood_of_names_takes_no_memory_and_few_lines(bench: Bench) -> None:
    with capture_logs() as logs:
        for n in range(50):
            bench.alerts.receive(body(*(alert(f"Name{n}x{m}", str(m)) for m in range(100))))
            bench.alerts.receive(body(*(alert("DiskSlow", str(1000 + 100 * n + m)) for m in range(100))))
        bench.alerts.receive(body(alert(broker="kafka")))
    assert len(logs) == alert_receiver._MOST_SAID + 2  # so many names, a broker that is not known, and one without
    assert logs[-1]["event"] == "alert_without_broker"
    assert bench.alerts._firing == {}


def test_an_alert_that_goes_to_and_fro_a_thousand_times_is_written_a_few_times(bench: Bench) -> None:
    began = time.monotonic()
    for n in range(1000):
        bench.alerts.receive(body(alert(status=("firing", "resolved")[n % 2])))
    took = time.monotonic() - began
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.PASSING})
    assert len(bench.posts) <= 2 + took / alert_receiver.NEWS_SECONDS + 1


def test_a_body_that_is_refused_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(ValueError, match="fingerprint"):
        bench.alerts.receive(body(alert(), alert("NicDown", "3", fingerprint="")))
    bench.alerts.receive(body(alert("NicDown", "1")))
    until(lambda: bench.last() == {(1, "NicDown"): Reading.FAILING})


def test_cut_alerts_are_said_with_the_remedy(bench: Bench) -> None:
    with capture_logs() as logs:
        bench.alerts.receive(body(alert(), truncatedAlerts=9))
    assert "max_alerts: 0" in logs[0]["remedy"]


def signal(reading: Reading, broker: int = 2, name: str = "DiskSlow", value: float | None = 1.0) -> Signal:
    text = f"{name} fires (1): was written before"
    return Signal(broker, "Alertmanager", name, reading, EARLIER, message=text, value=value)


def test_on_start_it_carries_on_from_the_entries_that_stand_and_tells_them_again() -> None:
    bench = Bench()
    bench.standing = [(signal(Reading.FAILING), False), (signal(Reading.PASSING, 1), False)]
    bench.begin()
    until(lambda: len(bench.posts) == 2)
    assert bench.last() == {(2, "DiskSlow"): Reading.FAILING, (1, "DiskSlow"): Reading.PASSING}
    assert bench.posts[-1].since == EARLIER
    bench.alerts.receive(body(alert(status="resolved")))
    until(lambda: bench.last()[2, "DiskSlow"] is Reading.PASSING)
    bench.alerts.stop()


def test_nothing_is_taken_before_the_entries_that_stand_were_read() -> None:
    bench = Bench()
    bench.trouble = Transient("away")
    bench.begin()
    until(lambda: bench.recalls)
    with pytest.raises(NotReady):
        bench.alerts.receive(body(alert()))
    bench.trouble = None
    until(bench.alerts.ready)
    bench.alerts.stop()


def test_nothing_is_taken_while_another_process_reports_and_its_word_counts_afterwards(bench: Bench) -> None:
    bench.alerts.receive(body(alert(), alert("NicDown", "1")))
    until(lambda: len(bench.posts) == 2)
    bench.leading = False
    with pytest.raises(NotReady):
        bench.alerts.receive(body(alert(status="resolved")))
    until(lambda: not bench.alerts._recalled)
    bench.standing = [(signal(Reading.PASSING), False), (signal(Reading.FAILING, 1, "NicDown"), True)]
    bench.leading = True
    bench.alerts.repeat()
    until(lambda: len(bench.posts) == 4)
    assert bench.last() == {(2, "DiskSlow"): Reading.PASSING, (1, "NicDown"): Reading.FAILING}


def test_what_this_process_took_and_could_not_write_is_told_when_it_reports_again(bench: Bench) -> None:
    bench.alerts.receive(body(alert()))
    until(lambda: bool(bench.posts))
    bench.posts.clear()
    bench.standing = [(signal(Reading.PASSING), True)]  # its own earlier word: the write that followed was lost
    bench.alerts.repeat()
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.FAILING})


def test_when_the_matchers_change_what_fired_before_is_dropped(bench: Bench) -> None:
    bench.alerts.receive(body(alert()))
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.FAILING})
    bench.alerts.configure(replace(SETTINGS, matchers=(("cluster", "another"),)))
    assert bench.forgotten == [(2, "DiskSlow")]


def test_an_alert_that_the_policy_names_no_longer_and_a_broker_that_is_gone_are_forgotten(bench: Bench) -> None:
    bench.alerts.receive(body(alert(), alert("NicDown", "3")))
    until(lambda: len(bench.posts) == 2)
    bench.alerts.configure(Alertmanager(alerts=("DiskSlow",), matchers=MAIN))
    assert bench.forgotten == [(3, "NicDown")]
    bench.alerts.refresh({1: HOSTS[1], 3: HOSTS[3]})
    assert bench.forgotten == [(3, "NicDown"), (2, "DiskSlow")]


def test_a_policy_that_names_no_alert_turns_senders_away(bench: Bench) -> None:
    bench.alerts.configure(None)
    with pytest.raises(NotReady):
        bench.alerts.receive(body(alert()))


def test_the_label_is_the_policys(bench: Bench) -> None:
    bench.alerts.configure(Alertmanager(alerts=("DiskSlow",), matchers=MAIN, broker_label="pod"))
    sent = alert(broker=None)
    sent["labels"] |= {"pod": "main-kafka-1", "broker": "2"}
    bench.alerts.receive(body(sent))
    until(lambda: bench.last() == {(1, "DiskSlow"): Reading.FAILING})


def test_an_alert_that_is_not_repeated_becomes_unknown() -> None:
    bench = Bench(forget_after_seconds=0.3)
    bench.begin()
    until(bench.alerts.ready)
    bench.alerts.receive(body(alert()))
    until(lambda: bench.last() == {(2, "DiskSlow"): Reading.UNKNOWN})
    bench.alerts.stop()


def test_what_was_taken_is_told_when_it_ends(bench: Bench) -> None:
    bench.alerts.receive(body(alert()))
    until(lambda: bool(bench.posts))
    bench.alerts.receive(body(alert(status="resolved")))  # within a second of the last: held back
    bench.alerts.stop()
    assert bench.last() == {(2, "DiskSlow"): Reading.PASSING}
    assert not bench.alerts.alive()

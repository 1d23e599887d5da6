from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bellwether.adapters.clocks import SystemClock
from bellwether.core.settings.detection import Alertmanager
from bellwether.core.signals import Signal
from bellwether.probes.alertmanager.alert_receiver import Alerts, NotReady
from bellwether.probes.alertmanager.alert_router import AlertRouter, Named
from bellwether.telemetry.metrics.probe_metrics import ProbeMetrics
from bellwether.telemetry.metrics.webhook_metrics import WebhookMetrics
from waiting import until

A, B, C = ("kafka", "a"), ("kafka", "b"), ("kafka", "c")
OF_A, OF_B = (("cluster", "a"),), (("cluster", "b"),)


def body(*alerts: tuple[str, str], **more: Any) -> bytes:
    sent = [
        {"status": "firing", "labels": {"alertname": name, "cluster": cluster, "broker": "1"}, "fingerprint": f"f{n}"}
        for n, (name, cluster) in enumerate(alerts)
    ]
    return json.dumps({"version": "4", "alerts": sent, **more}).encode()


class Scene:
    """A router, and policies with the brokers that they saw an alert about."""

    def __init__(self, default: Named | None = None) -> None:
        self.lost = 0
        self.router = AlertRouter(default, self._unclaimed)
        self.posts: dict[Named, list[Signal]] = {}
        self.leading: dict[Named, bool] = {}
        self.router.expect(frozenset())

    def _unclaimed(self, alerts: int) -> None:
        self.lost += alerts

    def policy(self, key: Named, settings: Alertmanager | None, *, leading: bool = True) -> Alerts:
        posts = self.posts[key] = []
        self.leading[key] = leading
        alerts = Alerts(
            list,
            lambda: self.leading[key],
            posts.append,
            lambda _broker, _name: None,
            SystemClock(),
            WebhookMetrics(ProbeMetrics()),
        )
        alerts.configure(settings)
        alerts.refresh({1: ()})
        alerts.start()
        if settings is not None and leading:
            until(alerts.ready)
        self.router.add(key, alerts)
        return alerts

    def took(self, key: Named) -> set[str]:
        return {signal.source for signal in self.posts[key]}


SLOW = Alertmanager(alerts=("DiskSlow",), matchers=OF_A)


def test_an_alert_goes_to_the_policy_whose_matchers_it_meets_and_what_nobody_claims_is_counted() -> None:
    scene = Scene()
    scene.policy(A, SLOW)
    scene.policy(B, replace(SLOW, matchers=OF_B))
    scene.policy(C, None)
    scene.router.receive(body(("DiskSlow", "b"), ("DiskSlow", "x"), ("Else", "a")))
    until(lambda: scene.took(B) == {"DiskSlow"})
    assert scene.took(A) == set()
    assert scene.lost == 2


def test_before_the_policies_are_known_a_notification_has_to_be_sent_again() -> None:
    router = AlertRouter(None, lambda _alerts: None)
    with pytest.raises(NotReady, match="policies are not known yet"):
        router.receive(body(("DiskSlow", "b")))


def test_a_notification_is_not_over_before_each_policy_was_asked_and_those_that_are_served_take_it() -> None:
    scene = Scene()
    scene.policy(A, SLOW)
    scene.router.expect(frozenset({A, B}))
    with pytest.raises(NotReady, match="policies are not known yet"):
        scene.router.receive(body(("DiskSlow", "a")))
    until(lambda: scene.took(A) == {"DiskSlow"})
    unknown = Alerts(list, bool, print, print, SystemClock(), WebhookMetrics(ProbeMetrics()))
    scene.router.add(B, unknown)
    with pytest.raises(NotReady, match="settings of a policy are not known yet"):
        scene.router.receive(body(("DiskSlow", "a")))
    unknown.configure(None)
    scene.router.receive(body(("DiskSlow", "a")))


def test_a_policy_without_matchers_takes_only_what_names_it() -> None:
    scene = Scene()
    scene.policy(A, replace(SLOW, matchers=()))
    scene.router.receive(body(("DiskSlow", "b")))
    assert scene.lost == 1
    scene.router.receive(body(("DiskSlow", "b")), A)
    until(lambda: scene.took(A) == {"DiskSlow"})


def test_a_process_for_one_policy_gives_it_what_names_none() -> None:
    scene = Scene(default=A)
    assert scene.router.problems()
    scene.policy(A, replace(SLOW, matchers=()))
    scene.router.receive(body(("DiskSlow", "b")))
    until(lambda: scene.took(A) == {"DiskSlow"})
    assert scene.router.problems() == []


def test_a_policy_that_cannot_take_an_alert_now_has_it_sent_again_and_the_others_take_it_at_once() -> None:
    scene = Scene()
    scene.policy(A, SLOW, leading=False)
    scene.policy(B, SLOW)
    with pytest.raises(NotReady):
        scene.router.receive(body(("DiskSlow", "a")))
    until(lambda: scene.took(B) == {"DiskSlow"})


def test_a_policy_that_takes_nothing_now_delays_no_alert_that_does_not_concern_it() -> None:
    scene = Scene()
    scene.policy(A, SLOW, leading=False)
    scene.policy(B, replace(SLOW, matchers=OF_B))
    scene.router.receive(body(("DiskSlow", "b"), truncatedAlerts=1))
    until(lambda: scene.took(B) == {"DiskSlow"})


def test_a_policy_that_is_not_served_has_its_alerts_sent_again() -> None:
    with pytest.raises(NotReady, match="policy kafka/b is not served"):
        Scene().router.receive(body(("DiskSlow", "a")), B)


def test_it_is_not_ready_from_the_start_until_each_policy_was_asked() -> None:
    router = AlertRouter(None, lambda _alerts: None)
    alerts = Alerts(list, bool, print, print, SystemClock(), WebhookMetrics(ProbeMetrics()))
    alerts.configure(None)

    def refused() -> bool:
        try:
            router.receive(body(("DiskSlow", "a")))
        except NotReady:
            return True
        return False

    for step in (lambda: None, lambda: router.expect(frozenset({A, B})), lambda: router.add(A, alerts)):
        step()
        assert refused()
        assert router.problems() == ["not every policy is served yet"]
    router.add(B, alerts)
    assert not refused()
    assert router.problems() == []


def test_a_policy_that_is_added_later_does_not_take_the_webhook_from_the_others() -> None:
    scene = Scene()
    scene.policy(A, SLOW)
    scene.router.expect(frozenset({A, B}))
    assert scene.router.problems() == []


def test_it_is_ready_while_no_policy_names_alerts_or_one_of_those_that_do_takes_them() -> None:
    scene = Scene()
    assert scene.router.problems() == []
    scene.policy(C, None)
    assert scene.router.problems() == []
    scene.policy(A, SLOW, leading=False)
    assert scene.router.problems() == ["not reporting for any policy now"]
    scene.policy(B, SLOW)
    assert scene.router.problems() == []
    scene.router.remove(B)
    assert scene.router.problems() == ["not reporting for any policy now"]

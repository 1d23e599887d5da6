"""The path of a notification names the policy that it is for, or none."""

from __future__ import annotations

import http.client

from bellwether.adapters.clocks import SystemClock
from bellwether.adapters.webhook_server import Webhook
from waiting import limit


def post(port: int, path: str) -> int:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=limit(10))
    try:
        client.request("POST", path, b"{}")
        return client.getresponse().status
    finally:
        client.close()


def test_a_notification_is_for_the_policy_in_its_path() -> None:
    taken: list[object] = []
    server = Webhook("127.0.0.1", 0, lambda body, policy: taken.append((body, policy)), None, None, SystemClock())
    server.start()
    try:
        paths = ("/alerts", "/alerts/kafka/orders", "/alerts/kafka", "/alerts/kafka/orders/more")
        assert [post(server.port, path) for path in paths] == [200, 200, 404, 404]
    finally:
        server.stop()
    assert taken == [(b"{}", None), (b"{}", ("kafka", "orders"))]

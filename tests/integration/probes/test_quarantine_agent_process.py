"""``bellwether quarantine-agent`` next to a real broker: an order shuts it down and holds it, any end lets it go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bellwether.adapters.kubernetes import object_names
from bellwether.adapters.kubernetes.api_client import LEASES, POLICIES
from bellwether.adapters.kubernetes.objects.quarantine_orders import LeaseOrders
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.quarantine.hold_watchdog import STOPPED, state_of
from testkit.kafka.kafka_site import KafkaSite
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


class Post:
    """Broker 1, its quarantine agent, and a writer of orders in place of the operator."""

    def __init__(self, bench: Any, kafka: KafkaCluster) -> None:
        self.bench, self.kafka, self.number, self.lost = bench, kafka, 0, 0
        self.orders = LeaseOrders(bench.api, bench.namespace, f"{bench.namespace}/main", "a test")
        patch = {"spec": {"quarantine": {"mode": "Enabled"}}}
        bench.api.merge(POLICIES, bench.namespace, "main", patch)
        self.agent = self.start()
        bench.until(lambda: self.word() == "Passing", 60)

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        arguments = [
            "quarantine-agent",
            "--policy",
            "main",
            "-n",
            self.bench.namespace,
            "--lease-namespace",
            self.bench.namespace,
            "--process",
            self.kafka.broker(1).pattern,
            *more,
        ]
        log = self.bench.directory / f"prober-{len(self.bench.processes)}.log"
        with log.open("wb") as out:
            made = subprocess.Popen(
                [sys.executable, "-m", "bellwether", *arguments],
                env={**os.environ, "KUBECONFIG": str(self.bench.server.kubeconfig)},
                stdout=out,
                stderr=out,
            )
        self.bench.processes.append(made)
        return made

    def order(self, *, ended: bool = False) -> None:
        """Give, renew or end the order."""
        now = datetime.now(UTC)  # noqa: TID251 - a person's clock
        end, tomorrow = now if ended else None, now + timedelta(days=1)  # by a clock that cannot be trusted
        given = QuarantineOrder(1, 1, self.number, now, tomorrow, tomorrow, "BrokerHeld", "a test", None, end)
        self.orders.keep({1: given})

    def delete_order(self) -> None:
        """A person deletes the Lease."""
        name = object_names.quarantine_order(self.bench.namespace, "main", 1)
        self.bench.api.delete(LEASES, self.bench.namespace, name)

    def ready_again(self) -> bool:
        """Whether this agent has written its entry, and not the one before it."""
        return bool(self.bench.entry(1).get("message") == "ready")

    def renewed(self) -> bool:
        """Renew the order; whether the broker runs all the same."""
        self.order()
        return not self.held

    def word(self) -> str:
        return str(self.bench.entry(1).get("reading", ""))

    @property
    def held(self) -> bool:
        return state_of(Path("/proc"), self.kafka.broker(1).process.pid) == STOPPED

    def started_again(self) -> None:
        """It ends, is started, and its agent is ready."""
        self.bench.until(self.kafka.broker(1).start_if_ended, 60)
        self.bench.until(lambda: self.word() == "Passing", 40)

    def hold(self) -> None:
        """Give another order and renew it until it is held, and that is written.

        A broker can end before it is stopped, on a busy machine: it is started, and another order is given.
        """

        def obeyed() -> bool:
            if self.kafka.broker(1).start_if_ended():
                self.number, self.lost = self.number + 1, self.lost + 1
            self.order()
            return self.held and self.word() == "Failing"

        self.number += 1
        self.bench.until(obeyed, 60)


@pytest.fixture
def post(bench: Any, breakable_kafka: KafkaCluster) -> Iterator[Post]:
    yield Post(bench, breakable_kafka)
    breakable_kafka.broker(1).restart()


def test_a_broker_is_held_by_an_order_and_runs_again_whatever_ends_it(post: Post) -> None:
    post.hold()
    site = KafkaSite(post.kafka)
    site.eventually(lambda c: c.leaders()[1] == 0 and all(1 not in p.isr for p in c.held_by(1)), 3)
    post.order(ended=True)
    post.started_again()
    post.hold()
    post.started_again()  # no operator renews
    post.hold()
    post.delete_order()
    post.started_again()
    post.hold()
    post.agent.kill()
    post.agent.wait()
    post.bench.until(post.kafka.broker(1).start_if_ended, 60)
    post.kafka.broker(1).pause()
    post.agent = post.start()
    post.bench.until(lambda: not post.held, 90)  # as after a death with its whole container
    post.bench.until(lambda: post.word() == "Passing", 60)
    post.order(ended=True)
    post.agent.send_signal(signal.SIGTERM)
    assert post.agent.wait(limit(60)) == 0, post.bench.logs()
    post.agent = post.start("--max-hold-seconds", "5")
    post.bench.until(post.ready_again, 60)
    post.hold()
    post.bench.until(post.renewed, 60)  # its ceiling, whatever the order says
    post.started_again()
    post.hold()
    post.agent.send_signal(signal.SIGTERM)
    assert post.agent.wait(limit(60)) == 0, post.bench.logs()
    post.bench.until(lambda: not post.kafka.broker(1).process.alive, 60)
    assert post.lost <= 1, "a broker that ends before it can be held is an exception"

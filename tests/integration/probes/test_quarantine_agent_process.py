"""``bellwether quarantine-agent`` beside a real broker: an order pauses it, and its end, or the agent's, wakes it."""

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
from bellwether.adapters.kubernetes.api_client import BROKER_HEALTHS, POLICIES
from bellwether.api.v1alpha1.spec.quarantine_spec import QuarantineStatus
from bellwether.core.model.quarantine_order import QuarantineOrder
from bellwether.quarantine.pause_watchdog import STOPPED, state_of
from waiting import limit

if TYPE_CHECKING:
    from realparts.kafka import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.apiserver, pytest.mark.slow]


class Post:
    """Broker 1, its quarantine agent, and somebody who writes orders as the operator does."""

    def __init__(self, bench: Any, kafka: KafkaCluster) -> None:
        self.bench, self.kafka = bench, kafka
        self.pid = kafka.broker(1).process.pid
        patch = {"spec": {"quarantine": {"mode": "Enabled"}}}
        bench.api.merge(POLICIES, bench.namespace, "main", patch)
        self.agent = self.start()
        bench.until(lambda: self.word() == "Passing", 60)

    def start(self) -> subprocess.Popen[bytes]:
        arguments = [
            "quarantine-agent",
            "--policy",
            "main",
            "-n",
            self.bench.namespace,
            "--broker",
            "1",
            "--pid",
            str(self.pid),
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

    def order(self, number: int, *, ended: bool = False) -> None:
        """Give, renew or end an order."""
        now = datetime.now(UTC)  # noqa: TID251 - a person's clock
        end = now if ended else None
        given = QuarantineOrder(
            1, 1, number, now, now + timedelta(seconds=300), now, "ProcessPaused", "a test", None, end
        )
        self.bench.api.apply(
            BROKER_HEALTHS,
            self.bench.namespace,
            object_names.broker_health("main", 1),
            {"status": {"quarantine": QuarantineStatus.of(given).body()}},
            "bellwether-operator",
            sub="status",
        )

    def word(self) -> str:
        return str(self.bench.entry(1).get("reading", ""))

    @property
    def paused(self) -> bool:
        return state_of(Path("/proc"), self.pid) == STOPPED

    def pause(self, number: int) -> None:
        """Order, and go on renewing until it is paused."""

        def obeyed() -> bool:
            self.order(number)
            return self.paused

        self.bench.until(obeyed, 40)


@pytest.fixture
def post(bench: Any, breakable_kafka: KafkaCluster) -> Iterator[Post]:
    yield Post(bench, breakable_kafka)
    breakable_kafka.broker(1).resume()


def test_a_broker_is_paused_by_an_order_and_runs_again_whatever_ends_it(post: Post) -> None:
    post.pause(1)
    post.bench.until(lambda: post.word() == "Failing", 40)
    post.order(1, ended=True)
    post.bench.until(lambda: not post.paused, 10)
    post.bench.until(lambda: post.word() == "Passing", 40)
    post.pause(2)
    post.bench.until(lambda: not post.paused, 60)  # nobody renews
    post.pause(3)
    post.bench.until(lambda: post.word() == "Failing", 40)  # so that the next one's first word is news
    post.agent.kill()
    post.agent.wait()
    post.bench.until(lambda: not post.paused, 30)
    os.kill(post.pid, signal.SIGSTOP)
    post.agent = post.start()
    post.bench.until(lambda: not post.paused, 90)  # as after a death with its whole container
    post.bench.until(lambda: post.word() == "Passing", 60)
    post.pause(9)
    post.agent.send_signal(signal.SIGTERM)
    assert post.agent.wait(limit(60)) == 0, post.bench.logs()
    assert not post.paused
    post.kafka.broker(1).wait_ready()

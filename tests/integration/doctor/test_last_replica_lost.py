"""The example of ``examples/placement/last-replica-lost`` on real brokers, by its script and by its commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bellwether.core.model.cluster import Partition
from testkit.kafka.kafka_site import KafkaSite
from testkit.kafka.risk_clients import TAKEN, consume, produce
from waiting import ran

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement" / "last-replica-lost"
COMMANDS = re.findall(r"^\$ (.+)$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)


@pytest.fixture
def topic(four: Any) -> Iterator[str]:
    """Two replicas, of which broker 1 is the last in sync; and gone. All is repaired afterwards."""
    from realparts.kafka_topics import create_topics, delete_topics

    name = f"orders{uuid.uuid4().hex[:8]}"
    create_topics(four.bootstrap, {name: 1}, assignments={name: [[1, 2]]})
    yield name
    four.mend()
    delete_topics(four.bootstrap, [name])


def test_last_replica_is_waited_for_or_else_records_are_lost(four: Any, topic: str) -> None:
    site, bootstrap = KafkaSite(four), four.broker(4).internal

    def lose() -> None:
        four.broker(2).stop()
        assert produce(bootstrap, [topic], "all", f"only on 1: {uuid.uuid4()}") == {topic: TAKEN}
        four.broker(1).stop()
        four.broker(2).start()
        site.eventually(lambda c: any(p.topic == topic and p.leader is None for p in c.partitions) and 2 in c.live)

    def run(command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        noted = command.replace("BOOTSTRAP", bootstrap).replace("orders", topic).replace(" 600", " 60")
        environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        return ran(noted.split(), cwd=EXAMPLE, env=environment, input=typed)

    look, wait, elect = COMMANDS
    lose()
    seen = run(look)
    assert seen.returncode == 5, seen.stderr
    assert f"{topic}-0: LastIsrMemberLost" in seen.stdout
    assert "start broker 1: it can lead the offline partition without data loss" in seen.stdout
    assert run(wait.replace("600", "0")).returncode == 5

    four.broker(1).process.start()
    waited = run(wait)
    assert waited.returncode == 0, waited.stdout
    site.eventually(lambda c: _isr(c.partitions, topic) == {1, 2})
    before = consume(bootstrap, [topic], [topic], 60)[topic]
    assert len(before) == 1  # waiting has lost nothing

    lose()
    refused = run(elect, typed="yes\n")
    assert refused.returncode == 3
    assert "nothing was changed" in refused.stderr
    elected = run(elect, typed=f"{topic}-0\n")
    assert elected.returncode == 0, elected.stderr
    assert "the loss is unknown" in elected.stdout
    assert f"{topic}-0: leader is now broker 2; class AtMinIsr" in elected.stdout
    assert consume(bootstrap, [topic], [topic], 60)[topic] == before
    four.broker(1).start()
    site.eventually(lambda c: _isr(c.partitions, topic) == {1, 2})
    assert consume(bootstrap, [topic], [topic], 60)[topic] == before  # what broker 1 had beyond is lost


def _isr(partitions: tuple[Partition, ...], topic: str) -> set[int]:
    return {b for p in partitions if p.topic == topic for b in p.isr}

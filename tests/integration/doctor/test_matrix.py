"""Every failure of a partition's replicas, step by step: two and three of them, one and two that must be in sync.

Brokers are shut down or killed, with eligible leader replicas (KIP-966) and without. In each state every topic is
written to with acks=1 and acks=all, read, and a preferred leader is elected: all of it must be as the doctor says.
``docs/internals/doctor-matrix.md`` is the table that comes of it; ``--update-golden`` rewrites it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

from bellwether.core.doctor.risks import Risk
from bellwether.core.model.cluster import TopicPartition
from realparts.kafka import KafkaCluster
from testkit.kafka.risk_matrix import ELECTED, LOWERED, TRAPPED, Walk, table

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[3] / "docs" / "internals" / "doctor-matrix.md"
# The default is 9 s: the same, sooner.
SESSION = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[KafkaCluster, bool]]:
    features = {"eligible.leader.replicas.version": request.param}
    with KafkaCluster(4, controllers=1, proxied=False, properties=SESSION, features=features) as kafka:
        yield kafka, bool(request.param)


@pytest.mark.parametrize(
    ("cluster", "killed"),
    [
        pytest.param(1, False, id="with ELR, shut down"),
        pytest.param(1, True, id="with ELR, killed"),
        pytest.param(0, False, id="without ELR, shut down"),
        pytest.param(0, True, id="without ELR, killed"),
    ],
    indirect=["cluster"],
)
def test_in_every_state_the_brokers_do_what_the_doctor_says(
    cluster: tuple[KafkaCluster, bool], killed: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    kafka, elr = cluster
    walk = Walk(kafka, elr, killed, tmp_path)
    walk.create()
    clean = elr and not killed  # who left the ISR below the floor is eligible, and still is once it is back
    struck = elr and killed

    walk.step("all three live", "SSSASSSS")
    walk.lose(3)
    walk.step("3 lost", "UASAUAAA")

    # Case 1: the leader dies.
    walk.lose(1)
    if killed:
        walk.glimpse("3 lost, 1 lost a moment ago", "LLLLLLLL")
    walk.step("3 and 1 lost (case 1)", "AMAMAMMM")
    walk.set_floor(LOWERED, 1)
    walk.step("3 and 1 lost, min.insync.replicas lowered", "AMAMAMAM")

    # Case 2: the next one dies, too. c) it is the first to be back.
    walk.lose(2)
    alone = walk.step("all lost (case 2)", "XXXXXXXX")
    walk.start(2)
    walk.returned(alone, 2)
    walk.step("all lost, 2 back (case 2c)", "ANANANAN" if struck else "AMAMAMAM")
    before = walk.examined()
    walk.start(1)
    walk.returned(before, 1)
    walk.set_floor(LOWERED, 2)
    walk.reach("UASAUAAA")
    walk.led_by(1)
    walk.step("all lost, 2 and 1 back", "UASAUAAA")

    # Case 3: both at the same moment.
    walk.lose(1, 2)
    both = walk.reach("XXXXXXXX")
    (last,) = both.of(TopicPartition(walk.topic("rf2-min1"), 0)).awaited
    other = 3 - last
    walk.call({last: "y", other: "x"})
    both = walk.step("x and y lost at once (case 3)", "XXXXXXXX")
    walk.start(last)
    walk.returned(both, last)
    either = walk.step("x and y lost at once, y back", "ANANANNN" if struck else "AMAMAMMM")
    walk.start(other)
    walk.returned(either, other)
    walk.call({})
    walk.reach("UASAUAAA")
    walk.led_by(1)
    walk.step("x and y lost at once, both back", "UASAUAAA")

    # Case 2 again: d) who was out of the ISR comes first, b) then who was not the last in it, a) then all.
    walk.lose(1)
    walk.reach("AMAMAMMM")
    walk.write("before the sample", "1", patience=4)
    walk.sample()
    walk.write("after the sample", "1", patience=4)
    reached = walk.ends(2)
    walk.lose(2)
    dead = walk.reach("XXXXXXXX")
    if elr:
        walk.set_floor(TRAPPED.name, 1)
        dead = walk.examined()
    walk.start(3)
    walk.returned(dead, 3)
    stranger = walk.step("all lost, 3 back (case 2d)", "NNXXNNNN")
    losses = _elect_uncleanly(walk, reached)
    freed = walk.step("all lost, 3 back, elected uncleanly", "NNXXAMNN")
    walk.start(1)
    walk.returned(freed, 1)
    third = walk.step("all lost, 3 and 1 back (case 2b)", "NANMUAAN" if clean else "NNNNUANN")
    walk.start(2)
    walk.returned(third, 2)
    walk.step("all lost, all back (case 2a)", "SSSASSSN")
    if elr:
        _choose_the_furthest_log(walk)
        walk.step("all lost, all back, the furthest log chosen", "SSSASSSS")
    assert stranger.risk_summary.counts[Risk.LAST_ISR_MEMBER_LOST] == (6 if elr else 5)
    _nothing_is_lost_but_what_was_said(walk, losses, clean=clean)
    _the_page_holds(walk, request.config.getoption("update_golden"))


def _elect_uncleanly(walk: Walk, reached: dict[str, int]) -> dict[str, int]:
    """By the doctor's own command, and no other way; the offsets that are lost, by topic."""
    lost = {}
    for case in ELECTED:
        topic = walk.topic(case)
        name = f"{topic}-0"
        shown = walk.doctor("--unclean-election", name)
        assert shown.exit_code == 3, shown.output
        assert "to accept this loss, add --accept-loss" in shown.output
        refused = walk.doctor("--unclean-election", name, "--accept-loss", typed="yes\n")
        assert refused.exit_code == 3, refused.output
        assert walk.examined().of(TopicPartition(topic, 0)).partition.leader is None
        candidate_end = walk.ends(3)[topic]
        done = walk.doctor("--unclean-election", name, "--accept-loss", typed=f"{name}\n")
        assert done.exit_code == 0, done.output
        assert f"{name}: leader is now broker 3" in done.output
        (least,) = re.findall(r"at least (\d+) offsets are lost, and everything written after the sample", done.output)
        lost[topic] = reached[topic] - candidate_end
        # One record came after the sample: the bound holds, and is as near as it can be.
        assert int(least) == lost[topic] - 1
    led = walk.doctor("--unclean-election", f"{walk.topic(ELECTED[0])}-0", "--accept-loss", typed="x\n")
    assert led.exit_code == 3
    assert "is not needed: its leader is" in led.output
    return lost


def _choose_the_furthest_log(walk: Walk) -> None:
    """Kafka has forgotten who may lead, though all are back: the doctor tells whose log reaches furthest."""
    name = TopicPartition(walk.topic(TRAPPED.name), 0)
    found = walk.examined().of(name)
    assert found.awaited == ()
    assert (found.loss.candidate if found.loss else None, found.further and found.further[0]) == (1, 2)
    assert "put it first in the order to lose less" in walk.doctor("--unclean-election", str(name)).output
    walk.reorder(name, (2, 1, 3))
    done = walk.doctor("--unclean-election", str(name), "--accept-loss", typed=f"{name}\n")
    assert done.exit_code == 0, done.output
    assert f"{name}: leader is now broker 2" in done.output


def _nothing_is_lost_but_what_was_said(walk: Walk, losses: dict[str, int], *, clean: bool) -> None:
    shown = walk.shown()
    for topic in walk.topics:
        there = set(shown[topic])
        missing = [value for value in walk.written[topic] if value not in there]
        unsure = [value for value in walk.unsure[topic] if value not in there]
        if walk.case(topic) in ELECTED:
            known = len(missing) + len(unsure)
            late = [value for value in walk.unanswered[topic] if value not in there]
            assert known <= losses[topic] <= known + len(late)
            assert {"before the sample", "after the sample"} <= set(unsure)
            continue
        assert missing == [], f"{topic}: acknowledged to acks=all, and lost"
        # Taken with acks=1 under the floor, by 2 alone; an eligible replica led before 2 was back.
        truncated = clean and walk.case(topic) in ("rf3-min2", "rf2-min2", LOWERED)
        assert bool(unsure) == truncated, f"{topic}: {unsure}"
        if truncated:
            assert {"before the sample", "after the sample"} <= set(unsure)


def _the_page_holds(walk: Walk, update: bool) -> None:
    """The table of this walk is in the page as it came out."""
    kept = "with eligible leader replicas" if walk.elr_enabled else "without eligible leader replicas"
    section = f"## Brokers {'killed' if walk.killed else 'shut down'}, {kept}\n\n{table(walk.rows)}\n"
    text = PAGE.read_text(encoding="utf-8")
    heading = section.partition("\n")[0]
    begins = text.find(heading)
    ends = text.find("\n## ", begins + 1) + 1 if begins >= 0 else 0
    if update:
        before, after = (text, "") if begins < 0 else (text[:begins], text[ends:] if ends else "")
        PAGE.write_text(f"{before.rstrip()}\n\n{section}{chr(10) if after else ''}{after}", encoding="utf-8")
        return
    assert begins >= 0, f"{PAGE.name} has no section {heading!r}; write it with --update-golden"
    differing = [
        pair
        for pair in zip_longest(
            (text[begins:ends] if ends else text[begins:]).strip().splitlines(), section.strip().splitlines()
        )
        if pair[0] != pair[1]
    ]
    assert differing == [], f"(in {PAGE.name}, seen now)"

"""A disk against its peers: what slows one is one broker's, what slows all is none's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bellwether.core.detection.findings import Finding, SignalIndex
from bellwether.core.detection.health_states import Evidence, HealthState
from bellwether.core.detection.storage import SLOW_SEVERITY, STALLED_SEVERITY, read_latency, storage_latency
from bellwether.core.detection.verdicts import judge
from bellwether.core.model.history.harm_history import HarmCause, HarmHistory
from bellwether.core.model.history.move_cost import MoveCost
from bellwether.core.reasons import Reason
from bellwether.core.settings.detection import Detection
from bellwether.core.settings.harm import SLOW_SYNC_SECONDS
from bellwether.core.settings.policy import Policy
from bellwether.core.signals import Harm, Reading, Signal, SignalType
from testkit.messages import assert_wording
from testkit.values.builders import cluster, demoted, partition, record, signal, snapshot

GOOD, BAD = Reading.PASSING, Reading.FAILING


def disk(
    broker: int,
    reading: Reading,
    milliseconds: float | None,
    source: str = "",
    age: float | None = 0,
    lost: float = 20.0,
) -> Signal:
    made = signal(
        broker,
        reading,
        kind=SignalType.STORAGE_LATENCY,
        source=source or f"broker-{broker}",
        latency_seconds=None if milliseconds is None else milliseconds / 1000,
        age_seconds=age,
    )
    harm = Harm(lost, 1.0, made.since) if reading is BAD else None
    return replace(made, message=f"{milliseconds} ms", harm=harm)


def of_one(*signals: Signal, fenced: tuple[int, ...] = ()) -> Finding:
    seen = cluster(partition(), fenced=fenced)
    return storage_latency(1, SignalIndex.of(snapshot(seen, *signals), Detection()))


@pytest.mark.parametrize(
    ("peers", "evidence", "reason"),
    [
        pytest.param([0, 0], Evidence.BAD, Reason.STORAGE_SLOW, id="its peers lose nothing"),
        pytest.param([9, 0], Evidence.BAD, Reason.STORAGE_SLOW, id="one peer loses less than half"),
        pytest.param([20, 19], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="all lose as much"),
        pytest.param([20, 12], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="its peers lose more than half"),
        pytest.param([], Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="no peer to compare with"),
    ],
)
def test_harm_of_slow_disk_is_compared_with_its_peers(peers: list[float], evidence: Evidence, reason: Reason):
    others = [disk(n, BAD if lost else GOOD, 80, lost=lost) for n, lost in enumerate(peers, 2)]
    found = of_one(disk(1, BAD, 80), *others)
    assert (found.evidence, found.reason) == (evidence, reason)


@pytest.mark.parametrize(("peers", "reason"), [(3.0, Reason.STORAGE_SLOW), (3.9, Reason.SYSTEMIC_CAUSE)])
def test_what_disk_loses_beyond_its_peers_must_be_worth_move(peers: float, reason: Reason):
    others = [disk(n, BAD, 80, lost=peers) for n in (2, 3)]
    assert of_one(disk(1, BAD, 80, lost=8.0), *others).reason is reason  # the limit is 4.6 s


@pytest.mark.parametrize(
    ("lost", "evidence", "reason"),
    [
        (0.9, Evidence.GOOD, Reason.SIGNALS_PASSING),
        (1.0, Evidence.DOUBTFUL, Reason.HARM_BELOW_COST),
        (2.2, Evidence.DOUBTFUL, Reason.HARM_BELOW_COST),
        (4.5, Evidence.DOUBTFUL, Reason.HARM_BELOW_COST),
        (4.7, Evidence.BAD, Reason.STORAGE_SLOW),
    ],
)
def test_broker_is_sick_once_loss_is_twice_cost_of_move(lost: float, evidence: Evidence, reason: Reason):
    found = of_one(disk(1, BAD, 80, lost=lost), disk(2, GOOD, 1))
    assert (found.evidence, found.reason) == (evidence, reason)


def test_a_cluster_whose_disks_stay_slow_has_a_lower_limit():
    seen = snapshot(cluster(partition()), disk(1, BAD, 80, lost=1.2), disk(2, GOOD, 1))
    known = replace(seen, harm_history=HarmHistory({HarmCause.STORAGE: (90.0, 40.0, 200.0)}))
    found = storage_latency(1, SignalIndex.of(known, Detection()))
    assert (found.evidence, found.reason) == (Evidence.BAD, Reason.STORAGE_SLOW)
    assert_wording(found.message)


def test_demoted_broker_with_failing_disk_is_not_well_however_cheap():
    seen = snapshot(cluster(partition()), disk(1, BAD, 80, lost=0.5), disk(2, GOOD, 1), undo=record(None, demoted(1)))
    assert storage_latency(1, SignalIndex.of(seen, Detection())).evidence is Evidence.DOUBTFUL


def test_tolerance_multiplies_the_cost():
    seen = snapshot(cluster(partition()), disk(1, BAD, 80), disk(2, GOOD, 1))
    found = storage_latency(1, SignalIndex.of(seen, Detection(tolerance=20)))
    assert (found.reason, found.signal) == (Reason.HARM_BELOW_COST, SignalType.STORAGE_LATENCY)


def test_harm_that_has_just_ended_moves_nothing():
    over = replace(disk(1, BAD, 80), harm=Harm(5.0, 0.9, disk(1, BAD, 80).since, ongoing=False))
    found = of_one(over, disk(2, GOOD, 1))
    assert (found.evidence, found.reason) == (Evidence.DOUBTFUL, Reason.HARM_BELOW_COST)
    assert_wording(found.change)


def test_a_demoted_broker_stays_sick_between_two_lost_requests():
    over = replace(disk(1, BAD, 80), harm=Harm(5.0, 0.9, disk(1, BAD, 80).since, ongoing=False))
    seen = snapshot(cluster(partition()), over, disk(2, GOOD, 1), undo=record(None, demoted(1)))
    assert storage_latency(1, SignalIndex.of(seen, Detection())).evidence is Evidence.BAD


def test_a_costly_move_is_not_made_for_little_harm():
    seen = replace(snapshot(cluster(partition()), disk(1, BAD, 80), disk(2, GOOD, 1)), move_cost=MoveCost(60, 3))
    found = storage_latency(1, SignalIndex.of(seen, Detection()))
    assert found.reason is Reason.HARM_BELOW_COST
    assert_wording(found.message)


def test_coordinators_make_a_move_more_costly():
    seen = snapshot(cluster(replace(partition(), internal=True)), disk(1, BAD, 80, lost=5.0), disk(2, GOOD, 1))
    found = storage_latency(1, SignalIndex.of(seen, Detection()))
    assert (found.reason, "about 4 s (assumed)" in found.message) == (Reason.HARM_BELOW_COST, True)


def test_message_says_what_clients_lost_and_what_move_costs():
    found = of_one(disk(1, BAD, 80), disk(2, GOOD, 1))
    assert_wording(found.message)


def test_silent_and_dead_peers_are_no_peers_to_compare_with():
    stale, fenced = disk(2, BAD, 80, age=99), disk(3, BAD, 80)
    assert of_one(disk(1, BAD, 80), stale, fenced, fenced=(3,)).evidence is Evidence.DOUBTFUL


def test_a_disk_that_only_ends_in_errors_is_stalled():
    found = of_one(disk(1, BAD, None), disk(2, GOOD, 1), disk(3, GOOD, 1))
    assert (found.evidence, found.severity) == (Evidence.BAD, STALLED_SEVERITY)


def test_a_failing_signal_without_figures_counts_as_the_largest_harm():
    found = of_one(replace(disk(1, BAD, 80), harm=None), disk(2, GOOD, 1))
    assert found.evidence is Evidence.BAD


@pytest.mark.parametrize(("milliseconds", "severity"), [(80, SLOW_SEVERITY), (5000, STALLED_SEVERITY)])
def test_a_stalled_disk_is_more_severe_than_a_slow_one(milliseconds: float, severity: int):
    assert of_one(disk(1, BAD, milliseconds), disk(2, GOOD, 1)).severity == severity


def test_the_worst_of_several_directories_counts():
    found = of_one(disk(1, GOOD, 1, "data-0"), disk(1, BAD, 400, "data-1"), disk(2, GOOD, 1))
    assert found.evidence is Evidence.BAD
    assert "400 ms" in found.message


def test_of_several_slow_directories_the_slowest_counts():
    found = of_one(disk(1, BAD, 80, "data-0"), disk(1, BAD, 5000, "data-1"), disk(2, GOOD, 1))
    assert found.severity == STALLED_SEVERITY
    assert "5000 ms" in found.message


def test_silent_prober_is_missed_and_its_reports_do_not_count():
    found = of_one(disk(1, BAD, 80, age=99), disk(2, GOOD, 1))
    assert found.evidence == Evidence.MISSING
    assert_wording(found.message, found.facts[0].ignored_because)


def test_facts_carry_what_is_usual():
    slow = replace(disk(1, BAD, 80), usual_seconds=0.002)
    assert_wording(of_one(slow, disk(2, GOOD, 1.5)).facts[0].message)


def test_a_good_disk_says_what_would_make_it_slow():
    assert_wording(of_one(disk(1, GOOD, 1)).change)


def syncing(*seconds: float | None) -> list[Signal]:
    """Brokers from 1 on whose appends are fast, and whose syncs take so long."""
    return [replace(disk(broker, GOOD, 1), value=value) for broker, value in enumerate(seconds, 1)]


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        ((2.0, 0.01, 0.01), Reason.SYNCS_SLOW),
        ((SLOW_SYNC_SECONDS, 0.01, 0.01), Reason.SYNCS_SLOW),
        ((0.1, 0.001, 0.001), Reason.SIGNALS_PASSING),
        ((2.0, 1.5, 1.5), Reason.SIGNALS_PASSING),
        ((None, 0.01, 0.01), Reason.SIGNALS_PASSING),
    ],
    ids=["far slower", "as slow as the limit", "not slow", "as slow as its peers", "not measured"],
)
def test_slow_syncs_alone_raise_doubt_without_harm(seconds: tuple[float | None, ...], reason: Reason):
    found = of_one(*syncing(*seconds))
    slow = reason is Reason.SYNCS_SLOW
    assert (found.reason, found.evidence) == (reason, Evidence.DOUBTFUL if slow else Evidence.GOOD)
    assert found.severity == 0
    assert ("no client waits for a sync" in found.message) is slow


def test_a_verdict_follows_the_syncs_of_the_peers():
    policy, slow_everywhere = Policy(name="main"), snapshot(None, *syncing(2.0, 2.0, 2.0))
    before = judge(slow_everywhere, policy, {})
    assert before[1].state is HealthState.HEALTHY
    assert judge(snapshot(None, *syncing(2.0, 0.01, 0.01)), policy, before)[1].reason is Reason.SYNCS_SLOW


def reads(*signals: Signal, asked: bool = False) -> Finding | None:
    """Judge the reads of broker 1: the same signals, of reads instead of writes."""
    made = [replace(s, type=SignalType.READ_LATENCY) for s in signals]
    return read_latency(1, SignalIndex.of(snapshot(cluster(partition()), *made), Detection()), asked=asked)


@pytest.mark.parametrize(
    ("lost", "peers", "evidence", "reason"),
    [
        pytest.param(0.9, 0, Evidence.GOOD, Reason.SIGNALS_PASSING, id="less than a third of the cost"),
        pytest.param(2.0, 0, Evidence.DOUBTFUL, Reason.HARM_BELOW_COST, id="less than the cost"),
        pytest.param(9.0, 0, Evidence.BAD, Reason.READS_SLOW, id="more than the cost"),
        pytest.param(9.0, 9, Evidence.DOUBTFUL, Reason.SYSTEMIC_CAUSE, id="its peers lose as much"),
    ],
)
def test_reads_are_weighed_like_writes(lost: float, peers: float, evidence: Evidence, reason: Reason):
    found = reads(disk(1, BAD, 80, lost=lost), disk(2, BAD if peers else GOOD, 80, lost=peers))
    assert found is not None
    assert (found.evidence, found.reason) == (evidence, reason)


def test_slow_writes_of_the_peers_are_no_shared_cause_of_slow_reads():
    slow = replace(disk(1, BAD, 80), type=SignalType.READ_LATENCY)
    fast = replace(disk(2, GOOD, 1), type=SignalType.READ_LATENCY)
    index = SignalIndex.of(snapshot(cluster(partition()), slow, fast, disk(2, BAD, 80)), Detection())
    found = read_latency(1, index, asked=False)
    assert found is not None
    assert found.evidence is Evidence.BAD


def test_a_message_about_slow_reads_says_so():
    found = reads(disk(1, BAD, 80), disk(2, GOOD, 1))
    assert found is not None
    assert_wording(found.message, found.change)


def test_without_a_reader_there_is_no_finding():
    assert reads() is None


@pytest.mark.parametrize("reading", [Reading.UNKNOWN, Reading.FAILING])
def test_unknown_reads_raise_doubt_only_if_slow_reads_demoted(reading: Reading):
    unknown = disk(1, reading, 80, age=0 if reading is Reading.UNKNOWN else 99)
    found, asked = reads(unknown, disk(2, GOOD, 1)), reads(unknown, disk(2, GOOD, 1), asked=True)
    assert found is not None
    assert asked is not None
    assert (found.evidence, asked.evidence) == (Evidence.GOOD, Evidence.MISSING)

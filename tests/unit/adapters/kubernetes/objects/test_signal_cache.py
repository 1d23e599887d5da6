"""Evidence is aged on the reader's clock, from the renewals that the reader itself saw (invariant 5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bellwether.adapters.kubernetes.objects.signal_cache import GONE_SECONDS, SignalCache
from bellwether.core.settings.detection import Detection
from bellwether.core.signals import Reading, SignalType, SourceSignals
from testkit.messages import assert_wording

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class HandClock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return START

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def book(clock: HandClock) -> SignalCache:
    return SignalCache(clock)


def entry(**changed: Any) -> dict[str, Any]:
    return {
        "type": "ExternalReachability",
        "source": "zone-a",
        "reading": "Failing",
        "control": "Passing",
        "since": "2026-01-02T03:04:05Z",
        "proberUID": "prober-1",
        "sequence": 1,
        "leaseName": "lease-a",
        **changed,
    }


def health(*entries: Any, broker: Any = 1, override: Any = None) -> dict[str, Any]:
    spec = {"brokerId": broker, **({"override": override} if override is not None else {})}
    return {"metadata": {"name": f"main-{broker}"}, "spec": spec, "status": {"signals": list(entries)}}


def lease(seconds: float, holder: str = "prober-1") -> dict[str, Any]:
    # The prober's own clock is hours away from ours, without effect.
    renewed = START - timedelta(hours=5) + timedelta(seconds=seconds)
    spec = {"holderIdentity": holder, "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    return {"metadata": {"name": "lease-a"}, "spec": spec}


def age(book: SignalCache) -> float | None:
    (signal,) = book.signals()
    return signal.age_seconds


def test_after_start_entry_has_no_age_until_its_lease_advances(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    assert age(book) is None
    assert not book.on_lease(lease(0))
    assert age(book) is None
    clock.seconds += 2
    assert book.on_lease(lease(2)), "evidence turned fresh: that is news"
    assert age(book) == 0
    clock.seconds += 7
    assert age(book) == 7


def test_the_same_renewal_seen_twice_keeps_nothing_fresh(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease(lease(0))
    clock.seconds += 2
    book.on_lease(lease(2))
    clock.seconds += 30
    assert not book.on_lease(lease(2))
    assert age(book) == 30


def test_advance_delivered_late_by_broken_watch_keeps_its_age(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease(lease(0))
    clock.seconds += 600
    book.on_lease(lease(4))
    assert age(book) == 596


def test_a_prober_whose_clock_was_set_back_is_still_heard(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease(lease(100))
    clock.seconds += 2
    book.on_lease(lease(-50))
    assert age(book) == 0


def test_another_holder_of_the_lease_does_not_freshen_the_entry(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease(lease(0))
    clock.seconds += 2
    book.on_lease(lease(2, holder="prober-2"))
    assert age(book) is None
    book.on_broker_health(health(entry(proberUID="prober-2", sequence=1)))
    assert age(book) == 0


def test_a_lease_that_is_gone_leaves_no_evidence(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease(lease(0))
    clock.seconds += 2
    book.on_lease(lease(2))
    assert book.on_lease_gone(lease(2))
    assert age(book) is None


@pytest.mark.parametrize("renew_time", [None, "", "yesterday"])
def test_a_lease_without_a_readable_time_breaks_nothing(book: SignalCache, renew_time: Any) -> None:
    book.on_broker_health(health(entry()))
    book.on_lease({"metadata": {"name": "lease-a"}, "spec": {"holderIdentity": "prober-1", "renewTime": renew_time}})
    book.on_lease({"metadata": {"name": "lease-a"}})
    assert age(book) is None


def test_only_news_is_news(book: SignalCache) -> None:
    assert book.on_broker_health(health(entry()))
    assert not book.on_broker_health({**health(entry()), "metadata": {"name": "main-1", "resourceVersion": "9"}})
    assert book.on_broker_health(health(entry(reading="Passing")))
    assert book.on_broker_health_gone(health())
    assert not book.on_broker_health_gone(health())
    assert book.signals() == ()


def test_bad_entries_are_skipped_and_named(book: SignalCache) -> None:
    good, newer = entry(source="zone-b"), entry(type="not a name")
    book.on_broker_health(health(newer, entry(reading="Perhaps"), entry(since="yesterday"), "nonsense", good))
    assert [s.source for s in book.signals()] == ["zone-b"]
    assert len(book.problems()) == 4
    assert all(text.startswith("brokerhealth main-1: status.signals[") for text in book.problems())


def test_a_bad_override_is_named_and_holds_nothing(book: SignalCache) -> None:
    book.on_broker_health(health(entry(), override={"state": "Paused", "reason": "x"}))
    book.on_broker_health(health(broker=2, override={"state": "Demoted", "reason": "disk swap", "by": "ann"}))
    (override,) = book.overrides()
    assert (override.broker, override.reason, override.until) == (2, "disk swap (ann)", None)
    assert len(book.signals()) == 1
    (problem,) = book.problems()
    assert "spec.override is ignored: state" in problem


def test_an_object_without_a_broker_is_named(book: SignalCache) -> None:
    book.on_broker_health({"metadata": {"name": "main-x"}, "spec": {}})
    assert book.signals() == ()
    assert_wording(book.problems())


def versioned(found: dict[str, Any], version: int) -> dict[str, Any]:
    return {**found, "metadata": {**found["metadata"], "resourceVersion": str(version)}}


DEMOTED = {"state": "Demoted", "reason": "trying"}


def test_a_list_older_than_the_watch_restores_no_override(
    book: SignalCache,
) -> None:
    assert book.on_broker_health(versioned(health(override=DEMOTED), 10))
    assert book.on_broker_health(versioned(health(), 12))
    assert not book.on_broker_health(versioned(health(override=DEMOTED), 11))
    assert book.overrides() == ()


def test_nor_does_it_bring_a_deleted_object_back(book: SignalCache) -> None:
    book.on_broker_health(versioned(health(override=DEMOTED), 10))
    assert book.on_broker_health_gone(versioned(health(override=DEMOTED), 12))
    assert not book.on_broker_health(versioned(health(override=DEMOTED), 10))
    assert book.overrides() == ()
    assert book.on_broker_health(versioned(health(override=DEMOTED), 13)), "made again"


def test_the_generation_of_a_brokers_spec_goes_with_its_override(book: SignalCache):
    first, later, unread = health(), health(override=DEMOTED), health(broker="two")
    for body, generation in ((first, 1), (later, 2), (unread, 1)):
        body["metadata"]["generation"] = generation
    book.on_broker_health(first)
    assert book.generations() == {1: 1}
    book.on_broker_health(later)
    book.on_broker_health(unread)
    assert (book.generations(), [o.broker for o in book.overrides()]) == ({1: 2}, [1])


def test_a_new_generation_is_news_even_with_an_equal_spec(book: SignalCache):
    first, later = health(), health()
    first["metadata"]["generation"], later["metadata"]["generation"] = 1, 2
    assert (book.on_broker_health(first), book.on_broker_health(first), book.on_broker_health(later)) == (
        True,
        False,
        True,
    )


@pytest.mark.parametrize(
    ("said", "by"),
    [({"by": "ann"}, "ann"), ({}, "field manager kubectl-patch")],
    ids=["the author names herself", "the API server names the program"],
)
def test_an_override_names_its_author(book: SignalCache, said: dict[str, str], by: str) -> None:
    body = health(override={"state": "Demoted", "reason": "disk", **said})
    fields = {"f:spec": {"f:override": {"f:reason": {}}}}
    body["metadata"]["managedFields"] = [{"manager": "kubectl-patch", "fieldsV1": fields}]
    book.on_broker_health(body)
    (override,) = book.overrides()
    assert override.by == by


def test_objects_that_come_and_go_leave_nothing_behind(book: SignalCache, clock: HandClock) -> None:
    for broker in range(1000):
        book.on_broker_health(versioned(health(entry(), broker=broker), 2 * broker + 1))
        book.on_broker_health_gone(versioned(health(entry(), broker=broker), 2 * broker + 2))
        clock.seconds += GONE_SECONDS / 10
    assert len(book._versions) <= 12
    assert len(book._gone) <= 12


def test_returned_object_is_not_forgotten_with_its_predecessor(book: SignalCache, clock: HandClock) -> None:
    book.on_broker_health(versioned(health(entry(), broker=1), 1))
    book.on_broker_health_gone(versioned(health(entry(), broker=1), 2))
    book.on_broker_health(versioned(health(entry(), broker=1), 9))
    clock.seconds += 2 * GONE_SECONDS
    book.on_broker_health(versioned(health(entry(), broker=2), 10))
    book.on_broker_health_gone(versioned(health(entry(), broker=2), 11))
    assert not book.on_broker_health(versioned(health(entry(), broker=1), 8)), "still older than what is known"


class TestWhatAReconcileWouldJudge:
    @pytest.fixture(autouse=True)
    def heard(self, book: SignalCache) -> None:
        book.on_broker_health(health(entry()))
        book.on_lease(lease(0))
        book.on_lease(lease(1))

    def test_it_stays_the_same_while_a_signal_only_ages(self, book: SignalCache, clock: HandClock) -> None:
        before = book.judged(Detection())
        clock.seconds += 1
        book.on_broker_health(health(entry()))
        assert book.judged(Detection()) == before

    def test_it_changes_as_a_signal_becomes_stale_and_fresh_again(self, book: SignalCache, clock: HandClock) -> None:
        fresh = book.judged(Detection())
        clock.seconds += 1000
        assert book.judged(Detection()) != fresh
        book.on_lease(lease(1001))
        assert book.judged(Detection()) == fresh

    @pytest.mark.parametrize(
        "change",
        [
            lambda book: book.on_broker_health(health(entry(reading="Passing"))),
            lambda book: book.on_broker_health(health(entry(), entry(source="zone-b"))),
            lambda book: book.on_broker_health(health(entry(), broker=2)),
            lambda book: book.on_broker_health_gone(health(entry())),
            lambda book: book.on_lease_gone(lease(1)),
        ],
        ids=["reading", "source", "broker", "object gone", "Lease gone"],
    )
    def test_it_changes_with_what_probers_report(self, book: SignalCache, change: Any) -> None:
        before = book.judged(Detection())
        change(book)
        assert book.judged(Detection()) != before

    def test_signals_that_the_policy_does_not_judge_are_left_out(self, book: SignalCache) -> None:
        before = book.judged(Detection())
        book.on_broker_health(health(entry(), entry(type="example.com/Unheard", source="x")))
        assert book.judged(Detection()) == before


class TestSources:
    def test_each_source_has_its_age_and_counts_what_it_reports(self, book: SignalCache, clock: HandClock) -> None:
        book.on_broker_health(health(entry(), entry(source="zone-b", leaseName="lease-b")))
        book.on_broker_health(health(entry(reading="Passing"), broker=2))
        book.on_broker_health(health(entry(), broker=3))
        book.on_lease(lease(0))
        book.on_lease(lease(1))
        clock.seconds += 3
        kind = SignalType.EXTERNAL_REACHABILITY
        assert book.sources() == (
            SourceSignals(kind, "zone-a", 3.0, {Reading.FAILING: 2, Reading.PASSING: 1}),
            SourceSignals(kind, "zone-b", None, {Reading.FAILING: 1}),
        )

    def test_a_changed_entry_is_counted_as_it_is_now(self, book: SignalCache) -> None:
        book.on_broker_health(health(entry()))
        assert [s.readings for s in book.sources()] == [{Reading.FAILING: 1}]
        book.on_broker_health(health(entry(reading="Passing")))
        assert [s.readings for s in book.sources()] == [{Reading.PASSING: 1}]

"""Any ``status.signals``: no broker is demoted that the policy's own sources do not find sick (invariant 5)."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bellwether.adapters.kubernetes.objects.signal_cache import SignalCache
from bellwether.api.v1alpha1.status.signal_entries import SIGNAL_LIMIT
from bellwether.core.demotion.decisions import decide
from bellwether.core.detection.context import Context
from bellwether.core.detection.verdicts import judge
from bellwether.core.settings.detection import Detection, Reachability
from bellwether.core.settings.policy import Demotion, Mode, Policy
from bellwether.simulation.memory_world import ManualClock
from testkit.kubernetes import api_objects
from testkit.values.builders import cluster, partition, snapshot

POLICY = Policy(
    name="main",
    mode=Mode.ENFORCE,
    demotion=Demotion(dwell_seconds=0),
    detection=Detection(external_reachability=Reachability(vantages=("a", "b", "c"))),
)
LEASE = api_objects.entry("a")["leaseName"]
HOLDER = api_objects.entry("a")["proberUID"]


def lease(second: int) -> dict[str, Any]:
    """The Lease of the prober that wrote the entries, as it advances."""
    spec = {"holderIdentity": HOLDER, "renewTime": f"2026-01-01T00:00:0{second}.000000Z"}
    return {"metadata": {"name": LEASE}, "spec": spec}


SCRAPS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([math.nan, -1, 1e308]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ODD = {
    "type": st.sampled_from(["ExternalReachability", "MoonPhase", "Prometheus", "", "x" * 99]) | SCRAPS,
    "source": st.sampled_from(["zoo", "", "a b", "x" * 99]) | SCRAPS,
    "reading": st.sampled_from(["Failing", "failing", "Sick"]) | SCRAPS,
    "control": st.sampled_from(["Passing", "Failing"]) | SCRAPS,
    "since": st.sampled_from(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "yesterday"]) | SCRAPS,
    "message": st.sampled_from(["x" * 10_000, "\x00\x1b[31m"]) | SCRAPS,
    "latencyMicroseconds": st.sampled_from([-1, 10**18, math.nan, "NaN"]) | SCRAPS,
    "listeners": st.lists(
        st.fixed_dictionaries({"name": st.sampled_from(["X", "Y", "a\nb", ""]), "reading": st.just("Failing")}),
        max_size=9,
    )
    | SCRAPS,
    "value": st.sampled_from(["NaN", "Infinity", "1e999999999", "-0"]) | SCRAPS,
}


@st.composite
def entries(draw: st.DrawFn) -> Any:
    """An entry as a hostile or broken writer leaves it: one that would count, with something wrong in it."""
    if draw(st.booleans()):
        return draw(SCRAPS)
    body: dict[str, Any] = api_objects.entry("a", reading="Failing")
    for name in draw(st.lists(st.sampled_from(sorted(ODD)), min_size=1, max_size=4, unique=True)):
        body[name] = draw(ODD[name])
    return body


@given(st.lists(st.lists(entries(), max_size=2 * SIGNAL_LIMIT), min_size=3, max_size=3), st.booleans())
def test_hostile_entries_demote_no_broker(said: list[list[Any]], renewed: bool):
    book = SignalCache(ManualClock())
    for broker, found in enumerate(said, 1):
        book.on_broker_health({**api_objects.health(broker), "status": {"signals": found}})
    if renewed:
        for second in range(2):
            book.on_lease(lease(second))
    # Of the vantages one alone may have been imitated in full: that is no quorum.
    verdicts = judge(snapshot(cluster(partition()), *book.signals()), POLICY, {})
    decided = decide(Context(snapshot(cluster(partition()), *book.signals()), verdicts, POLICY))
    assert decided.demoted == {}
    assert all(len(v.message) < 2000 and len(v.facts) <= 2 * SIGNAL_LIMIT for v in verdicts.values())


@given(st.lists(entries(), min_size=1, max_size=20))
def test_unreadable_entries_are_named_and_valid_ones_still_count(said: list[Any]):
    book = SignalCache(ManualClock())
    good = api_objects.entry("b")
    book.on_broker_health({**api_objects.health(1), "status": {"signals": [*said, good]}})
    assert "b" in {s.source for s in book.signals()}
    assert all(len(problem) < 2000 for problem in book.problems())

from __future__ import annotations

import os
import time

import pytest

from detectioncosts.measuring import WRITES, between, rates, requests, sample, usage

METRICS = """\
# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 4
apiserver_request_total{code="409",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 1
apiserver_request_total{code="200",resource="brokerhealths",subresource="status",verb="APPLY"} 2e+03
apiserver_request_total{code="200",group="bellwether.dev",resource="brokerhealths",subresource="",verb="WATCH"} 3
apiserver_request_duration_seconds_count{resource="leases",verb="PUT"} 9
bellwether_probe_reading{broker="1"} 1.0
bellwether_probe_reading{broker="2"} -1.0
bellwether_reconcile_idle 1.0
"""


def test_requests_are_counted_by_verb_and_resource_whatever_their_outcome() -> None:
    assert requests(METRICS) == {
        ("PUT", "leases"): 5,
        ("APPLY", "brokerhealths/status"): 2000,
        ("WATCH", "brokerhealths"): 3,
    }


def test_rates_name_what_grew_and_nothing_else() -> None:
    before = {("PUT", "leases"): 5, ("APPLY", "brokerhealths/status"): 2000}
    after = {("PUT", "leases"): 20, ("APPLY", "brokerhealths/status"): 2000, ("GET", "leases"): 7}
    assert rates(before, after, 10, WRITES) == {"PUT leases": 1.5}


def test_samples_are_summed_over_those_that_carry_the_labels() -> None:
    assert sample(METRICS, "bellwether_probe_reading") == 0
    assert sample(METRICS, "bellwether_probe_reading", broker="2") == -1
    assert sample(METRICS, "bellwether_reconcile_idle") == 1
    assert sample(METRICS, "bellwether_probe") == 0


def test_a_busy_process_is_seen_to_be_busy() -> None:
    for _ in range(6):  # a machine that stands still between two looks at the clock spoils one try
        before, began = usage(os.getpid()), time.monotonic()
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        used = between(before, usage(os.getpid()))
        expected = pytest.approx(0.3 / (time.monotonic() - began), rel=0.3)
        if used["cpu_cores"] == expected:
            break
    assert used["cpu_cores"] == expected
    assert 1 < used["resident_megabytes"] <= used["peak_megabytes"]
    assert used["threads"] >= 1


def test_a_process_that_is_gone_cannot_be_measured() -> None:
    with pytest.raises(FileNotFoundError):
        usage(2**22 + 1)

"""The main job in pods: a broker that outsiders cannot use is demoted, and when it is well its leaders come back.

Everything is as a platform team has it: the image, the chart's Deployments and accounts, brokers with sidecars.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from node.kubectl import eventually

if TYPE_CHECKING:
    from nodeparts.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

CUT, SLOW = 1, 2


def confined(pod: Mapping[str, Any]) -> bool:
    """Whether a pod runs as an account without rights, on root file systems that it cannot write to."""
    spec = pod["spec"]
    return spec["securityContext"]["runAsNonRoot"] and all(
        container["securityContext"]["readOnlyRootFilesystem"]
        and not container["securityContext"]["allowPrivilegeEscalation"]
        for container in spec["containers"]
    )


def five_ready(pods: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there are as many pods as the release is to have, and every container of theirs is ready."""
    statuses = [pod["status"].get("containerStatuses") or [{"ready": False}] for pod in pods]
    return len(pods) == 5 and all(one["ready"] for of_pod in statuses for one in of_pod)


def test_two_operators_two_probers_and_a_sampler_run_confined_and_ready(
    stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    record_property("first_verdict_seconds", round(stage.first_verdict_seconds, 1))
    # A rollout is over before the pods of the one before have ended.
    pods = eventually(stage.release.pods, five_ready, 120, "not five pods, all ready")
    components = sorted(pod["metadata"]["labels"]["app.kubernetes.io/component"] for pod in pods)
    assert components.count("operator") == 2
    assert all(confined(pod) for pod in pods)


def test_helms_own_test_of_the_release_passes(stage: Stage) -> None:
    assert "Succeeded" in stage.release.test()


def test_every_broker_has_two_sidecars_that_report_of_it(stage: Stage) -> None:
    wanted = {"ExternalReachability", "StorageLatency", "SelfReachability"}
    eventually(
        stage.release.healths,
        lambda seen: all(wanted <= {signal["type"] for signal in one["status"].get("signals", ())} for one in seen),
        60,
        "not every broker has all its reports",
    )


def test_a_broker_that_is_cut_off_leads_nothing_until_it_is_reachable_again(whole: Stage) -> None:
    before = whole.kafka.leaders()
    assert CUT in before.values()
    whole.kafka.cut(CUT)
    eventually(lambda: whole.kafka.led_by(CUT), lambda led: led == 0, 60, "the cut broker still leads")
    # It is said after the turn that moved leaders.
    eventually(whole.release.verdicts, lambda seen: seen[CUT] == "Sick", 30, "the broker is not called Sick")
    assert whole.kafka.in_isr(CUT)
    whole.kafka.join(CUT)
    eventually(whole.kafka.leaders, lambda leaders: leaders == before, 120, "leaders are not back")


def test_a_broker_on_a_slow_disk_leads_nothing_until_the_disk_is_well(whole: Stage) -> None:
    before = whole.kafka.leaders()
    assert SLOW in before.values()
    whole.kafka.slow(SLOW, 400)  # many times what its peers take, however busy the machine
    eventually(lambda: whole.kafka.led_by(SLOW), lambda led: led == 0, 150, "the slow broker still leads")
    whole.kafka.quicken(SLOW)
    eventually(whole.kafka.leaders, lambda leaders: leaders == before, 150, "leaders are not back")

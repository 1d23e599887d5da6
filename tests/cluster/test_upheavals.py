"""What happens to a cluster in mid-demotion: an upgrade of the chart, operators that go, a kubelet that restarts.

Each time the demotion stays, and the way back is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from node import lifecycle
from node.kubectl import eventually
from nodeparts.release import NAMESPACE

if TYPE_CHECKING:
    from node.kubectl import Kubectl
    from node.places import Places
    from nodeparts.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

CUT = 3
Leaders = dict[tuple[str, int], int]


@pytest.fixture
def demoted(whole: Stage) -> Iterator[Leaders]:
    """A broker is cut off and leads nothing; who led before."""
    before = whole.kafka.leaders()
    whole.kafka.cut(CUT)
    eventually(lambda: whole.kafka.led_by(CUT), lambda led: led == 0, 60, "the cut broker still leads")
    return before


def back(stage: Stage, before: Leaders) -> None:
    """Repair the broker, and wait until everything is as it was."""
    stage.kafka.join(CUT)
    eventually(stage.kafka.leaders, lambda leaders: leaders == before, 150, "leaders are not back")


def test_an_upgrade_of_the_chart_in_mid_demotion_leaves_it_standing(stage: Stage, demoted: Leaders) -> None:
    old = {pod["metadata"]["uid"] for pod in stage.release.pods()}
    values = {**stage.values, "commonAnnotations": {"upgraded": "yes"}, "log": {"level": "debug"}}
    stage.release.install(values)
    stage.release.roll_out()
    eventually(
        lambda: {pod["metadata"]["uid"] for pod in stage.release.pods()},
        lambda now: len(now) == len(old) and not now & old,
        120,
        "some pod is not new",
    )
    assert stage.kafka.led_by(CUT) == 0
    # The operator that moved leaders may have been replaced before it said so.
    eventually(stage.release.displaced, bool, 60, "nothing is said to be displaced")
    back(stage, demoted)


def test_a_standby_sees_to_the_way_back_when_the_acting_operators_pod_is_deleted(
    stage: Stage, kubectl: Kubectl, demoted: Leaders
) -> None:
    acting = eventually(stage.release.acting, bool, 60, "no one acts")
    kubectl("delete", "pod", acting, "-n", NAMESPACE, "--wait=false")
    eventually(stage.release.acting, lambda now: now not in ("", acting), 60, "no one else acts")
    assert stage.kafka.led_by(CUT) == 0
    back(stage, demoted)


def test_operators_that_are_all_killed_come_back_and_go_on(stage: Stage, kubectl: Kubectl, demoted: Leaders) -> None:
    kill = ["delete", "pods", "-l", "app.kubernetes.io/component=operator", "-n", NAMESPACE]
    kubectl(*kill, "--grace-period=0", "--force")
    assert stage.kafka.led_by(CUT) == 0
    back(stage, demoted)


def test_a_restart_of_the_kubelet_moves_nothing_and_loses_nothing(
    stage: Stage, places: Places, demoted: Leaders
) -> None:
    stage.release.roll_out()  # the test before may have ended without a standby
    before = {pod["metadata"]["uid"]: restarts(pod) for pod in stage.release.pods()}
    lifecycle.restart(places, "kubelet")
    eventually(lambda: lifecycle.serves(places), bool, 120, "the node is not ready again")
    assert {pod["metadata"]["uid"]: restarts(pod) for pod in stage.release.pods()} == before
    assert stage.kafka.led_by(CUT) == 0
    back(stage, demoted)


def restarts(pod: object) -> int:
    """How often containers of a pod were started again."""
    assert isinstance(pod, dict)
    return sum(status["restartCount"] for status in pod["status"]["containerStatuses"])

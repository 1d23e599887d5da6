"""Taken away again, it leaves leaders where they belong. Runs last: nothing of the release is left after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from node.kubectl import eventually
from nodeparts.release import NAMESPACE

if TYPE_CHECKING:
    from node.kubectl import Kubectl
    from nodeparts.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]

CUT = 2


def test_uninstalled_in_mid_demotion_it_puts_the_orders_back_and_its_namespace_can_be_deleted(
    stage: Stage, kubectl: Kubectl
) -> None:
    stage.kafka.mend()
    stage.all_well()
    before = stage.kafka.leaders()
    stage.kafka.cut(CUT)
    eventually(lambda: stage.kafka.led_by(CUT), lambda led: led == 0, 60, "the cut broker still leads")
    # It is said after the turn that moved leaders: until then it is not yet, rather than no more.
    eventually(stage.release.verdicts, lambda seen: seen[CUT] == "Sick", 30, "the broker is not called Sick")
    stage.kafka.join(CUT)
    # Orders of a broker that is still sick would be exported.
    eventually(stage.release.verdicts, lambda seen: seen[CUT] != "Sick", 120, "the broker is still Sick")
    stage.release.uninstall()
    eventually(stage.kafka.leaders, lambda leaders: leaders == before, 60, "leaders are not back")
    eventually(stage.release.pods, lambda pods: pods == [], 90, "pods of the release are left")
    kubectl("delete", "namespace", NAMESPACE, "--wait", "--timeout=90s")

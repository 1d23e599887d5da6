"""Health of a policy as Argo CD and Flux see it: the shipped settings in the interpreters that these tools use.

The statuses are those that the operator writes; the API server is in memory.
"""

from __future__ import annotations

import copy
import json
import subprocess
from typing import Any

import pytest
import yaml

from bellwether.core.signals import Reading
from realparts import gotools
from sourcetree import ROOT
from testkit.kubernetes import api_objects
from testkit.simulation.operator_fixture import MemoryOperator
from waiting import limit

EXAMPLES = ROOT / "examples" / "gitops"
ARGO = yaml.safe_load((EXAMPLES / "argocd-cm.yaml").read_text())["data"]
FLUX = yaml.safe_load((EXAMPLES / "flux-kustomization.yaml").read_text())["spec"]["healthCheckExprs"][0]
HEALTH = "resource.customizations.health.bellwether.dev"

Body = dict[str, Any]


def judged(script: str, *objects: Body) -> list[dict[str, Any]]:
    """What gopher-lua, cel-go and kstatus say of each object."""
    expressions = {name: FLUX[name] for name in ("current", "failed")}
    given = json.dumps({"lua": script, "cel": expressions, "objects": objects})
    program = gotools.binary(gotools.GITOPS_HEALTH)
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=False, timeout=limit(60))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def reconciled(**spec: Any) -> Body:
    """A policy with the status that the operator writes for it, over three healthy brokers."""
    operator = MemoryOperator.well()
    try:
        operator.step(operator.make(**spec), 3)
        return operator.body()
    finally:
        operator.close()


def blind() -> Body:
    """A policy whose probers report nothing, so that no broker can be judged."""
    operator = MemoryOperator()
    try:
        operator.step(operator.make(), 3)
        return operator.body()
    finally:
        operator.close()


def demoted() -> Body:
    """A policy with one broker demoted."""
    operator = MemoryOperator.well()
    operator.site.signals.say(1, Reading.FAILING)
    try:
        operator.step(operator.make(), 5)
        return operator.body()
    finally:
        operator.close()


def fresh() -> Body:
    """A policy that was created a moment ago."""
    body = api_objects.policy()
    return {**body, "metadata": {**body["metadata"], "generation": 1}}


def edited() -> Body:
    """A healthy policy that was changed a moment ago: its status is of the version before."""
    body = copy.deepcopy(reconciled())
    body["metadata"]["generation"] += 1
    return body


CASES = {
    # kstatus takes a kind without conditions for one that never has any.
    "fresh": (fresh, "Progressing", "Unknown", "Current"),
    "edited": (edited, "Progressing", "InProgress", "InProgress"),
    "healthy": (reconciled, "Healthy", "Current", "Current"),
    "a broker is demoted": (demoted, "Healthy", "Current", "Current"),
    "suspended": (lambda: reconciled(suspend=True), "Healthy", "Current", "Current"),
    "observing": (lambda: reconciled(mode="Observe"), "Healthy", "Current", "Current"),
    "no prober reports": (blind, "Progressing", "InProgress", "InProgress"),
    "invalid": (lambda: reconciled(mode="Dance"), "Degraded", "Failed", "Failed"),
}


@pytest.mark.parametrize(("make", "argo", "flux", "kstatus"), CASES.values(), ids=CASES)
def test_argo_cd_flux_and_kstatus_judge_a_policy_as_documented(make: Any, argo: str, flux: str, kstatus: str):
    body = make()
    (found,) = judged(ARGO[f"{HEALTH}_LeadershipPolicy"], body)
    assert (found["argo"]["status"], found["flux"], found["kstatus"]) == (argo, flux, kstatus), body.get("status")
    assert found["argo"]["message"]


def test_a_broker_health_is_healthy_for_argo_cd():
    (found,) = judged(ARGO[f"{HEALTH}_BrokerHealth"], {**api_objects.health(), "status": {}})
    assert found["argo"]["status"] == "Healthy"


def test_differences_that_are_ignored_are_named_as_json_pointers():
    for kind in ("LeadershipPolicy", "BrokerHealth"):
        ignored = yaml.safe_load(ARGO[f"resource.customizations.ignoreDifferences.bellwether.dev_{kind}"])
        assert all(pointer.startswith("/") for pointer in ignored["jsonPointers"])
